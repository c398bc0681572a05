"""The first screen says the strongest finding, draws it, and shows the best configuration."""

import msgspec
import pytest
from synthetic import study_directory

from doe.analysis.dataset import FactorColumn
from doe.analysis.options import AnalysisOptions
from doe.numbers import about, from_to, to_figures, with_interval
from doe.results.report import report_of
from doe.results.sources import study_page
from doe.results.status import overview
from doe.study.values import Factor, Responses, Study
from doe.views import html
from doe.views.charts.checks import predicted_data
from doe.views.charts.forest import forest_data
from doe.views.first_screen import card, caveats, lead, leads


@pytest.fixture(scope="module")
def analysis(paper_report):
    return paper_report.analyses["dec_avg"]


def test_the_lead_names_the_strongest_factor_and_its_means(analysis):
    strongest = max(
        (t for t in analysis.tests if t.mask.bit_count() == 1), key=lambda test: test.ss
    )
    assert strongest.term == "F"
    low, high = from_to(*(m.mean for m in analysis.levels if m.factor == "F"))
    said = lead(analysis, "decoder error")
    assert said.startswith(f"Decoder error rises from {low} to {high} px with Noise")
    assert lead(analysis, "dec_avg").startswith("dec_avg rises from"), "a name stays as written"
    pair = next(p for p in analysis.interactions if p.factor == "F")
    without, with_it = (abs(effect.effect) for effect in pair.at)
    assert without > with_it
    assert said.endswith(", more without Heatmap supervision than with it.")


@pytest.mark.parametrize(
    ("effects", "ending"),
    [
        (
            ((-4.0, -5.0, -3.0), (0.2, -1.0, 1.4)),
            ", but clearly only without Heatmap supervision.",
        ),
        (((6.0, 5.0, 7.0), (-1.0, -1.5, -0.5)), ", but falls with Heatmap supervision."),
    ],
)
def test_the_lead_says_on_what_an_effect_depends(analysis, effects, ending):
    pair = next(p for p in analysis.interactions if p.factor == "F")
    at = tuple(
        msgspec.structs.replace(old, effect=effect, ci_low=low, ci_high=high)
        for old, (effect, low, high) in zip(pair.at, effects, strict=True)
    )
    changed = msgspec.structs.replace(
        analysis, interactions=(msgspec.structs.replace(pair, at=at),)
    )
    assert lead(changed, "dec_avg").endswith(ending)


def test_without_a_finding_the_lead_says_so(analysis):
    inert = tuple(test for test in analysis.tests if test.p_holm > 0.05)
    quiet = msgspec.structs.replace(analysis, tests=inert)
    assert lead(quiet, "loss") == "No factor has a clear effect on loss."
    untested = tuple(msgspec.structs.replace(test, p_holm=None) for test in inert)
    none = msgspec.structs.replace(analysis, tests=untested)
    assert "no error to test against" in lead(none, "loss")


def test_levels_that_are_no_switch_are_named(analysis):
    factors = tuple(FactorColumn(f.key, f.name, ("0.1", "0.01")) for f in analysis.factors)
    levels = tuple(
        msgspec.structs.replace(m, level="0.01" if m.level == "true" else "0.1")
        for m in analysis.levels
    )
    named = msgspec.structs.replace(analysis, factors=factors, levels=levels)
    assert "as Noise goes from 0.1 to 0.01" in lead(named, "loss")


def test_the_card_is_the_best_observed_configuration(paper_report, analysis):
    made = card(paper_report, "dec_avg")
    top = analysis.best.cells[0]
    assert made.mean == f"{to_figures(top.mean, 3)} px"
    assert [chip.off for chip in made.chips] == [level == 0 for level in top.levels]
    cell = next(c for c in paper_report.subject.cells if c.config == top.config)
    assert made.spread.endswith(f"SD {to_figures(cell.spreads['dec_avg'].std, 3)}")
    tied = len(analysis.best.among_best) - 1
    assert made.lines[0].startswith(f"{tied} other" if tied else "No other")
    assert made.lines[-1] == "Not yet confirmed with new seeds."
    assert made.lines[-3].startswith("Over all conditions of Noise (F), A1B1C1D0E1 has the best")
    each = analysis.best.conditions
    assert made.lines[-2].startswith(f"Best observed for F0, {each[0].config} (")
    assert made.lines[-2].endswith(
        f"; for F1, {each[1].config} ({to_figures(each[1].mean, 3)} px)."
    )


@pytest.mark.parametrize(("factor", "name"), [(2, "Heatmap supervision"), (5, "")])
def test_the_models_optimum_is_named_where_another_choice_is(paper_report, analysis, factor, name):
    top, reduced = analysis.best.cells[0], analysis.best.reduced
    other = tuple(1 - level if i == factor else level for i, level in enumerate(top.levels))
    reduced = msgspec.structs.replace(
        reduced, best=msgspec.structs.replace(reduced.best, levels=other, mean=1.25)
    )
    best = msgspec.structs.replace(analysis.best, reduced=reduced)
    changed = msgspec.structs.replace(analysis, best=best)
    lines = card(paper_report._replace(analyses={"dec_avg": changed}), "dec_avg").lines
    named = [line for line in lines if line.startswith("The model's optimum is another")]
    phrase = f"{'with' if other[factor] else 'without'} {name}"
    assert named == (
        [f"The model's optimum is another: {phrase}, predicted 1.25 px."] if name else []
    )


def test_caveats_count_checks_and_lost_runs(paper_report, unfinished_report):
    told = caveats(paper_report)
    checks = sum(len(sentences) for _, sentences in told.sentences)
    assert told.line == f"{checks} checks need a look, 0 failed runs"
    assert caveats(unfinished_report).line.endswith("2 failed runs, 1 diverged")


def test_the_forest_has_every_factor_then_conditional_effects(paper_report, analysis):
    data = forest_data(paper_report)
    records = [r for r in data.datasets["effects"] if r["response"].startswith("decoder")]
    main, pairs = records[:6], records[6:]
    effects = {e.effect: e for e in analysis.effects}
    assert {r["row"] for r in main} == {f.name for f in analysis.factors}
    for record in main:
        effect = effects[record["effect"]]
        assert (record["ci_low"], record["ci_high"]) == (effect.ci_low, effect.ci_high)
    assert all(r["direction"] in ("significant", "not significant") for r in pairs)
    conditional = {e.effect for pair in analysis.interactions for e in pair.at}
    assert pairs
    assert {r["effect"] for r in pairs} <= conditional
    sizes = [abs(r["effect"]) for r in data.datasets["effects"] if r["response"][:3] == "enc"][:6]
    assert sizes == sorted(sizes, reverse=True)


def test_titles_of_the_study_file_name_responses(paper_report):
    responses = msgspec.structs.replace(
        paper_report.subject.responses, titles={"dec_avg": "decoder error"}
    )
    report = paper_report._replace(subject=paper_report.subject._replace(responses=responses))
    assert card(report, "dec_avg").title == "decoder error"
    columns = {r["response"] for r in forest_data(report).datasets["effects"]}
    assert columns == {"enc_avg [px]", "decoder error [px]"}


def test_a_command_to_try_is_code_as_a_whole():
    told = html.sentence("It lies at the edge: plan again. Try: doe plan study.toml --out runs/x")
    assert told.endswith("Try: <code>doe plan study.toml --out runs/x</code>")
    assert "<code>--drop</code>" in html.sentence("leave it out by --drop 1, or keep it")


def report_on(root, study, **shape):
    return report_of(
        study_page(overview(study_directory(root, study=study, **shape))), AnalysisOptions()
    )


def test_levels_that_lose_runs_lead_once_by_the_names_of_their_factors(tmp_path):
    factors = (Factor("lr", (0.001, 0.1), name="Learning rate"), Factor("clip", (False, True)))
    study = Study(
        name="lost",
        backend="x:run",
        factors=factors,
        responses=Responses(("loss", "perplexity")),
        replicates=8,
        seeds=tuple(range(8)),
    )

    def lost(run):
        return run.levels["lr"] == 0.1 and not run.levels["clip"]

    said = leads(report_on(tmp_path, study, diverged=lost))
    assert said[0].startswith("Learning rate = 0.1 with clip = false diverges in 8 of 8 runs")
    assert len(said) == 3
    assert not any("fair sample" in sentence for sentence in said[1:])


def test_a_surface_leads_with_its_optimum(tmp_path):
    from screenshots import peak, small_studies

    shape = small_studies()["surface"]
    report = report_on(tmp_path, shape["study"], values=peak)
    best = report.analyses["loss"].surface.optimum
    where = " and ".join(
        f"{name} = {about(best.levels[key])}"
        for key, name in (("rate", "Learning rate"), ("depth", "Depth"))
    )
    mean = with_interval(best.mean, best.ci_low, best.ci_high)[0]
    assert leads(report) == [f"The fitted surface has its lowest loss, {mean}, at {where}."]
    lines = card(report, "loss").lines
    assert not any("is another" in line for line in lines)
    assert any(line.startswith("At the optimum of the surface") for line in lines)
    chart = predicted_data(report, "loss")
    assert len(chart.datasets["configs"]) == 9, "points between the levels have predictions too"


def test_an_interaction_that_is_aliased_is_not_told_as_sure(tmp_path):
    from screenshots import small_studies

    report = report_on(tmp_path, small_studies()["fraction"]["study"])
    assert leads(report)[0].endswith("more with D than without it (AD is aliased with EF).")
    assert sum("confounded" in said for _, told in caveats(report).sentences for said in told) == 1
