"""Looks after each replicate: boundaries, intervals, decisions, and what they promise."""

import numpy as np
import pytest
from factorial_tables import two_level_runs
from level_tables import full, words
from scipy import special, stats

from benchmarks.looks import (
    ALPHA,
    CASES,
    ERRORS,
    Plan,
    batch_looks,
    in_parts,
    judged,
    measured,
    too_high,
    wholes,
)
from doe.analysis.dataset import Runs
from doe.analysis.sequential import Start, critical, decide, futures, looks_at
from doe.analysis.spending import SHAPES, Rule, nominal_levels, sequential_p

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


def test_simulated_paths_spend_with_the_square_of_the_share():
    """P of a crossing until the share t is 0.05 t², by 200 000 paths with independent steps."""
    steps = np.random.default_rng(8).standard_normal((5, 200_000))
    z = steps.cumsum(axis=0) / np.sqrt(np.arange(1, 6))[:, None]
    edges = -special.ndtri(np.array(nominal_levels(FIFTHS, 0.05, "quadratic")) / 2)
    crossed = np.logical_or.accumulate(np.abs(z) > edges[:, None]).mean(axis=1)
    assert crossed == pytest.approx(0.05 * np.array(FIFTHS) ** 2, abs=0.0015)


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


@pytest.mark.parametrize("plan", [wholes(3, 4), in_parts(3, 4), in_parts(4, 3), in_parts(6, 2)])
def test_looks_at_many_studies_at_once_are_those_at_each(plan):
    """Also at the looks before two replicates, after which the error is another one."""
    cell, portion = plan.runs
    y = ERRORS["A triples σ"](np.random.default_rng(1), cell, 3) + 5.0 * (portion % 3)[:, None]
    lost = np.random.default_rng(2).random(len(cell)) < 0.05
    runs = two_level_runs(cell, plan.factors, portion - 1)
    many = list(batch_looks(plan, y, lost))
    assert [look.n for look in many] == list(plan.rule.looks)
    for study in range(3):
        values = np.where(lost, np.nan, y[:, study])
        looks = looks_at(values, runs, portion, plan.rule, plan.masks)
        for look, batch in zip(looks, many, strict=True):
            terms = [look.terms[mask] for mask in plan.masks]
            df = batch.df if isinstance(batch.df, float) else batch.df[study]
            assert (look.portions, look.df) == (batch.n, pytest.approx(df))
            assert [t.effect[0] for t in terms] == pytest.approx(batch.effect[:, study])
            assert [t.se[0] for t in terms] == pytest.approx(batch.se[:, study])
        family = len(plan.masks)
        one = judged(plan, iter(many), family, (family, 3))
        for j, state in enumerate(decide(looks, plan.masks, family, plan.rule, 1.0)):
            at = (one.effect + one.negligible)[j, study] / plan.rule.per_replicate
            assert (state.decided_at or 0) == at
            assert (state.verdict == "effect") == (one.effect[j, study] > 0)


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
    assert [look.portions for look in looks] == [2, 3, 4]
    assert np.ptp([term.se[0] for term in looks[-1].terms.values()]) > 0.0  # no longer balanced


def test_no_interval_where_nothing_may_be_spent():
    assert critical(0.0, 7.0) == np.inf


def undecided(effects, columns, **more):
    """A study of one response that has not begun."""
    size = np.atleast_2d(effects)
    ones = np.ones(len(size))
    return Start(0, size, ones, 1.2 * ones, np.zeros(size.shape, bool), columns, **more)


@pytest.mark.parametrize("plan", [wholes(4, 5), in_parts(4, 5)])
def test_simulated_futures_agree_with_simulated_studies(plan):
    """Expected decisions, from chi-squared variances, against those of studies run by run."""
    effect = np.zeros(10)
    effect[0] = 1.5
    foreseen = futures(undecided(effect, 10), plan.size, 10, plan.rule)[:, :, 0].mean(axis=0)
    cell, _ = plan.runs
    y = np.random.default_rng(6).standard_normal((len(cell), 4000)) + 1.5 * (cell & 1)[:, None]
    one = judged(plan, batch_looks(plan, y / 1.2), 10, (10, 4000))  # there 1 matters
    at = one.effect + one.negligible
    for i, n in enumerate(plan.rule.looks):
        assert ((at > 0) & (at <= n)).mean(axis=1) == pytest.approx(foreseen[i], abs=0.06)


def test_futures_of_correlated_responses_are_decided_together():
    rule, effects = Rule(5), np.full((2, 1), 0.6)
    over = []
    for rho in (0.0, 0.9999):
        correlation = np.array([[1.0, rho], [rho, 1.0]])
        start = undecided(effects, 1, correlation=correlation)
        over.append(futures(start, 16, 2, rule).all(axis=(2, 3)).mean(axis=0)[2])
    each = futures(undecided(effects[:1], 1), 16, 2, rule)[:, 2].mean()
    assert over[0] == pytest.approx(each**2, abs=0.04)
    assert over[1] == pytest.approx(each, abs=0.04)


@pytest.mark.parametrize("kind", ["null", "at", "mixed"])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("factors", [3, 4])
def test_error_rates_hold_over_half_replicates(factors, case, kind):
    rates = measured(in_parts(factors, 4), case, kind, 0.7, count=1000)
    assert not too_high(rates.effect, rates.studies)
    assert not too_high(rates.negligible, rates.studies)


def test_a_plain_test_at_every_look_would_be_noticed():
    """The simulation has teeth: nine looks at the level of one err three times as often."""
    plan = Plan(3, Rule(9, first=2))
    y = ERRORS["normal"](np.random.default_rng(7), plan.runs[0], 2000)
    wrong = np.zeros((6, 2000), dtype=bool)
    for look in batch_looks(plan, y):
        wrong |= 2.0 * stats.t.sf(np.abs(look.effect / look.se), look.df) <= ALPHA / 6
    assert too_high(wrong.any(axis=0).mean(), 2000)


def test_both_one_sided_tests_have_all_of_the_error():
    """A term has no effect or one that matters: not half of the level for each."""
    rule = Rule(4, spending="pocock")
    assert rule.negligible_levels(3) == pytest.approx(
        nominal_levels(rule.shares, 0.95 * 0.05 / 3 * 2, "pocock")
    )
    old = Rule(4, spending="pocock", two_sided=True)
    assert old.negligible_levels(3) == old.levels(3)


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


@pytest.mark.slow
def test_error_rates_hold_for_factors_of_three_levels():
    rng = np.random.default_rng(5)
    rule = Rule(4)
    wrong = 0
    for _ in range(300):
        states = decide(three_levels(rng, 4), [1, 2, 3], 3, rule, matters=0.0)
        wrong += any(state.verdict == "effect" for state in states)
    assert not too_high(wrong / 300, 300)
