"""Two-level designs from textbooks: lost runs, chosen models, combinations that never ran."""

from __future__ import annotations

import numpy as np
import pytest
from factorial_tables import PLASMA
from level_tables import full, seen, words

from doe.analysis.analyze import analyze
from doe.analysis.dataset import Dataset
from doe.analysis.options import AnalysisOptions


def two_level(k: int, y: list[float]) -> Dataset:
    return seen(words([2] * k), full([2] * k, len(y) >> k), y)


def test_plasma_etch() -> None:
    found = analyze(two_level(3, [float(v) for v in PLASMA]))
    effects = {effect.term: effect for effect in found.effects}
    rows = {row.source: row for row in found.anova.rows}
    assert effects["A"].effect == pytest.approx(-101.625)
    assert effects["AC"].effect == pytest.approx(-153.625)
    assert rows["C"].ss == pytest.approx(374850.0625)
    assert rows["C"].f == pytest.approx(166.41, abs=5e-3)
    assert rows["AC"].p == pytest.approx(1.93e-4, rel=3e-3)
    assert (rows["Error"].df, rows["Error"].ss) == (8, pytest.approx(18020.5))
    lost = [float(v) for v in PLASMA[:-1]] + [np.nan]
    found = analyze(two_level(3, lost))
    effects = {effect.term: effect for effect in found.effects}
    assert effects["A"].effect == pytest.approx(-118.0)
    assert effects["A"].t == pytest.approx(-6.059, abs=5e-4)
    assert effects["A"].ss == pytest.approx(49507.56, abs=5e-3)
    assert effects["C"].t == pytest.approx(14.878, abs=5e-4)


# NIST/SEMATECH e-Handbook of Statistical Methods, 5.4.7.1: strength of ceramics, 2^5
CERAMIC = [680.45, 722.48, 702.14, 666.93, 703.67, 642.14, 692.98, 669.26]
CERAMIC += [491.58, 475.52, 478.76, 568.23, 444.72, 410.37, 428.51, 491.47]
CERAMIC += [607.34, 620.80, 610.55, 638.04, 585.19, 586.17, 601.67, 608.31]
CERAMIC += [442.90, 434.41, 417.66, 510.84, 392.11, 343.22, 385.52, 446.73]


def test_a_chosen_model_of_the_ceramic_strength() -> None:
    observed = two_level(5, CERAMIC)
    third = analyze(observed, AnalysisOptions(order=3))
    assert third.r2 == pytest.approx(0.995127, abs=5e-7)
    assert third.sigma == pytest.approx(17.81632, abs=5e-6)
    terms = ("A", "B", "AB", "C", "AC", "D", "AD", "BD", "ABD", "CD", "E", "DE")
    found = analyze(observed, AnalysisOptions(terms=terms))
    assert found.r2 == pytest.approx(0.989114, abs=5e-7)
    assert found.anova.r2_adjusted == pytest.approx(0.982239, abs=5e-7)
    assert found.sigma == pytest.approx(14.96346, abs=5e-6)
    rows = {row.source: row for row in found.anova.rows}
    for term, ss, f in [
        ("A", 894.33, 3.9942),
        ("AB", 4872.57, 21.7618),
        ("ABD", 5895.62, 26.3309),
        ("D", 315132.65, 1407.4390),
        ("DE", 1328.83, 5.9348),
    ]:
        assert rows[term].ss == pytest.approx(ss, abs=6e-3)
        assert rows[term].f == pytest.approx(f, rel=2e-7, abs=6e-5)
    assert rows["A"].p == pytest.approx(0.0602, abs=5e-5)
    assert not any("hierarchy" in warning for warning in found.warnings)
    alone = analyze(observed, AnalysisOptions(terms=("D", "E", "ABD")))
    assert any("hierarchy is broken" in warning for warning in alone.warnings)


def test_an_effect_that_excluded_combinations_leave_open_is_that_of_the_others() -> None:
    """The third level of A never meets the second of B: B is compared at the two others."""
    index = full((3, 2), 3)
    index = index[~((index[:, 0] == 2) & (index[:, 1] == 1))]
    y = 10.0 * (index[:, 0] == 2) + 3.0 * index[:, 1] + np.random.default_rng(6).normal(size=15)
    found = analyze(seen(words((3, 2)), index, y))
    (effect,) = found.effects
    both = index[:, 0] < 2
    means = [y[both & (index[:, 1] == level)].mean() for level in (0, 1)]
    assert effect.effect == pytest.approx(means[1] - means[0])
    pair = next(d for d in found.differences if d.factor == "B")
    figures = (effect.effect, effect.se, effect.t, effect.p)
    assert figures == pytest.approx((pair.difference, pair.se, pair.t, pair.p))
