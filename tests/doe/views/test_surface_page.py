"""The page of a response surface with two goals: values between the ends of the ranges."""

import numpy as np
import pytest
from browsing import drawn, needs_chromium
from synthetic import study_directory

import doe
from doe.analysis.dataset import FactorColumn
from doe.analysis.options import AnalysisOptions
from doe.errors import DoeError
from doe.goals import Desire
from doe.results.report import report_of
from doe.results.sources import study_page
from doe.results.status import overview
from doe.study.values import Factor, Responses, Study
from doe.views import html
from doe.views.charts.surface import contour_data, ticks
from doe.views.profiler import level_number, profile_factors, profile_json


@pytest.fixture(scope="module")
def directory(tmp_path_factory):
    ranges = {"rate": (0.001, 0.1), "depth": (2, 6), "decay": (0.0, 0.4)}
    study = Study(
        name="surface",
        backend="x:run",
        factors=tuple(
            Factor(key, ends, scale="log" if key == "rate" else "linear")
            for key, ends in ranges.items()
        ),
        responses=Responses(("loss", "seconds")),
        design={"kind": "surface"},
        centre=4,
        seeds=(1,),
        desirability={
            "loss": Desire(target=0.5, high=8.0),
            "seconds": Desire(target=0.5, high=9.0),
        },
    )
    return study_directory(tmp_path_factory.mktemp("surface"), study=study)


@pytest.fixture(scope="module")
def report(directory):
    return report_of(study_page(overview(directory)), AnalysisOptions())


@pytest.fixture(scope="module")
def page_file(report, tmp_path_factory):
    path = tmp_path_factory.mktemp("surface-page") / "index.html"
    path.write_text(html.render(report, "2026-11-16"), encoding="utf-8")
    return path


def test_the_profiler_follows_the_surface_between_the_ends(report):
    factors = profile_factors(report)
    assert [factor.levels[0] for factor in factors] == [0.001, 2, 0.0]
    assert {0.01} <= set(factors[0].levels), "the middle of a log scale"
    analysis = report.analyses["loss"]
    profile = profile_json(report, analysis, factors)
    rows = np.array(profile["rows"], dtype=object)
    assert len(rows) == np.prod([len(factor.levels) for factor in factors])
    places = dict(profile["places"])
    at = places["desirability optimum"]
    x = np.array([[f.positions[i] for f, i in zip(factors, at, strict=True)]])
    mean, reach = analysis.surface.polynomial.at(x / np.array(analysis.surface.polynomial.unit))
    strides = np.cumprod([1, *(len(factor.levels) for factor in factors[:-1])])
    row = rows[int(np.dot(at, strides))]
    assert row[:3] == pytest.approx([mean[0], (mean - reach)[0], (mean + reach)[0]], rel=1e-3)
    runs = [
        run
        for run in report.subject.runs
        if all(level_number(f, run.levels[f.key]) is not None for f in factors)
    ]
    assert len(runs) == len(report.subject.runs), "every run is a choice of the profiler"
    centre = int(np.dot([level_number(f, f.value_at(0.0)) for f in factors], strides))
    assert rows[centre][7] == 4
    best = min(value for value in report.subject.values["loss"] if value is not None)
    assert rows[int(np.dot(places["best observed"], strides))][3] == pytest.approx(best, rel=1e-3)


def test_the_map_of_two_chosen_factors_comes_first(report, directory):
    analysis = report.analyses["loss"]
    chosen = contour_data(analysis, ("decay", "rate"))
    assert {row["pair"] for row in chosen.datasets["map"] if row["rank"] == 0} == {
        "rate (up) by decay"
    }
    assert chosen.words["printed"] == 1
    assert len({row["pair"] for row in chosen.datasets["map"]}) == 3
    with pytest.raises(DoeError, match="expected two of rate, depth, decay"):
        contour_data(analysis, ("decay", "width"))
    result = doe.analyze(directory, "loss")
    assert result.contour_chart("decay", "rate").to_dict()["columns"] == 1


def test_the_middle_of_whole_numbers_is_written_as_one():
    batch = FactorColumn("batch", "batch", (8, 64), numeric=True, scale="log")
    (_, low), (place, middle), (_, high) = ticks(batch)
    assert (low, middle, high) == ("8", "23", "64")
    assert 0.0 < place < 0.02


@needs_chromium
def test_the_page_maps_the_pair_that_is_chosen_and_goes_to_the_desirability_optimum(
    visit, page_file, report
):
    page = visit(page_file.as_uri())
    drawn(page, "contours", "loss")
    view = page.locator('[data-chart="contours"] .view')
    picker = page.locator('[data-chart="contours"] select')
    names = picker.locator("option").all_inner_texts()
    assert len(names) == 3
    assert names[0] in view.inner_html()
    picker.select_option(names[2])
    page.wait_for_function(
        "(name) => document.querySelector('[data-chart=contours] .view').innerHTML.includes(name)",
        arg=names[2],
    )
    assert names[0] not in view.inner_html()
    page.click("#places button >> text=desirability optimum")
    at = dict(profile_json(report, report.analyses["loss"], profile_factors(report))["places"])
    shown = page.locator("[role=slider]").evaluate_all("all => all.map(n => +n.ariaValueNow)")
    assert shown == list(at["desirability optimum"])
    assert page.heard == []


@needs_chromium
def test_a_single_response_has_no_trade_off(visit, tmp_path):
    study = Study(
        name="four",
        backend="x:run",
        factors=(Factor("A", (0, 1)), Factor("B", (0, 1))),
        responses=Responses(("loss",)),
        seeds=(1,),
    )
    made = report_of(
        study_page(overview(study_directory(tmp_path, study=study))), AnalysisOptions()
    )
    (tmp_path / "index.html").write_text(html.render(made, ""), encoding="utf-8")
    page = visit((tmp_path / "index.html").as_uri())
    assert page.locator("#profile .panel").count() == 2
    assert not page.locator("#tradeoff").is_visible()
    assert page.heard == []
