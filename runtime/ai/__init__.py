"""Models: what is asked of them, and two ways to ask: a provider over HTTP, or the built-in model on this processor."""

from .base import Ask, ProviderFailed, Reply
from .providers import ask_provider

__all__ = ["Ask", "ProviderFailed", "Reply", "ask_provider"]
