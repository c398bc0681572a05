"""Configurations known to be close to the best: their bounds, and how often these are false."""

import numpy as np
import pytest
from factorial_tables import two_level_runs
from scipy import special

from benchmarks.looks import in_parts, too_high
from benchmarks.stopping import bounds_of
from doe.analysis.best import critical_value
from doe.analysis.contrasts import sign_columns
from doe.analysis.dataset import Dataset
from doe.analysis.spending import RESERVE, Rule
from doe.analysis.within import closest, effective_pairs, gaps_to_best
from doe.terms import terms_up_to


@pytest.mark.parametrize("count", [2, 8, 64])
def test_as_many_pairs_as_dunnetts_quantile_says_of_independent_means(count):
    pairs = effective_pairs(np.eye(count).tobytes(), count, 0.05)
    dunnett = critical_value(((0.5, count - 1),), 10**6, 0.05)
    assert -special.ndtri(0.05 / pairs) == pytest.approx(dunnett, abs=0.01)


@pytest.mark.parametrize("plan", [in_parts(4, 8), in_parts(6, 4)])
def test_over_all_looks_some_bound_fails_as_often_as_it_may(plan):
    """The best configuration against all others, by 40 000 paths of a model's coefficients."""
    terms = terms_up_to(plan.factors, 2)
    rows = sign_columns(np.arange(1 << plan.factors), [0, *terms])
    pairs = effective_pairs((rows @ rows.T).tobytes(), len(rows), plan.rule.alpha)
    edges = -special.ndtri(np.array(plan.rule.negligible_levels(pairs)) / 2.0)
    away = rows[1:, 1:] - rows[0, 1:]
    away /= np.linalg.norm(away, axis=1)[:, None]
    rng, before, count = np.random.default_rng(1), 0.0, 40_000
    path, failed = np.zeros((count, len(terms))), np.zeros(count, dtype=bool)
    for share, edge in zip(plan.rule.shares, edges, strict=True):
        path += np.sqrt(share - before) * rng.standard_normal(path.shape)
        failed |= (path @ away.T).max(axis=1) > edge * np.sqrt(share)
        before = share
    assert RESERVE * 0.05 - 0.003 < failed.mean() < 0.05 + 0.003


def study(rng, replicates, effect, sigma):
    """Factor A alone does something; the more, the better."""
    cells = np.tile(np.arange(8), replicates)
    portion = np.repeat(np.arange(1, replicates + 1), 8)
    y = effect * (cells & 1) + sigma * rng.standard_normal(len(cells))
    return Dataset(two_level_runs(cells, 3, portion - 1), "y", y, goal="max"), portion


def test_all_bounds_of_all_looks_hold_together():
    """One configuration is 1 above the three others; a bound of theirs below 1 is an error."""
    rng, rule, wrong = np.random.default_rng(2), Rule(6), 0
    cells, portion = np.tile(np.arange(4), 6), np.repeat(np.arange(1, 7), 4)
    for _ in range(300):
        y = (cells == 3) + 0.3 * rng.standard_normal(24)
        data = Dataset(two_level_runs(cells, 2, portion - 1), "y", y, goal="max")
        looks = [gaps_to_best(data, np.flatnonzero(portion <= n), rule, n, 1) for n in rule.looks]
        wrong += any(b < 1.0 and s != "A1B1" for look in looks for s, b in look.items())
    assert wrong > 300 * 0.02
    assert not too_high(wrong / 300, 300)


def test_a_bound_is_the_least_of_all_looks_so_far():
    data, portion = study(np.random.default_rng(3), 4, 2.0, 0.3)
    data.y[24:] += 20.0 * np.random.default_rng(4).standard_normal(8)  # a wild last replicate
    rule = Rule(4)
    looks = [gaps_to_best(data, np.flatnonzero(portion <= n), rule, n, 1) for n in rule.looks]
    close = closest(data, portion, rule, 1, 0.0)
    assert close.gap == pytest.approx(min(min(bounds.values()) for bounds in looks))
    assert close.gap < 0.5 * min(looks[-1].values())
    assert not close.is_known
    assert close.replicates == 4


@pytest.mark.parametrize("plan", [in_parts(4, 3), in_parts(6, 2)])
def test_bounds_of_many_studies_at_once_are_those_of_each(plan):
    """Also where runs are lost, and where three factors interact beyond the model."""
    cell, portion = plan.runs
    terms, rng = terms_up_to(plan.factors, 3), np.random.default_rng(1)
    sizes = np.array([0.6 if term.bit_count() == 3 else 1.0 for term in terms])[:, None]
    rows = sign_columns(np.arange(1 << plan.factors), terms)
    y = (rows @ (sizes * rng.standard_normal((len(terms), 2))))[cell] / 2.0
    y += 0.6 * rng.standard_normal(y.shape)
    lost = rng.random(len(y)) < 0.1
    runs = two_level_runs(cell, plan.factors, portion - 1)
    names = [runs.config(i) for i in range(1 << plan.factors)]
    for n, bounds in bounds_of(plan, y, lost):
        observed = np.flatnonzero((portion <= n) & ~lost)
        for study in range(y.shape[1]):
            data = Dataset(runs, "y", y[:, study], goal="max")
            found = gaps_to_best(data, observed, plan.rule, n, 1)
            assert [found[name] for name in names] == pytest.approx(
                bounds[:, study], rel=0.01, abs=0.03
            )


def test_responses_share_the_error():
    data, portion = study(np.random.default_rng(5), 3, 2.0, 0.5)
    alone, shared = (closest(data, portion, Rule(3), n, 0.0).gap for n in (1, 5))
    assert alone < shared
