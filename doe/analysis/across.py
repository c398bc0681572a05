"""Several responses side by side, with false discovery control over all of their tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from doe.analysis.analyze import Analysis
from doe.analysis.pvalues import benjamini_hochberg


class TermAcross(Struct, frozen=True):
    """One term over several responses."""

    term: str
    effects: tuple[float | None, ...]  # one per response, None where inestimable
    p: tuple[float | None, ...]
    p_bh: tuple[float | None, ...]  # false discovery control over all terms and responses
    average: float  # mean of the effects
    relative: tuple[float | None, ...]  # effects over the largest one of their response
    strength: float  # sum of squares of the relative effects


class Across(Struct, frozen=True):
    """Several responses side by side, ranked by the magnitude of the average effect."""

    responses: tuple[str, ...]
    rows: tuple[TermAcross, ...]  # ranked by average
    strongest: tuple[TermAcross, ...]  # ranked by strength, which no response's unit decides
    tests: int  # number of tests that the false discovery rate covers


def across(analyses: Sequence[Analysis]) -> Across:
    """Effects of all terms on all responses, ranked by the magnitude of their average.

    An average means something where the responses share a unit; `strongest` ranks without one. P
    values are adjusted by Benjamini and Hochberg over every term of every response together.
    """
    names = list(dict.fromkeys(e.term for a in analyses for e in a.effects))
    tables = [{e.term: e for e in a.effects} for a in analyses]
    largest = [max((abs(e.effect) for e in a.effects), default=0.0) for a in analyses]
    lines = [[table.get(name) for table in tables] for name in names]
    p = [[None if e is None else e.p for e in line] for line in lines]
    tested = np.array([value for line in p for value in line if value is not None])
    adjusted = iter(benjamini_hochberg(tested).tolist())
    rows = []
    for name, line, p_line in zip(names, lines, p, strict=True):
        relative = tuple(
            None if e is None or top == 0.0 else e.effect / top
            for e, top in zip(line, largest, strict=True)
        )
        rows.append(
            TermAcross(
                term=name,
                effects=tuple(None if e is None else e.effect for e in line),
                p=tuple(p_line),
                p_bh=tuple(None if value is None else next(adjusted) for value in p_line),
                average=float(np.mean([e.effect for e in line if e is not None])),
                relative=relative,
                strength=sum(share**2 for share in relative if share is not None),
            )
        )
    return Across(
        responses=tuple(a.response for a in analyses),
        rows=tuple(sorted(rows, key=lambda row: -abs(row.average))),
        strongest=tuple(sorted(rows, key=lambda row: (-row.strength, row.term))),
        tests=len(tested),
    )
