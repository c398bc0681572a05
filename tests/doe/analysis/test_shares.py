"""Shares: log odds, counted items, and differences in points."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from level_tables import factor, full, seen

from doe.analysis.analyze import Analysis, analyze
from doe.analysis.dataset import Dataset
from doe.analysis.estimators.quasi_binomial import QuasiBinomial
from doe.analysis.options import AnalysisOptions
from doe.analysis.scales.logit import logit_scale
from doe.errors import DoeError
from doe.views.headlines import headlines
from doe.views.tables import response_tables

ANSWERS = json.loads((Path(__file__).parent / "r" / "shares.json").read_text(encoding="utf-8"))
"""What r/shares.R printed."""
ITEMS = 500


def accuracy(items: int = ITEMS, top: float = 1.0, goal: str = "max") -> Dataset:
    """A 2³ in which A takes the share of right items from .96 to .998, some runs to all."""
    index = full((2, 2, 2), 3)
    rate = np.where(index[:, 0] == 1, 0.998, 0.96)
    counts = np.random.default_rng(2).binomial(ITEMS, rate)
    assert counts.max() == ITEMS
    data = seen([factor(key, [0, 1]) for key in "ABC"], index, counts / ITEMS * top, goal=goal)
    return replace(data, items=items)


def on_logit(data: Dataset) -> Analysis:
    return analyze(replace(data, scale="logit"))


def ends(analysis: Analysis) -> list[float]:
    """Every mean, prediction and bound of one on the response scale."""
    assert analysis.best is not None
    shown = (
        *(*analysis.levels, *analysis.combinations, analysis.mean),
        *(*analysis.best.cells, analysis.best.reduced.best, *analysis.predictions),
    )
    values = [end for value in shown for end in (value.mean, value.ci_low, value.ci_high)]
    return [value for value in values if value is not None]


def test_the_scale_goes_there_and_back_with_none_and_all_of_the_items() -> None:
    counts = np.array([0.0, 1.0, 250.0, 499.0, 500.0])
    for top in (1.0, 100.0, 500.0):
        scale = logit_scale(top, ITEMS)
        z = scale.forward(counts / ITEMS * top)
        assert z == pytest.approx(np.log((counts + 0.5) / (ITEMS - counts + 0.5)))
        assert scale.back(z) == pytest.approx(counts / ITEMS * top, abs=1e-9 * top)
        assert scale.back(np.array([-60.0, 60.0])).tolist() == [0.0, top]


def test_no_interval_of_a_share_goes_beyond_it() -> None:
    raw = analyze(accuracy(items=0))
    assert max(ends(raw)) > 1.0
    said = "Intervals of y reach beyond 1, and no value does: if it is a proportion, set its scale"
    assert said in raw.warnings[-1]
    for scale in ("raw", "logit"):
        shown = analyze(replace(accuracy(), scale=scale))
        assert 0.0 <= min(ends(shown)) < 0.97 < max(ends(shown)) <= 1.0
        assert not any("beyond" in warning for warning in shown.warnings)
    percent = on_logit(replace(accuracy(top=100.0), unit="%"))
    assert 97.0 < max(ends(percent)) <= 100.0


def test_shares_percentages_and_counts_say_the_same() -> None:
    share = on_logit(accuracy())
    others = (on_logit(replace(accuracy(top=100.0), unit="%")), on_logit(accuracy(top=ITEMS)))
    for other in others:
        for one, same in zip(share.tests, other.tests, strict=True):
            assert one.p == pytest.approx(same.p)
        assert other.response_scale[0].value == pytest.approx(share.response_scale[0].value)
    assert [a.transform.label("y") for a in others] == ["logit (y / 100)", "logit (y / 500)"]


def test_effects_are_ratios_of_odds() -> None:
    analysis = on_logit(accuracy())
    z = logit_scale(1.0, ITEMS).forward(accuracy().y)
    high = accuracy().runs.index[:, 0] == 1
    ratio = np.exp(z[high].mean() - z[~high].mean())
    assert analysis.response_scale[0].value == pytest.approx(ratio)
    assert f"A multiplies the odds of y by {ratio:.4g}"[:30] in headlines(analysis).effects[0]
    assert "Its logit mean is" in headlines(analysis).best


def test_a_difference_of_percentages_is_in_points() -> None:
    data = replace(accuracy(top=100.0), unit="%")
    analysis = analyze(data)
    assert " points (95 % CI" in headlines(analysis).effects[0]
    titles = [table.title for table in response_tables(analysis)]
    assert any(title.startswith("Effects on y [points]") for title in titles)
    assert any("y [%]" in title for title in titles)
    several = [factor("A", [0, 1]), factor("optimizer", ["adam", "lion", "sgd"])]
    index = full((2, 3), 4)
    y = 80.0 + 5.0 * index[:, 1] + np.random.default_rng(0).normal(size=len(index))
    told = headlines(analyze(replace(seen(several, index, y, goal="max"), unit="%"))).effects
    assert any("sgd is " in line and " points (simultaneous 95 %" in line for line in told)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (accuracy(items=0), "needs 0 < y < 1, and 'y' has 1; .* of how many items it is the share"),
        (replace(accuracy(top=-1.0), items=9), "'y' has −1.*which is not a share of 9 items"),
        (replace(accuracy(top=200.0), items=9), "'y' has 200, which is not a share of 9 items"),
    ],
)
def test_what_is_no_share_is_refused(data: Dataset, message: str) -> None:
    with pytest.raises(DoeError, match=message):
        on_logit(data)


def test_counted_items_agree_with_r() -> None:
    index = np.column_stack([ANSWERS["a"], ANSWERS["o"]])
    y = np.array(ANSWERS["k"]) / ANSWERS["items"]
    data = seen([factor("a", [0, 1]), factor("o", ["x", "y", "z"])], index, y, goal="max")
    found = on_logit(replace(data, items=ANSWERS["items"])).get(QuasiBinomial)
    assert found is not None
    assert found.dispersion == pytest.approx(ANSWERS["dispersion"], rel=1e-6)
    for row in found.terms:
        answer = ANSWERS["terms"][row.term]
        assert (row.f, row.p) == pytest.approx((answer["f"], answer["p"]), rel=1e-5)
    a = found.terms[0]
    assert [a.odds_ratio, a.low, a.high] == pytest.approx(ANSWERS["odds"], rel=1e-5)


def test_counted_items_need_items_and_runs_to_spare() -> None:
    assert on_logit(accuracy()).get(QuasiBinomial) is not None
    assert analyze(accuracy(items=0)).get(QuasiBinomial) is None
    once = accuracy()
    first = replace(once, runs=once.runs.only(np.arange(8)), y=once.y[:8])
    assert on_logit(first).get(QuasiBinomial) is None


def test_terms_that_only_one_way_calls_are_named() -> None:
    """Runs at .999 vary eight times as much on the logit scale as those at .95."""
    index = full((2, 2), 6)
    counts = np.where(index[:, 0] == 1, 999, 950 - 14 * index[:, 1])
    spread = np.tile([-1, 1, 0, -3, 1, 2], 4).reshape(4, 6).T.ravel()
    counts = counts + np.where(index[:, 0] == 1, np.minimum(spread, 1), 2 * spread)
    data = seen([factor(key, [0, 1]) for key in "AB"], index, counts / 1000, goal="max")
    data = replace(data, items=1000, scale="logit")
    analysis = analyze(data, AnalysisOptions(order=1))
    found = analysis.get(QuasiBinomial)
    assert found is not None
    assert not found.agree
    assert "B by counted items alone" in found.sentence
    assert found.sentence in headlines(analysis).fragile


def test_other_scales_start_from_the_values_themselves() -> None:
    """A share of none has no logarithm, and rounding on the way back must not give it one."""
    data = accuracy()
    none = replace(data, y=np.where(np.arange(24) == 0, 0.0, data.y))
    assert on_logit(none).scales is None
    scales = on_logit(data).scales
    assert scales is not None
    assert scales.terms[0].effect == pytest.approx(analyze(data).effects[0].effect)


def test_a_transformation_may_be_asked_for() -> None:
    asked = analyze(accuracy(), AnalysisOptions(transform="logit"))
    assert asked.transform.name == "logit"
    assert asked.effects[0].effect == on_logit(accuracy()).effects[0].effect
