"""Several responses side by side, with false discovery control over all of their tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from doe.analysis.analyze import Analysis
from doe.analysis.pvalues import benjamini_hochberg


class TermByResponse(Struct, frozen=True):
    """One term over several responses."""

    term: str
    effects: tuple[float | None, ...]  # one per response, None where there is no single one
    t: tuple[float | None, ...]
    p: tuple[float | None, ...]
    p_bh: tuple[float | None, ...]  # false discovery control over all terms and responses
    average: float | None  # mean of the effects; None where the study does not average
    mask: int = 0


class EffectsByResponse(Struct, frozen=True):
    """Several responses side by side."""

    responses: tuple[str, ...]
    rows: tuple[TermByResponse, ...]  # ranked
    ranked_by: str  # |average effect|, smallest adjusted p, or largest |t|
    tests: int  # number of tests that the false discovery rate covers


class _Line(NamedTuple):
    """Figures of a term of one response that are compared."""

    effect: float | None  # None where the term has more degrees of freedom than one
    t: float | None  # root of F for such a term
    p: float | None
    mask: int


def _lines(analysis: Analysis) -> dict[str, _Line]:
    effects = {e.term: _Line(e.effect, e.t, e.p, e.mask) for e in analysis.effects}
    return {
        test.term: effects.get(test.term)
        or _Line(None, None if test.f is None else float(np.sqrt(test.f)), test.p, test.mask)
        for test in analysis.tests
    }


def effects_by_response(analyses: Sequence[Analysis], averaged: bool = False) -> EffectsByResponse:
    """Effects of all terms on all responses, the most significant first.

    Effects on different responses cannot be compared by their size: terms are ranked by their
    smallest p, adjusted by Benjamini and Hochberg over every term of every response together, and
    by the largest |t| where p values tie or there are none. Where the study declares the average of
    these responses (`averaged`), the rank is by the magnitude of the average effect.
    """
    tables = [_lines(analysis) for analysis in analyses]
    names = list(dict.fromkeys(term for table in tables for term in table))
    lines = [[table.get(name) for table in tables] for name in names]
    p = [[None if e is None else e.p for e in line] for line in lines]
    tested = np.array([value for line in p for value in line if value is not None])
    adjusted = iter(benjamini_hochberg(tested).tolist())
    rows = []
    for name, line, p_line in zip(names, lines, p, strict=True):
        effects = tuple(None if e is None else e.effect for e in line)
        known = [effect for effect in effects if effect is not None]
        rows.append(
            TermByResponse(
                term=name,
                effects=effects,
                t=tuple(None if e is None else e.t for e in line),
                p=tuple(p_line),
                p_bh=tuple(None if value is None else next(adjusted) for value in p_line),
                average=float(np.mean(known)) if averaged and known else None,
                mask=next(e.mask for e in line if e is not None),
            )
        )
    by = "|average effect|" if averaged else "smallest adjusted p" if len(tested) else "largest |t|"
    return EffectsByResponse(
        responses=tuple(a.response for a in analyses),
        rows=tuple(sorted(rows, key=_by_average if averaged else _by_evidence)),
        ranked_by=by,
        tests=len(tested),
    )


def _by_average(row: TermByResponse) -> float:
    return -abs(row.average or 0.0)


def _by_evidence(row: TermByResponse) -> tuple[float, float]:
    smallest = min((p for p in row.p_bh if p is not None), default=1.0)
    return smallest, -max((abs(t) for t in row.t if t is not None), default=0.0)
