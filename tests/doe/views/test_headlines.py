"""Findings in sentences say what the numbers say."""

import msgspec

from doe.views.headlines import headlines
from doe.views.numbers import cell_text


def test_the_largest_effects_come_first_with_interval_p_and_direction(paper_report):
    analysis = paper_report.analyses["dec_avg"]
    largest = max(analysis.effects, key=lambda e: abs(e.effect))
    first = headlines(analysis).effects[0]
    low, high = cell_text(largest.ci_low, "num"), cell_text(largest.ci_high, "num")
    assert first == (
        f"{largest.term} changes dec_avg by {cell_text(largest.effect, 'signed')} px "
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
    assert cell_text(analysis.best.cells[0].mean, "num") in said.best
    assert any("normal" in sentence for sentence in said.fragile)
    lost = headlines(unfinished_report.analyses["dec_avg"]).fragile
    assert "23 of 128 planned runs have no value" in lost[0]


def test_ratios_on_the_log_scale(paper_study):
    from doe.analysis.case import AnalysisOptions
    from doe.results.report import gather

    analysis = gather(paper_study, AnalysisOptions(transform="log")).analyses["dec_avg"]
    back = {s.term: s for s in analysis.response_scale}
    largest = max(analysis.effects, key=lambda e: abs(e.effect)).term
    expected = f"{largest} multiplies dec_avg by {cell_text(back[largest].value, 'num')}"
    assert headlines(analysis).effects[0].startswith(expected)
