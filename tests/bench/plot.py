"""Draws the figures of `growth.py` as PNG beside their file: `python plot.py plots/growth.json`. Runs in the environment `.bench`."""

import json
import statistics
import sys
from pathlib import Path

from matplotlib.figure import Figure

NAMES = {"steps of a run": "run-length", "steps of a definition": "definition-size", "stored runs": "stored-runs",
         "worker processes": "workers", "bytes of an output": "payload"}  # fmt: skip
LINES = {"processor": ("#1d4ed8", "processor"), "clock": ("#c2410c", "by the clock")}
WIDE = 30
"""Times the smallest: where the largest is more, the axis is logarithmic, or the small ones could not be told."""
INK = "#334155"


def main(file: Path) -> None:
    told = json.loads(file.read_text())
    for what, sizes in told["points"].items():
        draw(what, {int(size): rounds for size, rounds in sizes.items()}, told["machine"], file.with_name(f"{NAMES[what]}.png"))


def draw(what: str, sizes: dict[int, list[dict[str, float]]], machine: str, to: Path) -> None:
    """Medians of the rounds with their range."""
    figure = Figure(figsize=(6, 3.4), dpi=100, facecolor="white", layout="constrained")
    axes = figure.subplots()
    for name, (colour, words) in LINES.items():
        values = [[one[name] for one in rounds] for rounds in sizes.values()]
        axes.plot(list(sizes), [statistics.median(some) for some in values], color=colour, marker="o", markersize=4, label=words)
        axes.fill_between(list(sizes), [min(some) for some in values], [max(some) for some in values], color=colour, alpha=0.15, lw=0)
    axes.set_xscale("log")
    axes.set_xticks(list(sizes), [short(size) for size in sizes])
    axes.xaxis.minorticks_off()
    medians = [statistics.median(one[name] for one in rounds) for rounds in sizes.values() for name in LINES]
    if max(medians) > WIDE * min(medians):
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter("{x:g}")
    else:
        axes.set_ylim(bottom=0)
    axes.set_xlabel(what, color=INK)
    axes.set_ylabel("ms a step", color=INK)
    axes.set_title(machine, fontsize=8, color=INK)
    axes.tick_params(colors=INK)
    axes.grid(axis="y", color="#e2e8f0")
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(INK)
    axes.legend(frameon=False, labelcolor=INK)
    figure.savefig(to)


def short(number: int) -> str:
    for unit, word in ((10**6, "M"), (1000, "k")):
        if number >= unit:
            return f"{number / unit:.3g}{word}"
    return str(number)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
