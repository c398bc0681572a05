"""Spread the configurations of a replicate over unlike machines.

Runs of one factor level on one model of GPU, and of the other level on another, would confound the
factor with the GPU. So a free slot takes, of the runs of the replicate that is due, the one whose
levels its kind of machine has had least.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from doe.design.runs import Run
from doe.terms import level_text

TOLERATED_RUNS, TOLERATED_SHARE = 1.0, 0.1
"""How far a level may be from its share of a kind's runs before it is told."""


class Placed(NamedTuple):
    """A run and the kind of machine that has executed it, or does."""

    run: Run
    kind: str


def pick(waiting: Sequence[Run], kind: str, placed: Iterable[Placed]) -> Run:
    """Return the waiting run whose levels this kind has had least; of equals, the first."""
    had = Counter(item for p in placed if p.kind == kind for item in p.run.levels.items())
    return min(waiting, key=lambda run: sum(had[item] for item in run.levels.items()))


def unbalanced(placed: Sequence[Placed]) -> list[str]:
    """Name the levels that a kind of machine has had more often than its share of the runs."""
    number = Counter(p.kind for p in placed)
    total = Counter(item for p in placed for item in p.run.levels.items())
    texts = []
    for kind, runs in number.items():
        had = Counter(item for p in placed if p.kind == kind for item in p.run.levels.items())
        for (key, level), count in had.items():
            expected = runs * total[key, level] / len(placed)
            if count - expected > max(TOLERATED_RUNS, TOLERATED_SHARE * runs):
                texts.append(
                    f"{key} = {level_text(level)} in {count} of {runs} runs on {kind}, and in "
                    f"{total[key, level] - count} of {len(placed) - runs} elsewhere"
                )
    return texts
