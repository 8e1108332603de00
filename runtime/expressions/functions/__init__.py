"""The functions of the language, by name."""

from . import conversions, formatting, json_text, lists, math, optionals, text, times
from .registry import FUNCTIONS, NAMESPACES, Function, find

__all__ = ["FUNCTIONS", "NAMESPACES", "Function", "find"]
_MODULES = (conversions, formatting, json_text, lists, math, optionals, text, times)
