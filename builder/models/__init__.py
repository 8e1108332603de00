"""The tables of the web side, one file per subject."""

from .api_token import ApiToken, Scope
from .draft import Draft, Revision
from .fold import Fold
from .sample import Listener, Pin, Sample
from .identity import Identity
from .saved_filter import SavedFilter

__all__ = ["ApiToken", "Draft", "Fold", "Identity", "Listener", "Pin", "Revision", "Sample", "SavedFilter", "Scope"]
