"""Parts of all combinations: generalised subset designs (Surowiec et al. 2017)."""

from __future__ import annotations

import math
from functools import cache

from doe.design.configurations import Point
from doe.design.kinds.factorial import Settings, blocked_points, row_numbers
from doe.design.kinds.factorial import terms as terms
from doe.design.pydoe import pydoe
from doe.errors import DoeError
from doe.study.levels import allowed_rows, inestimable_factor
from doe.study.values import Study

MOST_ROWS = 1 << 20
"""Number of rows of pydoe's orthogonal arrays: N to the number of factors."""


def points(study: Study, settings: Settings) -> list[Point]:
    """Return the first part, without excluded combinations, in blocks, with centre runs."""
    return blocked_points(study, part_rows(study, study.parts)[0])


def describe(study: Study, settings: Settings) -> str:
    """Describe the part."""
    return f"A part, {study.fraction}, of all combinations (generalised subset design)."


def part_rows(study: Study, parts: int) -> list[list[int]]:
    """Return the parts of a generalised subset design (Surowiec et al. 2017), which make up the
    whole.

    The first is one whose runs can estimate every main effect.

    Raises
    ------
    DoeError
        If there is none.
    """
    every, first = _ordered(study, parts)
    if first is not None:
        return [every[first], *every[:first], *every[first + 1 :]]
    most = max((len(rows) for rows in every), default=0)
    count = _coefficients(study)
    runs = f"{most} runs, {count} coefficients" if most else "not that many exist"
    larger = next((n for n in range(parts - 1, 1, -1) if _ordered(study, n)[1] is not None), 1)
    advice = f"use 1/{larger}" if larger > 1 else "use all of them"
    optimal = max(math.prod(study.sizes) // parts, count)
    raise DoeError(
        f'fraction = "1/{parts}": no part of {" × ".join(map(str, study.sizes))} combinations can '
        f'estimate every main effect ({runs}); {advice}, or set kind = "optimal", runs = {optimal} '
        'and model = "linear" in [design]'
    )


def _coefficients(study: Study) -> int:
    """Return the mean and the main effects."""
    return 1 + sum(size - 1 for size in study.sizes)


def _ordered(study: Study, parts: int) -> tuple[list[list[int]], int | None]:
    """Return all parts, and the number of the first that can estimate every main effect."""
    every = [allowed_rows(study, rows) for rows in _parts(study.sizes, parts)]
    for i, rows in enumerate(every):
        if len(rows) >= _coefficients(study) and not inestimable_factor(study, rows):
            return every, i
    return every, None


@cache
def _parts(sizes: tuple[int, ...], parts: int) -> tuple[tuple[int, ...], ...]:
    if parts == 1:
        return (tuple(range(math.prod(sizes))),)
    if len(sizes) < 2 or parts > math.prod(sizes) or parts ** len(sizes) > MOST_ROWS:
        return ()
    try:
        return tuple(
            tuple(row_numbers(part, sizes)) for part in pydoe().gsd(list(sizes), parts, parts)
        )
    except (ValueError, AssertionError):  # pydoe's message for a reduction that does not fit
        return ()
