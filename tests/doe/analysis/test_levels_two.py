"""Two-level designs through the general path: the fast path's answers, and the textbooks'."""

from __future__ import annotations

import numpy as np
import pytest
from factorial_tables import FILTRATION, PLASMA, THREE_BLOCKS, by_term, study, table
from level_tables import full, seen, words

from doe.analysis.analyze import Analysis
from doe.analysis.options import AnalysisOptions
from doe.analysis.effects import Effect
from doe.analysis.analyze import Analysis, analyze
from doe.analysis.dataset import Dataset


def agree(value: float | None, expected: float | None) -> bool:
    """Equal to 1e-10, relative or of numbers of size one."""
    if value is None or expected is None:
        return value is None and expected is None
    return value == pytest.approx(expected, rel=1e-10, abs=1e-10)


def two_level(k: int, y: list[float], blocks: bool = False, goal: str = "min") -> Dataset:
    size = 1 << k
    block = [i // size for i in range(len(y))] if blocks else None
    return seen(words([2] * k), full([2] * k, len(y) // size), y, block, goal=goal)


def check_effects(found: tuple[Effect, ...], expected: tuple[Effect, ...]) -> None:
    known = {effect.term: effect for effect in found}
    assert set(known) == {effect.term for effect in expected}
    for effect in expected:
        for field in Effect.__struct_fields__[1:]:
            assert agree(getattr(known[effect.term], field), getattr(effect, field)), (
                effect,
                field,
            )


def check_same(found: Analysis, expected: Analysis, *, rows: bool = True) -> None:
    check_effects(found.effects, expected.effects)
    for figure in ("r2", "r2_adjusted", "r2_predicted"):
        assert agree(getattr(found.anova, figure), getattr(expected.anova, figure))
    assert agree(found.sigma, expected.sigma)
    assert agree(found.mean.mean, expected.mean)
    if rows:
        known = {row.source: row for row in found.anova.rows}
        assert set(known) == {row.source for row in expected.anova.rows}
        for row in expected.anova.rows:
            assert known[row.source].df == row.df
            for field in ("ss", "ms", "f", "p"):
                assert agree(getattr(known[row.source], field), getattr(row, field)), row
    assert found.best is not None
    for cell, other in zip(found.best.cells, expected.best.cells, strict=True):
        for field in ("n", "mean", "ci_low", "ci_high"):
            assert agree(getattr(cell, field), getattr(other, field)), (cell, other)
        for field in ("mcb_low", "mcb_high"):
            value, same = getattr(cell, field), getattr(other, field)
            # Correlations of unequal means are rounded to 1e-4 before the quadrature.
            assert agree(value, same) if rows else value == pytest.approx(same, abs=1e-3)
        assert tuple(2 * level - 1 for level in cell.levels) == other.coded


@pytest.mark.parametrize("goal", ["min", "max"])
@pytest.mark.parametrize("blocks", [False, True])
@pytest.mark.parametrize("k", [2, 3, 4])
def test_a_balanced_design_agrees_with_the_fast_path(k: int, blocks: bool, goal: str) -> None:
    rng = np.random.default_rng(k)
    y = rng.normal(3.0, 2.0, size=3 << k).tolist()
    expected = study(table("ABCD"[:k], y), "ABCD"[:k], block="day" if blocks else None, goal=goal)
    check_same(analyze(two_level(k, y, blocks, goal)), expected)


@pytest.mark.parametrize("blocks", [False, True])
def test_a_reduced_model_agrees_with_the_fast_path(blocks: bool) -> None:
    y = np.random.default_rng(9).normal(size=32).tolist()
    expected = study(table("ABCD", y), "ABCD", block="day" if blocks else None, order=2)
    found = analyze(two_level(4, y, blocks), AnalysisOptions(order=2))
    assert {row.source for row in found.anova.rows} >= {"Lack of fit", "Error", "Total"}
    check_same(found, expected)


def test_an_unbalanced_design_agrees_with_the_fast_path() -> None:
    y = np.random.default_rng(4).normal(size=24)
    lost = [3, 12, 17]
    frame = table("ABC", y.tolist())
    expected = study(frame.drop(index=lost).reset_index(drop=True), "ABC", block="day")
    y[lost] = np.nan
    found = analyze(two_level(3, y.tolist(), blocks=True))
    check_same(found, expected, rows=False)
    assert found.anova.type3 is not None
    assert expected.anova.type2 is not None
    for rows, others in (
        (found.anova.rows, expected.anova.type2),
        (found.anova.type3, expected.anova.rows),
    ):
        known = {row.source: row for row in rows}
        for row in others:
            assert agree(known[row.source].ss, row.ss)
            assert agree(known[row.source].p, row.p)


def test_a_saturated_design_agrees_with_the_fast_path() -> None:
    expected = study(table("ABCD", FILTRATION), "ABCD")
    found = analyze(two_level(4, [float(v) for v in FILTRATION]))
    check_effects(found.effects, expected.effects)
    lenth = found.half_normal.lenth
    assert lenth is not None
    assert expected.lenth is not None
    for figure in ("s0", "pse", "me", "sme", "me_t", "sme_t"):
        assert agree(getattr(lenth, figure), getattr(expected.lenth, figure))
    for point, other in zip(lenth.points, expected.lenth.points, strict=True):
        assert agree(point.magnitude, other.magnitude)
        assert agree(point.quantile, other.quantile)
    assert lenth.pse == pytest.approx(2.625)  # Montgomery's filtration rate
    assert lenth.me_t == pytest.approx(6.748, abs=5e-4)
    assert [row.f for row in found.anova.rows] == [None] * 16
    assert any(sentence.startswith("A stands out") for sentence in found.sentences)
    assert found.sigma is None


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


def test_two_by_two_in_three_blocks() -> None:
    found = analyze(two_level(2, [float(v) for v in THREE_BLOCKS], blocks=True))
    rows = {row.source: row for row in found.anova.rows}
    assert next(iter(rows)) == "Block"
    assert rows["Block"].ss == pytest.approx(6.5)
    assert rows["A"].f == pytest.approx(50.34, abs=5e-3)
    assert rows["B"].p == pytest.approx(0.00534, abs=5e-6)
    assert (rows["Error"].df, rows["Error"].ss) == (6, pytest.approx(24.833, abs=5e-4))
    same = by_term(study(table("AB", THREE_BLOCKS), "AB", block="day"))
    assert agree(found.effects[0].p, same["A"].p)


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
