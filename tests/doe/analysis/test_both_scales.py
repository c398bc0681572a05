"""The raw and the log scale side by side: each as an analysis on that scale alone says it."""

import numpy as np
import pandas as pd
import pytest
from level_tables import full, seen, words

from doe.analysis.analyze import analyze
from doe.analysis.options import AnalysisOptions
from doe.analysis.tables import TableOptions, table_datasets
from doe.views.tables import response_tables, screen_tables


def multiplied(drop=()):
    """A response whose factors multiply: A doubles it, B halves it, C does nothing."""
    index = full((2, 2, 2), 3)
    noise = np.random.default_rng(3).normal(0.0, 0.08, len(index))
    y = np.exp(1.0 + np.log(2.0) * index[:, 0] - np.log(2.0) * index[:, 1] + noise)
    keep = [i for i in range(len(y)) if i not in drop]
    return index[keep], y[keep]


def observed(drop=(), shift=0.0):
    index, y = multiplied(drop)
    frame = pd.DataFrame(index, columns=list("ABC")).assign(y=y - shift)
    options = TableOptions(factors=("A", "B", "C"), goal="max")
    return table_datasets(frame, options, ("y",))[0]


@pytest.mark.parametrize("drop", [(), (0, 5)])
@pytest.mark.parametrize("transform", ["none", "log", "boxcox"])
def test_two_levels_agree_with_an_analysis_on_each_scale_alone(drop, transform):
    case = observed(drop)
    both = analyze(case, AnalysisOptions(transform=transform)).scales
    raw, log = (analyze(case, AnalysisOptions(transform=name)) for name in ("none", "log"))
    assert (both.r2, both.log_r2) == pytest.approx((raw.r2, log.r2))
    ratios = {e.term: e for e in log.response_scale}
    for term, a, b in zip(both.terms, raw.effects, log.effects, strict=True):
        assert term.term == a.term == b.term
        mine = (term.effect, term.ci_low, term.ci_high, term.p, term.p_holm, term.percent)
        assert mine == pytest.approx((a.effect, a.ci_low, a.ci_high, a.p, a.p_holm, a.percent))
        assert (term.log_p, term.log_p_holm, term.log_percent) == pytest.approx(
            (b.p, b.p_holm, b.percent)
        )
        times = ratios[term.term]
        assert (term.ratio, term.ratio_low, term.ratio_high) == pytest.approx(
            (times.value, times.low, times.high)
        )


@pytest.mark.parametrize("transform", ["none", "log"])
def test_levels_agree_with_an_analysis_on_each_scale_alone(transform):
    index = full((3, 2), 3)
    noise = np.random.default_rng(4).normal(0.0, 0.1, len(index))
    case = seen(words((3, 2)), index, np.exp(index @ [0.5, 1.0] + noise))
    both = analyze(case, AnalysisOptions(transform=transform)).scales
    raw, log = (analyze(case, AnalysisOptions(transform=name)) for name in ("none", "log"))
    for term, a, b in zip(both.terms, raw.tests, log.tests, strict=True):
        assert (term.p, term.p_holm, term.percent) == pytest.approx((a.p, a.p_holm, a.percent))
        assert (term.log_p, term.log_percent) == pytest.approx((b.p, b.percent))
    effects = {term.term: term.effect for term in both.terms}
    assert effects["A"] is None, "three levels have no single effect"
    assert effects["B"] == pytest.approx(raw.effects[0].effect)


def test_interactions_that_only_the_raw_scale_has_are_named():
    both = analyze(observed(), AnalysisOptions()).scales
    assert both.sentence == (
        "Significant after Holm's adjustment: on both scales A, B; on the raw scale alone AB; "
        "on the log scale alone none."
    )


def test_a_value_without_a_logarithm_leaves_one_scale():
    assert analyze(observed(shift=1.5)).scales is None
    case = seen(words((3, 2)), full((3, 2), 2), np.arange(12.0))
    assert analyze(case).scales is None


def test_the_page_has_the_table_and_the_terminal_has_not():
    analysis = analyze(observed())
    names = [table.name for table in response_tables(analysis)]
    assert "scales y" in names
    assert "scales y" not in [table.name for table in screen_tables(analysis)]
    table = next(table for table in response_tables(analysis) if table.name == "scales y")
    assert table.rows[0].values[0] == "AB", "where the scales differ comes first"
