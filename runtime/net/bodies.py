"""Read an answer's body within a bound, however small it was packed."""

from __future__ import annotations

import zlib
from collections.abc import AsyncIterator

MIB = 1024 * 1024
_SLACK = 64 * 1024
"""What packing may add to a body that hardly packs, and what an endless row of empty gzip members may cost us."""


class TooLarge(Exception):
    """The body is larger than allowed. `beginning` is what was read up to there."""

    def __init__(self, beginning: bytes):
        self.beginning = beginning


class BadEncoding(Exception):
    """The body is packed in a way that was not asked for, or is broken inside."""


async def read_body(parts: AsyncIterator[bytes], encoding: str, limit: int = MIB) -> bytes:
    """Unpack `parts` by their Content-Encoding. Memory stays within the limit and one part."""
    unpacker = _unpacker(encoding)
    body, packed = bytearray(), 0
    async for part in parts:
        packed += len(part)
        body += unpacker.unpack(part, limit + 1 - len(body))
        if len(body) > limit or packed > limit + _SLACK:
            raise TooLarge(bytes(body[:limit]))
    unpacker.finish()
    return bytes(body)


def _unpacker(encoding: str) -> _Plain | _Inflater:
    match encoding.strip().lower():
        case "" | "identity":
            return _Plain()
        case "gzip" | "x-gzip":
            return _Inflater(zlib.MAX_WBITS | 16)
        case "deflate":
            return _Inflater(None)
        case other:
            raise BadEncoding(f"The answer is packed as “{other[:40]}”, which was not asked for.")


class _Plain:
    def unpack(self, part: bytes, room: int) -> bytes:
        return part[:room]

    def finish(self) -> None:
        pass


class _Inflater:
    """Inflates part by part and never beyond `room`. RFC 1952 lets gzip members follow each other; RFC 9110's deflate
    has a zlib wrapper that some servers leave out."""

    def __init__(self, window: int | None) -> None:
        self._window = window
        self._stream = None if window is None else zlib.decompressobj(window)
        self._begun = False

    def unpack(self, part: bytes, room: int) -> bytes:
        out = bytearray()
        try:
            while part and len(out) < room:
                out += self._open(part).decompress(part, room - len(out))
                part = self._stream.unused_data if self._stream.eof else self._stream.unconsumed_tail
        except zlib.error:
            raise BadEncoding("The answer's packing is broken inside.") from None
        return bytes(out)

    def finish(self) -> None:
        if self._begun and not self._stream.eof:
            raise BadEncoding("The answer's packing ends too early.")

    def _open(self, part: bytes) -> zlib._Decompress:
        """The stream that goes on with `part`: a new one at the beginning and between gzip members."""
        if self._window is None:
            self._window = zlib.MAX_WBITS if part[0] & 0x0F == 8 else -zlib.MAX_WBITS
        if self._stream is None or self._stream.eof:
            self._stream = zlib.decompressobj(self._window)
        self._begun = True
        return self._stream
