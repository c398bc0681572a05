"""Several responses side by side, with false discovery control over all of their tests."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from doe.analysis.adjust import benjamini_hochberg
from doe.analysis.values import Across, Analysis, TermAcross


def across(analyses: Sequence[Analysis]) -> Across:
    """Effects of all terms on all responses, ranked by the magnitude of their average.

    The average over responses ranks them; p values are adjusted by
    Benjamini and Hochberg over every term of every response together.
    """
    names = list(dict.fromkeys(e.term for a in analyses for e in a.effects))
    tables = [{e.term: e for e in a.effects} for a in analyses]
    effects = [[t[name].effect if name in t else None for t in tables] for name in names]
    p = [[t[name].p if name in t else None for t in tables] for name in names]
    flat = np.array([value for line in p for value in line if value is not None])
    adjusted = iter(benjamini_hochberg(flat).tolist())
    rows = []
    for name, line, tested in zip(names, effects, p, strict=True):
        known = [value for value in line if value is not None]
        rows.append(
            TermAcross(
                term=name,
                effects=tuple(line),
                p=tuple(tested),
                p_bh=tuple(None if value is None else next(adjusted) for value in tested),
                average=float(np.mean(known)),
            )
        )
    rows.sort(key=lambda row: -abs(row.average))
    return Across(tuple(a.response for a in analyses), tuple(rows), len(flat))
