"""Findings in sentences say what the numbers say."""

import msgspec
import pytest

from doe.analysis.dataset import FactorColumn
from doe.numbers import cell_text
from doe.views.headlines import headlines


def test_the_largest_effects_come_first_with_their_interval(paper_report):
    analysis = paper_report.analyses["dec_avg"]
    largest = max(analysis.effects, key=lambda e: abs(e.effect))
    first = headlines(analysis).effects[0]
    low, high = cell_text(largest.ci_low, "short"), cell_text(largest.ci_high, "short")
    size = cell_text(largest.effect, "short")
    assert largest.effect > 0
    assert first == f"Noise ({largest.term}) raises dec_avg by {size} px (95 % CI {low} to {high})."
    found = sum(test.p_holm <= 0.05 for test in analysis.tests)
    assert headlines(analysis).effects[-1].startswith(f"{found} of 63 terms are significant")


def test_effects_that_may_be_chance_are_no_findings(paper_report):
    analysis = paper_report.analyses["dec_avg"]
    inert = tuple(test for test in analysis.tests if test.p_holm > 0.05)
    told = headlines(msgspec.structs.replace(analysis, tests=inert)).effects
    assert told == (f"None of {len(inert)} terms is significant after Holm's adjustment.",)


def test_the_best_configuration_and_what_is_fragile_are_told(paper_report, unfinished_report):
    analysis = paper_report.analyses["dec_avg"]
    said = headlines(analysis)
    assert said.best.startswith("Over all conditions of Noise (F), ")
    assert f" {analysis.best.cells[0].config} has the best observed mean" in said.best
    assert "It has AELO, " in said.best
    assert said.options == ("--transform boxcox",), "the robust methods were asked already"
    assert cell_text(analysis.best.cells[0].mean, "num") in said.best
    assert any("normal" in sentence for sentence in said.fragile)
    lost = headlines(unfinished_report.analyses["dec_avg"]).fragile
    assert "did not declare that it would be looked at" in lost[0]
    assert "23 of 128 planned runs have no value" in lost[1]


def test_ratios_on_the_log_scale(paper_study):
    from doe.analysis.options import AnalysisOptions
    from doe.results.report import report_of
    from doe.results.sources import study_page
    from doe.results.status import overview

    page = study_page(overview(paper_study))
    analysis = report_of(page, AnalysisOptions(transform="log")).analyses["dec_avg"]
    back = {s.term: s for s in analysis.response_scale}
    largest = max(analysis.effects, key=lambda e: abs(e.effect)).term
    expected = f"AELO ({largest}) multiplies dec_avg by {cell_text(back[largest].value, 'short')}"
    assert headlines(analysis).effects[0].startswith(expected)


def test_an_interaction_says_what_a_factor_does_at_either_level_of_another(paper_report):
    analysis = paper_report.analyses["dec_avg"]
    pair = analysis.interactions[0]
    assert pair.term in ("CF", "AF")
    subject = paper_report.subject
    values, runs = subject.values["dec_avg"], [s.run for s in subject.statuses]

    def mean(x, y):
        signs = {pair.factor: x, pair.other: y}
        chosen = [
            value
            for value, run in zip(values, runs, strict=True)
            if all(run.coded["ABCDEF".index(key)] == sign for key, sign in signs.items())
        ]
        return sum(chosen) / len(chosen)

    low, high = mean(1, -1) - mean(-1, -1), mean(1, 1) - mean(-1, 1)
    assert pair.at[0].effect == pytest.approx(low)
    assert pair.at[1].effect == pytest.approx(high)
    sentence = next(s for s in headlines(analysis).effects if f"({pair.term}, " in s)
    assert f" by {cell_text(abs(low), 'short')} px without " in sentence
    assert f" by {cell_text(abs(high), 'short')} px with it " in sentence
    verbs = [word for word in sentence.split() if word in ("raises", "lowers")]
    assert verbs == ["raises" if low > 0 else "lowers"]


def test_levels_that_are_no_switch_are_named(paper_report):
    analysis = paper_report.analyses["dec_avg"]
    factors = tuple(FactorColumn(f.key, f.key, ("0.1", "0.01")) for f in analysis.factors)
    named = msgspec.structs.replace(analysis, factors=factors, goal="max")
    pair = analysis.interactions[0]
    sentence = next(s for s in headlines(named).effects if f"({pair.term}, " in s)
    assert f"at {pair.other} = 0.1 and" in sentence
    assert "at 0.01 (" in sentence
