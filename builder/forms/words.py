"""Words for options: what the definition writes, and what the screen says."""

from __future__ import annotations

from typing import Any

WORDS = {
    "any": "Any one of them",
    "all": "Everybody",
    "count": "As many as I say",
    "ordered": "One line after the other",
    "stop": "End the run",
    "fail": "Fail the step",
    "go_on": "Go on",
    "reject": "Count as rejected",
    "workdays": "Work days",
    "every": "Every day",
    "json": "JSON",
    "auto": "JSON or text",
    "standard": "Standard Webhooks",
    "github": "GitHub",
    "none": "Not signed",
}


def word_for(option: Any) -> str:
    text = str(option)
    if text in WORDS:
        return WORDS[text]
    return text if text.isupper() else text.replace("_", " ").capitalize()
