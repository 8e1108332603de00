"""The built-in model at work: one per process, loaded when first asked, one text at a time, off the event loop.

It understands and does not write: it chooses a label for a text, and the sentence of a text that says most of it.
"""

from __future__ import annotations

import asyncio
import math
import re
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

from .minilm import MiniLM

NAME = "built-in MiniLM"
SHARPNESS = 16.0
"""How much a difference of similarities counts: with 16, one of 0.1 makes a label five times as likely."""

MOST_SENTENCES = 100
"""Of so many the key sentence is chosen: some three seconds of work."""

_SENTENCES = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_THREAD = ThreadPoolExecutor(1, thread_name_prefix="built-in-model")


@dataclass(frozen=True, slots=True)
class Choice:
    """`score` says how clearly this label won over the others, from 0 to 1. It orders answers of one question well and
    is no calibrated probability."""

    label: str
    score: float
    why: str
    tokens: int
    cut: bool


@dataclass(frozen=True, slots=True)
class Sentence:
    """One of a text's own sentences; `cut` where only the text's beginning was read."""

    text: str
    tokens: int
    cut: bool


async def classify(text: str, labels: Mapping[str, str]) -> Choice:
    """The label whose name and description come nearest to the text. Raises ModelMissing."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, _classify, text, dict(labels))


async def key_sentence(text: str) -> Sentence:
    """The sentence that is nearest to what all of them say together. Raises ModelMissing."""
    return await asyncio.get_running_loop().run_in_executor(_THREAD, _key_sentence, text)


def _key_sentence(text: str) -> Sentence:
    sentences = [one for part in _SENTENCES.split(text) if (one := part.strip())]
    read = [_model().embed(one) for one in sentences[:MOST_SENTENCES]]
    middle = sum(vector for vector, *_ in read)
    best = max(range(len(read)), key=lambda number: float(read[number][0] @ middle))
    cut = len(sentences) > MOST_SENTENCES or any(cut for *_, cut in read)
    return Sentence(sentences[best], sum(tokens for _, tokens, _ in read), cut)


def _classify(text: str, labels: dict[str, str]) -> Choice:
    vector, tokens, cut = _model().embed(text)
    near = {label: float(vector @ _of_label(_words(label, line))) for label, line in labels.items()}
    best = max(near, key=near.__getitem__)
    odds = {label: math.exp(SHARPNESS * (value - near[best])) for label, value in near.items()}
    why = f"Nearest to: {labels[best] or best}"
    return Choice(best, round(1 / sum(odds.values()), 4), why, tokens, cut)


def _words(label: str, line: str) -> str:
    """A bare label says little to the model; the description carries the meaning."""
    return line or label.replace("_", " ")


@cache
def _model() -> MiniLM:
    return MiniLM()


@lru_cache(maxsize=2_000)
def _of_label(words: str) -> Any:
    return _model().embed(words)[0]
