"""Looks after each replicate: boundaries, intervals, decisions, and what they promise."""

import numpy as np
import pytest
from factorial_tables import two_level_runs
from level_tables import full, words
from scipy import special, stats

from benchmarks.looks import ALPHA, ERRORS, batch_looks, measured, too_high
from doe.analysis.dataset import Runs
from doe.analysis.sequential import (
    SHAPES,
    Rule,
    Start,
    critical,
    decide,
    futures,
    looks_at,
    nominal_levels,
    sequential_p,
)

FIFTHS = (0.2, 0.4, 0.6, 0.8, 1.0)


@pytest.mark.parametrize(
    ("shape", "published"),
    [
        ("obrien-fleming", [4.877, 3.357, 2.680, 2.290, 2.031]),
        ("pocock", [2.438, 2.427, 2.410, 2.397, 2.386]),
    ],
)
def test_boundaries_of_five_looks_are_the_published_ones(shape, published):
    levels = np.array(nominal_levels(FIFTHS, 0.05, shape))
    assert -special.ndtri(levels / 2) == pytest.approx(published, abs=6e-4)


def test_one_look_at_the_end_is_the_ordinary_test():
    assert nominal_levels((1.0,), 0.05, "pocock") == pytest.approx((0.05,), rel=1e-9)


@pytest.mark.parametrize("shape", SHAPES)
def test_a_p_value_is_below_alpha_just_beyond_a_boundary(shape):
    levels = nominal_levels(FIFTHS, 0.01, shape)
    for look, level in enumerate(levels):
        nominal = np.ones((5, 2))
        nominal[look] = level * 0.99, level * 1.01
        inside, outside = sequential_p(nominal, FIFTHS, 0.01, shape)
        assert inside < 0.01 < outside


def looked_at(y, rule):
    """Looks at one study given as replicates x cells."""
    n, cells = y.shape
    index, replicate = np.tile(np.arange(cells), n), np.repeat(np.arange(1, n + 1), cells)
    runs = two_level_runs(index, cells.bit_length() - 1, replicate - 1)
    return looks_at(y.ravel(), runs, replicate, rule)


def test_looks_at_many_studies_at_once_are_those_at_each():
    rule, masks = Rule(4), [1, 2, 3, 4, 5, 6]
    y = ERRORS["A triples σ"](np.random.default_rng(1), (3, 4, 8))
    for i, many in enumerate(batch_looks(y, masks, rule)):
        for study in range(3):
            look = looked_at(y[study], rule)[i]
            terms = [look.terms[mask] for mask in masks]
            assert look.df == pytest.approx(many.df[study])
            assert [term.effect[0] for term in terms] == pytest.approx(many.effect[study])
            assert [term.p(look.df) for term in terms] == pytest.approx(many.p[study])


def test_degrees_of_freedom_are_few_where_few_cells_carry_the_error():
    rng = np.random.default_rng(2)
    even, uneven = rng.standard_normal((2, 6, 8))
    uneven *= np.where(np.arange(8) == 0, 100.0, 1.0)
    assert looked_at(uneven, Rule(6))[-1].df < 6.0 < 20.0 < looked_at(even, Rule(6))[-1].df < 35.0


def test_terms_are_decided_once_and_stay_so():
    rng = np.random.default_rng(3)
    y = 0.3 * rng.standard_normal((6, 8)) + 2.0 * (np.arange(8) & 1)
    rule = Rule(6)
    looks = looked_at(y, rule)
    a, *others = decide(looks, [1, 2, 4], 3, rule, matters=1.0)
    assert a.verdict == "effect"
    assert a.low > 0.0
    assert a.p < 0.05
    assert [other.verdict for other in others] == ["negligible"] * 2
    assert all(max(-other.low, other.high) < 1.0 for other in others)
    (half,) = decide(looks[: a.decided_at - 2], [1], 3, rule, matters=1.0)
    assert half.verdict == "open"
    y[5] += 50.0 * rng.standard_normal(8)  # a wild last replicate
    again = decide(looked_at(y, rule), [1], 3, rule, matters=1.0)[0]
    assert (again.verdict, again.decided_at) == ("effect", a.decided_at)
    assert again.p == pytest.approx(decide(looks[:-1], [1], 3, rule, 1.0)[0].p)


def test_without_what_matters_an_inert_term_stays_open():
    y = 0.1 * np.random.default_rng(4).standard_normal((8, 8))
    assert decide(looked_at(y, Rule(8)), [1], 1, Rule(8), matters=0.0)[0].verdict == "open"


def test_a_run_without_a_value_leaves_the_look_standing():
    y = np.random.default_rng(5).standard_normal((4, 8))
    y[0, 3] = np.nan
    looks = looked_at(y, Rule(4))
    assert [look.replicates for look in looks] == [2, 3, 4]
    assert np.ptp([term.se[0] for term in looks[-1].terms.values()]) > 0.0  # no longer balanced


def test_no_interval_where_nothing_may_be_spent():
    assert critical(0.0, 7.0) == np.inf


def test_simulated_futures_agree_with_simulated_studies():
    """Expected decisions, from chi-squared variances, against those of studies run by run."""
    rule, matters = Rule(5), 1.2
    effect = np.array([1.5, 0.0])
    foreseen = futures(Start(0, effect, 1.0, np.zeros(2)), 16, 2, rule, matters).mean(axis=0)
    rng = np.random.default_rng(6)
    y = rng.standard_normal((4000, 5, 16)) + 1.5 * (np.arange(16) & 1)
    decided = np.zeros((4000, 2), dtype=bool)
    for i, look in enumerate(batch_looks(y, [1, 2], rule)):
        reach = stats.t.isf(rule.levels(2)[i] / 2.0, look.df)[:, None] * look.se
        size = np.abs(look.effect)
        decided |= (size > reach) | (size + reach < matters)
        assert decided.mean(axis=0) == pytest.approx(foreseen[i], abs=0.06)


@pytest.mark.parametrize("draw", ERRORS)
@pytest.mark.parametrize("factors", [3, 4])
def test_error_rates_hold_over_eight_looks(factors, draw):
    for rates in measured(factors, draw, looks=8, count=4000).values():
        assert not too_high(rates.familywise, rates.studies)
        assert not too_high(rates.single, rates.studies)


def test_a_plain_test_at_every_look_would_be_noticed():
    """The simulation has teeth: eight looks at the level of one err three times as often."""
    y = ERRORS["normal"](np.random.default_rng(7), (2000, 9, 8))
    wrong = np.zeros((2000, 6), dtype=bool)
    for look in batch_looks(y, [1, 2, 3, 4, 5, 6], Rule(9)):
        wrong |= look.p <= ALPHA / 6
    assert too_high(wrong.any(axis=1).mean(), 2000)


def test_p_has_no_floor():
    """Far beyond the table the last look of the O'Brien-Fleming shape costs next to nothing."""
    nominal = np.ones((5, 3))
    nominal[4] = 1e-10, 1e-30, 1e-60
    p = sequential_p(nominal, FIFTHS, 0.05, "obrien-fleming")
    assert p[0] > 1e20 * p[1] * 0.1 > p[2]
    assert p == pytest.approx(nominal[4], rel=1.0)


def test_the_interval_is_what_the_intervals_of_all_looks_share():
    """A wild last replicate widens the last interval, not what earlier looks have shown."""
    rng = np.random.default_rng(3)
    y = 0.3 * rng.standard_normal((6, 8)) + 2.0 * (np.arange(8) & 1)
    y[5] += 50.0 * rng.standard_normal(8)
    rule = Rule(6)
    looks = looked_at(y, rule)
    (found,) = decide(looks, [1], 1, rule, matters=1.0)
    ends = []
    for look, level in zip(looks, rule.levels(1), strict=True):
        reach = look.terms[1].reach(level, look.df)[0]
        ends.append((look.terms[1].effect[0] - reach, look.terms[1].effect[0] + reach))
    assert ends[-1][0] < 0.0 < found.low  # the last interval holds zero beside the verdict
    assert found.verdict == "effect"
    assert found.low == pytest.approx(max(low for low, _ in ends))
    assert found.high == pytest.approx(min(high for _, high in ends))


# Factors of more levels --------------------------------------------------------------------------


def three_levels(rng, replicates, effect=0.0, size=1.0):
    """Looks at a 3 x 2 study in which the third level of A is `effect` above the others."""
    index = full((3, 2), replicates)
    replicate = np.repeat(np.arange(1, replicates + 1), 6)
    runs = Runs(words((3, 2)), index, block=replicate - 1)
    y = size * rng.standard_normal(len(index)) + effect * (index[:, 0] == 2)
    return looks_at(y, runs, replicate, Rule(replicates))


def test_a_factor_of_three_levels_is_looked_at_by_pairs_of_them():
    (look,) = three_levels(np.random.default_rng(1), 2)
    a, ab = look.terms[1], look.terms[3]
    assert (a.df, a.patterns) == (2, ("a2 − a1", "a3 − a1", "a3 − a2"))
    assert a.effect[1] == pytest.approx(a.effect[0] + a.effect[2])
    assert a.reach(0.05, look.df) == pytest.approx(
        np.sqrt(2 * stats.f.isf(0.05, 2, look.df)) * a.se
    )
    assert ab.patterns[0] == "a2 − a1 : b2 − b1"
    assert look.terms[2].patterns == ("",)


def test_differences_of_level_means_are_the_patterns():
    rng = np.random.default_rng(2)
    index = full((3, 2), 3)
    y = rng.standard_normal(18)
    runs = Runs(words((3, 2)), index, block=np.repeat(np.arange(3), 6))
    look = looks_at(y, runs, np.repeat(np.arange(1, 4), 6), Rule(3))[-1]
    means = [y[index[:, 0] == i].mean() for i in range(3)]
    assert look.terms[1].effect == pytest.approx(
        [means[1] - means[0], means[2] - means[0], means[2] - means[1]]
    )
    cells = {(i, j): y[(index == (i, j)).all(axis=1)].mean() for i in range(3) for j in range(2)}
    half = (cells[1, 1] - cells[0, 1] - cells[1, 0] + cells[0, 0]) / 2
    assert look.terms[3].effect[0] == pytest.approx(half)


def test_terms_of_three_levels_are_decided():
    looks = three_levels(np.random.default_rng(4), 6, effect=3.0, size=0.3)
    rule = Rule(6)
    a, b, ab = decide(looks, [1, 2, 3], 3, rule, matters=1.5)
    assert (a.verdict, b.verdict, ab.verdict) == ("effect", "negligible", "negligible")
    assert a.pattern in ("a3 − a1", "a3 − a2")
    assert 2.0 < a.low < 3.0 < a.high < 4.0
    assert a.df == ab.df == 2
    assert a.p < 1e-4 < ab.p


def test_error_rates_hold_for_factors_of_three_levels():
    rng = np.random.default_rng(5)
    rule = Rule(4)
    wrong = 0
    for _ in range(300):
        states = decide(three_levels(rng, 4), [1, 2, 3], 3, rule, matters=0.0)
        wrong += any(state.verdict == "effect" for state in states)
    assert not too_high(wrong / 300, 300)
