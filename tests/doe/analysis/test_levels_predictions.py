"""What the profiler shows of factors with levels: predicted and observed, run or not."""

from dataclasses import replace

import numpy as np
import pytest
from level_tables import factor, full, seen, words

from doe.analysis.analyze import analyze
from doe.analysis.options import AnalysisOptions
from doe.views.tables.best import best_table


def additive(keep=None, spread=0.05):
    """A and B add up, C does nothing."""
    index = full((3, 2, 2), 3)
    noise = np.random.default_rng(8).normal(0.0, spread, len(index))
    y = 5.0 + np.array([0.0, 1.0, 3.0])[index[:, 0]] - 2.0 * index[:, 1] + noise
    chosen = np.ones(len(index), dtype=bool) if keep is None else keep(index)
    return index[chosen], y[chosen]


def test_every_combination_is_predicted_by_the_significant_terms_alone():
    index, y = additive()
    found = analyze(seen(words((3, 2, 2)), index, y))
    assert [at.levels for at in found.predictions[:4]] == [
        (0, 0, 0), (1, 0, 0), (2, 0, 0), (0, 1, 0),
    ]  # fmt: skip
    assert len(found.predictions) == 12
    for at in found.predictions:
        rows = (index == at.levels).all(axis=1)
        assert at.observed == pytest.approx(y[rows].mean())
        assert at.n == 3
        alike = (index[:, 0] == at.levels[0]).astype(float), index[:, 1] == at.levels[1]
        main = [y[side.astype(bool)].mean() for side in alike]
        assert at.mean == pytest.approx(sum(main) - y.mean()), "C and all interactions are left out"
        assert at.ci_low < at.mean < at.ci_high


def test_a_combination_that_never_ran_is_predicted_without_an_interval():
    index, y = additive(lambda i: ~((i[:, 0] == 2) & (i[:, 1] == 1)))
    found = analyze(seen(words((3, 2, 2)), index, y))
    (missing, other) = (at for at in found.predictions if at.levels[:2] == (2, 1))
    assert missing.mean == pytest.approx(6.0, abs=0.1)
    assert missing.mean == pytest.approx(other.mean)
    assert (missing.ci_low, missing.ci_high, missing.observed, missing.n) == (None,) * 3 + (0,)


def test_an_interaction_says_nothing_of_a_combination_that_never_ran():
    index, y = additive(lambda i: ~((i[:, 0] == 2) & (i[:, 1] == 1)))
    y = y + 4.0 * ((index[:, 0] == 1) & (index[:, 1] == 1))
    found = analyze(seen(words((3, 2, 2)), index, y))
    missing = [at for at in found.predictions if at.levels[:2] == (2, 1)]
    assert [at.mean for at in missing] == [None, None]


def test_centre_runs_come_last_and_logarithms_come_back():
    factors = (factor("a", (1.0, 100.0), "log"), factor("b", (0, 2), "linear"))
    index = np.vstack([full((2, 2), 3), np.full((2, 2), -1)])
    noise = np.random.default_rng(2).normal(0.0, 0.02, 14)
    y = np.exp(np.append(index[:12, 0] * 2.0, [1.5, 1.5]) + noise)
    found = analyze(seen(factors, index, y), AnalysisOptions(transform="log"))
    last = found.predictions[-1]
    assert (last.levels, last.mean, last.n) == ((-1, -1), None, 2)
    assert last.observed == pytest.approx(np.exp(np.log(y[12:]).mean()))
    first = found.predictions[0]
    assert first.mean == pytest.approx(np.exp(np.log(y[:12][index[:12, 0] == 0]).mean()))
    assert first.ci_low > 0


def test_predictions_stay_where_the_response_can_be():
    """Two factors that divide a loss by 20 each: straight lines put their corner below 0."""
    index = full((2, 2, 2), 3)
    noise = np.random.default_rng(3).normal(0.0, 0.05, len(index))
    y = 100.0 * 0.05 ** (index[:, 0] + index[:, 1]) * np.exp(noise)
    data = replace(seen(words((2, 2, 2)), index, y), goal="min")
    found = analyze(data, AnalysisOptions(order=1))
    assert all(at.mean > 0 and at.ci_low > 0 and at.geometric for at in found.predictions)
    corner = found.best.reduced.best
    assert corner.levels[:2] == (1, 1)
    assert corner.geometric
    assert corner.mean == pytest.approx(0.25, rel=0.1)
    note = best_table(found).notes
    assert any("at a geometric mean of 0.2" in line for line in note)
    plain = analyze(replace(data, y=data.y + 1000.0), AnalysisOptions(order=1))
    assert not any(at.geometric for at in plain.predictions)
