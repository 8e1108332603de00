"""Words for options: what the definition writes, and what the screen says."""

from __future__ import annotations

from typing import Any

WORDS = {
    "any": "Any one of them",
    "all": "Everybody",
    "count": "As many as I say",
    "ordered": "One line after the other",
    "stop": "End the run",
    "skip": "Skip it",
    "collect": "Skip and list it",
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


WORDS_OF = {
    "join": {"all": "All lanes", "any": "The first lane", "count": "Some lanes"},
    "on_item_error": {"stop": "Fail the loop"},
    "missed": {"once": "Start one run", "all": "Start them all", "skip": "Leave them out"},
    "overlap": {"allow": "Start beside it", "skip": "Leave it out", "queue": "Start after it", "cancel_old": "Cancel the earlier one"},
    "access": {"public": "Anybody with the address", "signed_in": "Who is signed in"},
    "respond": {"at_once": "At once", "at_end": "When the run ends"},
    "kind": {"basic": "User and password", "header": "A secret header"},
    "rejection": {"at_once": "Ends it at once", "outvoted": "Only if too few are left"},
    "log": {"full": "Kept", "masked": "Masked"},
    "pages": {"none": "No", "next_link": "By a next link", "cursor": "By a cursor", "page": "By page number", "offset": "By offset"},
    "form_as": {"urlencoded": "URL-encoded", "multipart": "Multipart"},
    "more": {"queue": "Waits its turn", "drop": "Is dropped"},
    "when": {"failed": "Fails", "succeeded": "Succeeds", "cancelled": "Is cancelled", "any": "Ends"},
}
"""Of fields whose options mean something else than elsewhere."""


def word_for(option: Any, field: str = "") -> str:
    text = str(option)
    if (own := WORDS_OF.get(field.rpartition(".")[2], {}).get(text)) is not None:
        return own
    if text in WORDS:
        return WORDS[text]
    return text if text.isupper() else text.replace("_", " ").capitalize()
