"""The drawings of our own icons: the inside of an SVG element, 20 units wide for icons, 16 for run states.

Kinds of steps and states of runs are drawn by us, because a shape carries meaning there; the rest comes from Lucide.
"""

from __future__ import annotations

ICONS = {
    "ai": (
        '<path d="M9 3c.6 4 2 5.4 6 6-4 .6-5.4 2-6 6-.6-4-2-5.4-6-6 4-.6 5.4-2 6-6zM15.5 13v4M13.5'
        ' 15h4"/>'
    ),
    "api": '<path d="M3 7h12M12 4l3 3-3 3M17 13H5M8 10l-3 3 3 3"/>',
    "approve": (
        '<circle cx="8" cy="6.5" r="3"/><path d="M2.5 16.5c.2-2.9 2.4-4.6 5.5-4.6.9 0 1.7.1 2.4.4M12'
        ' 14.8l2 2 3.5-4"/>'
    ),
    "bell": '<path d="M5 13.5V9a5 5 0 0 1 10 0v4.5l1.5 1.5h-13zM8.3 17.3h3.4"/>',
    "bolt": '<path d="M11 2.5 4.5 11.5h5L9 17.5l6.5-9h-5z"/>',
    "branch": '<path d="m10 3 4 4-4 4-4-4zM6 7H4.5A1.5 1.5 0 0 0 3 8.5V17M14 7h1.5A1.5 1.5 0 0 1 17 8.5V17"/>',
    "brand": (
        '<path d="M10 2.2v8.3M10 6.4c0-2.1 1.6-3.5 4.2-3.6 0 2.4-1.6 3.7-4.2 3.6zM10'
        ' 9c0-1.9-1.5-3.1-3.9-3.2 0 2.1 1.4 3.3 3.9 3.2zM10 10.5c0 2.8-1.5 3.4-3.2 4-1.5.6-2.6'
        ' 1.4-3.3 3M10 10.5c0 2.8 1.5 3.4 3.2 4 1.5.6 2.6 1.4 3.3 3M10 10.5c0 3.2-.8 4.6-1.9 7M10'
        ' 10.5c0 3.2.8 4.6 1.9 7"/>'
    ),
    "cal": (
        '<rect x="3" y="4.5" width="14" height="12.5" rx="1.6"/><path d="M3 8.5h14M7 2.5v3.5M13'
        ' 2.5v3.5"/>'
    ),
    "clock": '<circle cx="10" cy="10" r="7"/><path d="M10 6v4l2.8 1.8"/>',
    "copy": (
        '<rect x="7" y="7" width="9.5" height="9.5" rx="1.6"/><path d="M13 7V5a1.5 1.5 0 0'
        ' 0-1.5-1.5H5A1.5 1.5 0 0 0 3.5 5v6.5A1.5 1.5 0 0 0 5 13h2"/>'
    ),
    "db": (
        '<ellipse cx="10" cy="5" rx="6" ry="2.5"/><path d="M4 5v10c0 1.4 2.7 2.5 6 2.5s6-1.1'
        ' 6-2.5V5M4 10c0 1.4 2.7 2.5 6 2.5s6-1.1 6-2.5"/>'
    ),
    "down": '<path d="m5 7.5 5 5 5-5"/>',
    "eye": (
        '<path d="M2 10s3-5.5 8-5.5S18 10 18 10s-3 5.5-8 5.5S2 10 2 10z"/><circle cx="10" cy="10"'
        ' r="2.3"/>'
    ),
    "fit": (
        '<path d="M3.5 7V5A1.5 1.5 0 0 1 5 3.5h2M13 3.5h2A1.5 1.5 0 0 1 16.5 5v2M16.5 13v2a1.5 1.5 0'
        ' 0 1-1.5 1.5h-2M7 16.5H5A1.5 1.5 0 0 1 3.5 15v-2"/>'
    ),
    "flows": (
        '<rect x="6.5" y="2.5" width="7" height="4.5" rx="1.3"/><rect x="2.5" y="13" width="6"'
        ' height="4.5" rx="1.3"/><rect x="11.5" y="13" width="6" height="4.5" rx="1.3"/><path d="M10'
        ' 7v3M5.5 13v-1.5A1.5 1.5 0 0 1 7 10h6a1.5 1.5 0 0 1 1.5 1.5V13"/>'
    ),
    "help": '<circle cx="10" cy="10" r="7"/><path d="M8 8a2 2 0 1 1 2.8 1.9c-.5.3-.8.6-.8 1.3M10 13.7v.01"/>',
    "history": '<path d="M3.6 10.8A6.5 6.5 0 1 0 5.5 5.3L3.5 7.2M3.5 3.5v3.7h3.7M10 6.5V10l2.5 1.8"/>',
    "left": '<path d="m12.5 5-5 5 5 5"/>',
    "lock": '<rect x="4" y="9" width="12" height="8" rx="1.6"/><path d="M7 9V6.5a3 3 0 0 1 6 0V9"/>',
    "loop": (
        '<path d="M4 8.5A3.5 3.5 0 0 1 7.5 5H15M12.5 2.5 15 5l-2.5 2.5M16 11.5a3.5 3.5 0 0 1-3.5'
        ' 3.5H5M7.5 17.5 5 15l2.5-2.5"/>'
    ),
    "mail": '<rect x="2.5" y="4.5" width="15" height="11" rx="1.5"/><path d="m3.5 6 6.5 5 6.5-5"/>',
    "minus": '<path d="M4 10h12"/>',
    "moon": '<path d="M16 11.7A6.5 6.5 0 0 1 8.3 4 6.5 6.5 0 1 0 16 11.7z"/>',
    "more": '<path d="M5 10h.01M10 10h.01M15 10h.01" stroke-width="2.4"/>',
    "ops": '<path d="M2.5 10.5h3l2.2-5.5 3.8 10 2.3-6 .8 1.5h2.9"/>',
    "parallel": '<path d="M3 4h14M3 16h14M6 7v6M10 7v6M14 7v6"/>',
    "pause": '<path d="M7 4.5v11M13 4.5v11"/>',
    "play": '<path d="M6 4.2v11.6L15.5 10z"/>',
    "plug": '<path d="M7 2.5v4M13 2.5v4M5 6.5h10v3a5 5 0 0 1-10 0zM10 14.5v3"/>',
    "plus": '<path d="M10 4v12M4 10h12"/>',
    "publish": (
        '<path d="M10 13V3.5M6.2 7.2 10 3.5l3.8 3.7M3.5 12.5v2.7a1.3 1.3 0 0 0 1.3 1.3h10.4a1.3 1.3'
        ' 0 0 0 1.3-1.3v-2.7"/>'
    ),
    "redo": '<path d="M13 3.5 16.5 7 13 10.5M16 7H8.5a4.5 4.5 0 0 0 0 9H12"/>',
    "rerun": '<path d="M4 8.5A3.5 3.5 0 0 1 7.5 5H15M12.5 2.5 15 5l-2.5 2.5M4.5 12v3.5M8.5 12v3.5l5-1.75z"/>',
    "retry": '<path d="M16.4 10.8A6.5 6.5 0 1 1 14.5 5.3l2 1.9M16.5 3.5v3.7h-3.7"/>',
    "right": '<path d="m7.5 5 5 5-5 5"/>',
    "runs": '<path d="M3 4.5h6.5M6 10h7.5M11 15.5h6"/>',
    "search": '<circle cx="9" cy="9" r="5.5"/><path d="m13 13 4 4"/>',
    "settings": (
        '<path d="M3 6h8M15 6h2M3 14h2M9 14h8"/><circle cx="13" cy="6" r="2"/><circle cx="7" cy="14"'
        ' r="2"/>'
    ),
    "sub": (
        '<rect x="2.5" y="2.5" width="10" height="10" rx="2"/><path d="M7.5 15.5v.2A1.8 1.8 0 0 0'
        ' 9.3 17.5h6.4a1.8 1.8 0 0 0 1.8-1.8V9.3a1.8 1.8 0 0 0-1.8-1.8h-.2"/>'
    ),
    "sun": (
        '<circle cx="10" cy="10" r="3.2"/><path d="M10 2.5v1.6M10 15.9v1.6M2.5 10h1.6M15.9'
        ' 10h1.6M4.7 4.7l1.1 1.1M14.2 14.2l1.1 1.1M4.7 15.3l1.1-1.1M14.2 5.8l1.1-1.1"/>'
    ),
    "text": '<path d="M4 5h12M4 10h12M4 15h7"/>',
    "undo": '<path d="M7 3.5 3.5 7 7 10.5M4 7h7.5a4.5 4.5 0 0 1 0 9H8"/>',
    "up": '<path d="m5 12.5 5-5 5 5"/>',
    "x": '<path d="m5 5 10 10M15 5 5 15"/>',
}

STATES = {
    "attention": (
        '<path d="M6.9 1.7a1.3 1.3 0 0 1 2.2 0l6 10.8a1.3 1.3 0 0 1-1.1 1.9H2a1.3 1.3 0 0'
        ' 1-1.1-1.9z" fill="currentColor"/><path d="M8 5.7v3.5M8 11.7v.01"'
        ' stroke="var(--surface,#fff)" stroke-width="1.7" stroke-linecap="round"/>'
    ),
    "cancelled": (
        '<circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" stroke-width="1.6"/><path'
        ' d="m3.8 12.2 8.4-8.4" stroke="currentColor" stroke-width="1.6"/>'
    ),
    "failed": (
        '<path d="M5.3 1h5.4L15 5.3v5.4L10.7 15H5.3L1 10.7V5.3z" fill="currentColor"/><path d="m5.7'
        ' 5.7 4.6 4.6M10.3 5.7l-4.6 4.6" stroke="var(--surface,#fff)" stroke-width="1.7"'
        ' stroke-linecap="round"/>'
    ),
    "queued": (
        '<circle cx="8" cy="8" r="6.2" fill="none" stroke="currentColor" stroke-width="1.5"'
        ' stroke-dasharray="2.4 2.5"/>'
    ),
    "running": (
        '<path d="M8 2a6 6 0 1 1-6 6" fill="none" stroke="currentColor" stroke-width="2"'
        ' stroke-linecap="round"/><circle cx="8" cy="8" r="2.3" fill="currentColor"/>'
    ),
    "skipped": '<path d="M3 8h10" stroke="currentColor" stroke-width="1.8" stroke-linecap="round"/>',
    "succeeded": (
        '<circle cx="8" cy="8" r="7" fill="currentColor"/><path d="m4.9 8.3 2.2 2.2 4.1-4.7"'
        ' fill="none" stroke="var(--surface,#fff)" stroke-width="1.7" stroke-linecap="round"'
        ' stroke-linejoin="round"/>'
    ),
    "waiting": (
        '<path d="M3.5 1.8h9M3.5 14.2h9M4.7 1.8v2.6c0 1.3 3.3 2.3 3.3 3.6s-3.3 2.3-3.3 3.6v2.6M11.3'
        ' 1.8v2.6c0 1.3-3.3 2.3-3.3 3.6s3.3 2.3 3.3 3.6v2.6" fill="none" stroke="currentColor"'
        ' stroke-width="1.6" stroke-linecap="round" stroke-linejoin="round"/><path d="M5.8'
        ' 13.7c.2-1.2 1.1-1.9 2.2-2.5 1.1.6 2 1.3 2.2 2.5z" fill="currentColor"/>'
    ),
}
