"""All combinations of the levels."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import msgspec

from doe.design.configurations import Levels, Point, centre_points, levels_of_rows
from doe.study.levels import allowed_rows
from doe.study.values import Study
from doe.terms import factors_in


class Settings(msgspec.Struct, frozen=True):
    """No settings: `fraction`, `blocks` and `exclude` of the study select from the factorial."""


def points(study: Study, settings: Settings) -> list[Point]:
    """Return all combinations except excluded ones, in blocks, with centre runs."""
    return blocked_points(study, allowed_rows(study))


def terms(study: Study, settings: Settings) -> None:
    """Return None: as many interactions as the runs can estimate."""
    return


def describe(study: Study, settings: Settings) -> str:
    """Describe the design: nothing is aliased."""
    return "Full factorial: no effect is aliased with another."


def blocked_points(study: Study, rows: Sequence[int]) -> list[Point]:
    """Return rows of the full factorial in the blocks given by `blocks`, and centre runs in
    turn."""
    words = [factors_in(word) for word in study.block_words]
    low = [factor.low for factor in study.factors]

    def block(levels: Levels) -> int:
        """Return the block: bit i is 1 if the product of the codes of word i is positive."""
        odd = (sum(levels[f] == low[f] for f in word) % 2 for word in words)
        return sum(1 << i for i, negative in enumerate(odd) if not negative)

    points = [Point(levels, block(levels)) for levels in levels_of_rows(study.factors, rows)]
    return points + centre_points(study, 1 << len(words))


def row_numbers(matrix: Any, sizes: Sequence[int]) -> list[int]:
    """Return numbers of the configurations in a matrix of level numbers, in standard order."""
    weights = [math.prod(sizes[:i]) for i in range(len(sizes))]
    return sorted(int(row) for row in matrix.astype(int) @ weights)
