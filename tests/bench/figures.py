"""How figures are told: the median of the rounds and their range."""

from __future__ import annotations

Figures = dict[str, list[float]]
"""The rounds' values of each figure."""


def median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2f}" if value < 10 else f"{value:.1f}"
