"""Findings in sentences say what the numbers say."""

import msgspec
import pytest

from doe.analysis.data import FactorLevels
from doe.analysis.estimators.means import Means
from doe.numbers import cell_text
from doe.views.headlines import headlines


def test_the_largest_effects_come_first_with_interval_p_and_direction(paper_report):
    analysis = paper_report.analyses["dec_avg"]
    largest = max(analysis.effects, key=lambda e: abs(e.effect))
    first = headlines(analysis).effects[0]
    low, high = cell_text(largest.ci_low, "num"), cell_text(largest.ci_high, "num")
    assert first == (
        f"Noise ({largest.term}) changes dec_avg by {cell_text(largest.effect, 'signed')} px "
        f"(95 % interval {low} to {high}; "
        f"Holm-adjusted p = {cell_text(largest.p_holm, 'p')}), for the worse."
    )
    found = sum(e.p_holm <= 0.05 for e in analysis.effects)
    assert headlines(analysis).effects[-1].startswith(f"{found} of 63 effects are significant")


def test_with_a_goal_of_more_the_same_effect_is_for_the_better(paper_report):
    analysis = msgspec.structs.replace(paper_report.analyses["dec_avg"], goal="max")
    assert headlines(analysis).effects[0].endswith("for the better.")


def test_an_effect_that_may_be_chance_is_called_so(paper_report):
    analysis = paper_report.analyses["dec_avg"]
    inert = [e for e in analysis.effects if e.p_holm > 0.05]
    told = headlines(msgspec.structs.replace(analysis, effects=tuple(inert))).effects
    assert all(sentence.endswith("which may be chance.") for sentence in told[:-1])
    assert told[-1].startswith(f"None of {len(inert)} effects")


def test_the_best_configuration_and_what_is_fragile_are_told(paper_report, unfinished_report):
    analysis = paper_report.analyses["dec_avg"]
    said = headlines(analysis)
    assert said.best.startswith(analysis.best.cells[0].config)
    assert "It has AELO, " in said.best
    assert said.options == ("--transform boxcox",), "the robust methods were asked already"
    assert cell_text(analysis.best.cells[0].mean, "num") in said.best
    assert any("normal" in sentence for sentence in said.fragile)
    lost = headlines(unfinished_report.analyses["dec_avg"]).fragile
    assert "did not declare that it would be looked at" in lost[0]
    assert "23 of 128 planned runs have no value" in lost[1]


def test_ratios_on_the_log_scale(paper_study):
    from doe.analysis.case import AnalysisOptions
    from doe.results.report import report_of
    from doe.results.status import overview

    analysis = report_of(overview(paper_study), AnalysisOptions(transform="log")).analyses[
        "dec_avg"
    ]
    back = {s.term: s for s in analysis.response_scale}
    largest = max(analysis.effects, key=lambda e: abs(e.effect)).term
    expected = f"AELO ({largest}) multiplies dec_avg by {cell_text(back[largest].value, 'num')}"
    assert headlines(analysis).effects[0].startswith(expected)


def test_an_interaction_says_what_a_factor_does_at_either_level_of_another(paper_report):
    analysis = paper_report.analyses["dec_avg"]
    pair = analysis.get(Means).interactions[0]
    assert pair.term in ("CF", "AF")
    values, runs = paper_report.values["dec_avg"], [s.run for s in paper_report.state.statuses]

    def mean(x, y):
        signs = {pair.factor: x, pair.other: y}
        chosen = [
            value
            for value, run in zip(values, runs, strict=True)
            if all(run.coded["ABCDEF".index(key)] == sign for key, sign in signs.items())
        ]
        return sum(chosen) / len(chosen)

    low, high = mean(1, -1) - mean(-1, -1), mean(1, 1) - mean(-1, 1)
    assert pair.at_low.mean == pytest.approx(low)
    assert pair.at_high.mean == pytest.approx(high)
    sentence = next(s for s in headlines(analysis).effects if f"({pair.term}, " in s)
    assert f" {cell_text(abs(low), 'num')} px without " in sentence
    assert f" {cell_text(abs(high), 'num')} px with it " in sentence
    verbs = [word for word in sentence.split() if word in ("costs", "saves")]
    assert verbs == ["costs" if low > 0 else "saves"]


def test_levels_that_are_no_switch_are_named(paper_report):
    analysis = paper_report.analyses["dec_avg"]
    factors = tuple(FactorLevels(f.key, "0.1", "0.01") for f in analysis.factors)
    named = msgspec.structs.replace(analysis, factors=factors, goal="max")
    pair = analysis.get(Means).interactions[0]
    sentence = next(s for s in headlines(named).effects if f"({pair.term}, " in s)
    assert f"at {pair.other} = 0.1 and" in sentence
    assert "at 0.01 (" in sentence
