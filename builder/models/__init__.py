"""The tables of the web side, one file per subject."""

from .api_token import ApiToken
from .draft import Draft, Revision

__all__ = ["ApiToken", "Draft", "Revision"]
