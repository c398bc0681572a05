"""Findings in sentences say what the numbers say."""

import msgspec
import pandas as pd
import pytest

from doe.analysis.analyze import analyze
from doe.analysis.dataset import FactorColumn
from doe.analysis.options import AnalysisOptions
from doe.analysis.tables import TableOptions, table_datasets
from doe.numbers import about, with_interval
from doe.views.first_screen import lead, lost_levels
from doe.views.headlines import headlines
from doe.views.tables import response_tables


def test_the_largest_effects_come_first_with_their_interval(paper_report):
    analysis = paper_report.analyses["dec_avg"]
    largest = max(analysis.effects, key=lambda e: abs(e.effect))
    first = headlines(analysis).effects[0]
    size, low, high = with_interval(largest.effect, largest.ci_low, largest.ci_high)
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
    assert f"mean is {about(analysis.best.cells[0].mean)} px" in said.best
    assert any("normal" in sentence for sentence in said.fragile)
    lost = headlines(unfinished_report.analyses["dec_avg"]).fragile
    assert "did not declare interim looks" in lost[0]
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
    ratio = back[largest]
    value = with_interval(ratio.value, ratio.low, ratio.high)[0]
    expected = f"AELO ({largest}) multiplies dec_avg by {value}"
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
    without, with_it = (
        with_interval(at.effect, at.ci_low, at.ci_high)[0].lstrip("\u2212") for at in pair.at
    )
    assert f" by {without} px without " in sentence
    assert f" by {with_it} px with it " in sentence
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


def of_rows(rows, *factors, **options):
    """What a table says of its y, which is to be small."""
    columns = TableOptions(factors=factors, goal="min", block=options.pop("block", None))
    (data,) = table_datasets(pd.DataFrame(rows).astype(str), columns, ("y",))
    analysis = analyze(data, AnalysisOptions(**options))
    return headlines(analysis), analysis


def test_levels_that_lose_runs_lead():
    cells = [(a, b, i) for a in (0, 1) for b in (0, 1) for i in range(8)]
    rows = [{"A": a, "B": b, "y": "" if a and b and i else a + i % 3} for a, b, i in cells]
    told, analysis = of_rows(rows, "A", "B")
    assert told.effects[0].startswith("A = 1 with B = 1 loses 7 of 8 runs")
    assert told.best.endswith("Means rest on the runs that are left.")
    assert not any("not a fair sample" in line for line in told.fragile)
    assert lost_levels(analysis).startswith("A = 1 with B = 1 loses 7 of 8 runs")
    whole = [row | {"y": a + i % 3} for row, (a, _, i) in zip(rows, cells, strict=True)]
    told, analysis = of_rows(whole, "A", "B")
    assert "loses" not in " ".join((*told.effects, told.best, lead(analysis, "y")))


def test_diverged_runs_are_ranked_last_beside_the_means():
    """adam diverges at lr 2; where both ran it is better, and with the diverged runs it is not."""
    rows = [
        {"opt": opt, "lr": lr, "y": 5 + (opt == "sgd") + lr + i / 9, "state": "done"}
        for opt in ("adam", "sgd")
        for lr in (0, 1, 2)
        for i in range(4)
    ]
    for row in rows:
        if row["opt"] == "adam" and row["lr"] == 2:
            row |= {"y": "", "state": "diverged"}
    told, analysis = of_rows(rows, "opt", "lr")
    assert told.effects[0].startswith("opt = adam with lr = 2 diverges in 4 of 4 runs")
    assert told.effects[1].startswith(
        "With every diverged run ranked last, opt, lr, opt:lr are significant"
    )
    opt = next(line for line in told.effects if line.startswith("opt = sgd instead of adam"))
    assert opt.endswith(" over the combinations that both levels have.")
    ranks = next(t for t in response_tables(analysis) if t.name.startswith("worst ranks"))
    assert [row.values[0] for row in ranks.rows] == [
        r.term for r in sorted(analysis.missing.worst_rank, key=lambda r: r.p)
    ]


def test_a_factor_that_varies_between_blocks_alone_is_told_with_random_blocks():
    shift = (0.3, -0.2, 0.1, 0.2, -0.3, 0.0)
    rows = [
        {"A": block % 2, "B": b, "day": block, "y": 5 * (block % 2) + b + shift[block] + i / 10}
        for block in range(6)
        for b in (0, 1)
        for i in (-1, 1)
    ]
    told, analysis = of_rows(rows, "A", "B", block="day", random_blocks=True)
    line = next(line for line in told.effects if line.startswith("A varies between blocks alone"))
    term = next(t for t in analysis.random_blocks.terms if t.term == "A")
    assert f" raises y by {about(term.estimate)} (SE " in line
    assert term.estimate == pytest.approx(5 + sum(shift[1::2]) / 3 - sum(shift[::2]) / 3)
    told, _ = of_rows(
        [row | {"y": row["y"] - 5 * row["A"]} for row in rows],
        *("A", "B"),
        block="day",
        random_blocks=True,
    )
    line = next(line for line in told.effects if line.startswith("A varies between blocks alone"))
    assert " alone and has no clear effect (estimate " in line
