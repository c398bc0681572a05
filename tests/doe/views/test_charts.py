"""Charts: one valid definition each, labels that leave each other room, files for a paper."""

import re

import altair as alt
import pytest

from doe.analysis.options import AnalysisOptions
from doe.results.origins import run_spans
from doe.results.report import report_of
from doe.results.sources import study_page
from doe.results.status import overview
from doe.views.charts import catalogue, response_charts, study_charts
from doe.views.charts.effects import half_normal_data, pareto_data
from doe.views.charts.labels import LINE, POINT, Box, place_labels, text_width
from doe.views.charts.means import interaction_data, main_data
from doe.views.charts.model import filled, spec
from doe.views.charts.runs import LEARNING_CURVES as CURVES
from doe.views.charts.runs import MOST_STEPS, curves_data, thinned, timeline_data
from doe.views.charts.shared import OTHERS, direction_words
from doe.views.figures import files, save

SOMETIMES = {"level-pairs", "settling", "failure-map", "half-normal-groups", "trade-off"}
SOMETIMES |= {"half-normal-finer", "contours", "slices", "prediction-variance"}
"""Charts of more levels, of a study under way, of one with failures, of a surface."""


def complete(report):
    """Every chart of a report with its data."""
    data = study_charts(report) | response_charts(report, "dec_avg")
    assert set(data) >= {chart.name for chart in catalogue()} - SOMETIMES
    return {c.name: filled(spec(c), data[c.name]) for c in catalogue() if c.name in data}


@pytest.mark.parametrize("kind", ["paper_report", "unfinished_report"])
def test_every_chart_is_valid_vega_lite_with_no_word_left_open(kind, request):
    charts = complete(request.getfixturevalue(kind))
    assert ("failure-map" in charts) == ("settling" in charts) == (kind == "unfinished_report")
    for name, chart in charts.items():
        few = {key: rows[:2] for key, rows in chart["datasets"].items()}  # rows have no schema
        alt.Chart.from_dict(chart | {"datasets": few})  # validates against the schema
        text = str({key: value for key, value in chart.items() if key != "datasets"})
        assert "'{" not in text, name
        used = {
            part["data"]["name"]
            for part in walk(chart)
            if isinstance(part.get("data"), dict) and "name" in part["data"]
        }
        assert used == set(chart["datasets"]), name


def walk(part):
    if isinstance(part, dict):
        yield part
        for value in part.values():
            yield from walk(value)
    elif isinstance(part, list):
        for value in part:
            yield from walk(value)


def test_a_drawing_holds_no_data():
    for chart in catalogue():
        assert "datasets" not in spec(chart)
        assert not any("values" in p["data"] for p in walk(spec(chart)) if p.get("data"))


def test_each_module_of_charts_has_a_name_and_a_place_of_its_own():
    names = [chart.name for chart in catalogue()]
    assert names[:3] == ["interaction-matrix", "interactions", "cell-means"]
    assert len(names) == len(set(names)) == 24


def test_labels_cover_neither_each_other_nor_a_point():
    points = [(20.0 + 3 * i, 180.0 - 2 * i) for i in range(40)] + [(200.0, 20.0), (201.0, 24.0)]
    texts = [f"ABC{i}" for i in range(len(points))]
    name = Box(190, 0, 230, 12)
    placed = place_labels(points, texts, list(reversed(range(len(points)))), 300, 220, [name])
    assert len(placed) >= 10
    boxes = [name] + [Box(x - POINT, y - POINT, x + POINT, y + POINT) for x, y in points]
    for label in placed:
        half = text_width(texts[label.point]) / 2
        box = Box(label.x - half, label.y - LINE / 2, label.x + half, label.y + LINE / 2)
        assert not any(box.overlaps(other) for other in boxes)
        assert box.left >= 0
        assert box.right <= 300
        boxes.append(box)


def test_half_normal_shows_all_effects_their_groups_and_the_margins(paper_report):
    analysis = paper_report.analyses["dec_avg"]
    data = half_normal_data(analysis).datasets
    assert len(data["points"]) == 63
    assert [m["name"] for m in data["margins"]] == ["ME", "SME"]
    coloured = {p["term"] for p in data["points"] if p["direction"] != OTHERS}
    assert coloured == {e.term for e in analysis.effects if e.p_holm <= analysis.alpha}
    assert coloured == {
        bar["term"] for bar in pareto_data(analysis).datasets["bars"] if bar["direction"] != OTHERS
    }
    labelled = {label["term"] for label in data["labels"]}
    assert {"A", "C", "F"} <= labelled
    right, top = data["frame"][1]["magnitude"], data["frame"][1]["quantile"]
    assert all(0 <= label["at_x"] <= right for label in data["labels"])
    assert all(0 <= label["at_y"] <= top for label in data["labels"])
    start, end = data["reference"]
    assert (start["magnitude"], start["quantile"]) == (0, 0)
    assert end["quantile"] / end["magnitude"] == pytest.approx(1 / analysis.lenth.pse)


def test_pareto_ranks_by_magnitude_and_tells_better_from_worse(paper_report):
    bars = pareto_data(paper_report.analyses["dec_avg"]).datasets["bars"]
    sizes = [bar["magnitude"] for bar in bars]
    assert sizes == sorted(sizes, reverse=True)
    assert {bar["term"]: bar["direction"] for bar in bars[:4]} == {
        "F": "worse",
        "C": "better",
        "A": "better",
        "E": "better",
    }


def test_means_are_those_of_the_runs(paper_report):
    values = paper_report.subject.values["dec_avg"]
    views = paper_report.subject.statuses
    analysis = paper_report.analyses["dec_avg"]
    main = main_data(analysis).datasets["main"]
    high = [v for v, seen in zip(values, views, strict=True) if seen.run.coded[0] > 0]
    shown = next(r["mean"] for r in main if "(A)" in r["factor"] and r["given"] == "true")
    assert shown == pytest.approx(sum(high) / len(high))
    pair = interaction_data(analysis).datasets["pairs"][0]
    assert pair["pair"].replace("\u00a0", " ").startswith("Noise (F) ×")
    first = "ABCDEF".index(pair["pair"][-2])
    low = [
        v
        for v, seen in zip(values, views, strict=True)
        if seen.run.coded[first] < 0 and seen.run.coded[5] < 0
    ]
    assert pair["mean"] == pytest.approx(sum(low) / len(low))


def test_each_panel_of_interactions_names_the_levels_of_its_own_factor(tmp_path):
    from screenshots import long_study

    report = report_of(study_page(overview(long_study(tmp_path))), AnalysisOptions())
    pairs = interaction_data(report.analyses["validation_loss"]).datasets["pairs"]
    factors = {factor.name or factor.key: factor for factor in report.subject.factors}
    assert len({record["pair"] for record in pairs}) > 1
    for record in pairs:
        title = record["pair"].replace("\n", " ").replace("\u00a0", " ")
        second = factors[title.split(" × ")[1]]
        assert record["name"] in ("", *second.labels)
        assert record["second"] in {f"{second.key} = {label}" for label in second.labels}


def test_names_of_lines_stand_apart_right_of_their_ends(paper_report):
    made = interaction_data(paper_report.analyses["dec_avg"])
    ends = [row["mean"] for row in made.datasets["pairs"] if row["mean"] is not None]
    line = LINE * (max(ends) - min(ends)) / made.words["height"]
    for pair in {row["pair"] for row in made.datasets["pairs"]}:
        rows = [row for row in made.datasets["pairs"] if row["pair"] == pair]
        named = [row for row in rows if row["name"]]
        assert {row["given"].strip() for row in named} == {"true"}
        assert len(named) == 2
        assert abs(named[0]["label"] - named[1]["label"]) >= 0.99 * line
        assert rows[-1]["given"] == "", "room for the names"
        assert rows[-1]["mean"] is None


def test_a_legend_names_the_groups_that_occur(paper_report):
    bars = pareto_data(paper_report.analyses["dec_avg"])
    assert set(bars.words["groups"]) == {bar["direction"] for bar in bars.datasets["bars"]}
    inert = [record | {"direction": OTHERS} for record in bars.datasets["bars"]]
    assert direction_words(inert) == {"groups": [OTHERS], "legend": 1}


def test_the_heatmap_has_factors_of_several_levels_and_interactions_without_a_direction(tmp_path):
    from screenshots import three_levels

    from doe.views.charts.matrices import heatmap_data

    report = report_of(study_page(overview(three_levels(tmp_path))), AnalysisOptions())
    cells = heatmap_data(report).datasets["cells"]
    shown = {(cell["term"], cell["response"]): cell for cell in cells}
    assert {"clip", "lr", "optimizer", "lr:clip"} <= {cell["term"] for cell in cells}
    assert shown["clip", "accuracy"]["towards"] > 0 > shown["clip", "seconds"]["towards"]
    assert shown["lr", "accuracy"]["mark"] == "●"
    for (term, _), cell in shown.items():
        assert (cell["towards"] is None) == (term != "clip")
        assert cell["strength"] >= 0


def test_wide_intervals_leave_means_and_runs_readable(paper_report):
    from doe.views.charts.cell_means import REACH, _ends

    cells = [{"mean": 1.0, "from": 0.5, "to": 400.0}, {"mean": 2.0, "from": 1.5, "to": 2.5}]
    made = {"cells": cells, "seeds": [{"value": 3.0}]}
    assert _ends(made, logged=False)["ends"] == [0.5, 3.0 + REACH * 2.0]
    assert _ends(made, logged=False)["scale"] == "linear"
    assert _ends(made, logged=True)["ends"] == [
        pytest.approx(1 / 3**REACH),
        pytest.approx(3 * 3**REACH),
    ]


def test_curves_are_thinned_and_keep_their_end():
    curve = [(float(i), 1.0) for i in range(1001)]
    short = thinned(curve)
    assert len(short) <= MOST_STEPS
    assert short[-1] == curve[-1]
    assert thinned(curve[:7]) == curve[:7]


def test_a_single_step_is_no_curve(paper_report):
    first = {config: curve[:1] for config, curve in paper_report.curves["dec_avg"].items()}
    assert curves_data(paper_report._replace(curves={"dec_avg": first}), "dec_avg") is None
    assert curves_data(paper_report, "dec_avg") is not None


def test_a_configuration_of_one_step_is_a_point_beside_the_lines(paper_report):
    import vl_convert

    curves = paper_report.curves["dec_avg"]
    for singles in (0, 2):
        cut = {config: curves[config][:1] for config in list(curves)[:singles]}
        data = curves_data(paper_report._replace(curves={"dec_avg": curves | cut}), "dec_avg")
        drawn = vl_convert.vegalite_to_svg(filled(spec(CURVES), data))
        points = re.findall(r'<path[^>]*aria-roledescription="point"[^>]*>', drawn)
        assert len(points) == len(curves)
        assert sum('opacity="0"' not in point for point in points) == singles


def test_the_timeline_counts_from_the_first_start_and_keeps_slots_together(paper_report):
    spans = run_spans(paper_report.subject.statuses)
    assert len(spans) == 256
    assert min(span.start for span in spans) == 0.0
    assert {span.end - span.start for span in spans} == {28.0}
    data = timeline_data(paper_report)
    assert data.words["elapsed"] == "Minutes since the first start"
    rows = data.datasets["runs"]
    assert [row["slot"] for row in rows] == ["node1 cpu0"] * 128 + ["node1 cpu1"] * 128
    assert rows[-1]["end"] == pytest.approx(max(span.end for span in spans) / 60)


def test_charts_are_saved_in_three_forms_at_the_width_of_a_column(paper_report, tmp_path):
    import struct

    chart = complete(paper_report)["half-normal"]
    save(chart, tmp_path / "half-normal")
    svg, pdf, png = files(tmp_path / "half-normal")
    assert svg.read_text().startswith("<svg")
    assert ">SME<" in svg.read_text()
    assert pdf.read_bytes().startswith(b"%PDF")
    width, height = struct.unpack(">II", png.read_bytes()[16:24])
    assert 900 < width < 1100, "300 dots per inch at 3.3 inches"
    assert height > 500


def test_kept_drawings_are_those_that_are_drawn(tmp_path, monkeypatch):
    from doe.views.charts import catalogue, drawings

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    fresh = {chart.name: spec(chart) for chart in catalogue()}
    first, again = drawings.__wrapped__(), drawings.__wrapped__()
    assert first == again == fresh
    (file,) = (tmp_path / "pit-doe").iterdir()
    file.write_text("{}")
    assert drawings.__wrapped__() == {}, "the second time they are read"


def test_the_matrix_has_every_pair_and_marks_the_significant(paper_report):
    from doe.views.charts.matrices import matrix_data

    analysis = paper_report.analyses["dec_avg"]
    rows = matrix_data(analysis).datasets["pairs"]
    assert len(rows) == 15
    tests = {t.term: t for t in analysis.tests}
    names = {factor.name: factor.key for factor in analysis.factors}
    for row in rows:
        test = tests[names[row["down"]] + names[row["across"]]]
        assert row["strength"] ** 2 == pytest.approx(test.f)
        assert (row["mark"] == "●") == (test.p_holm <= analysis.alpha)
    assert max(row["share"] for row in rows) == 1.0


def test_the_best_are_shown_run_by_run_with_the_baseline(paper_report):
    from doe.views.charts.cell_means import CELLS
    from doe.views.charts.cell_means import cell_means_data as data

    made = data(paper_report, "dec_avg").datasets
    assert len(made["cells"]) == CELLS + 1
    assert made["cells"][-1]["short"].startswith("baseline ")
    values = dict(
        zip(
            (run.run_id for run in paper_report.subject.runs),
            paper_report.subject.values["dec_avg"],
            strict=True,
        )
    )
    assert len(made["seeds"]) == 4 * (CELLS + 1)
    assert {row["seed"] for row in made["seeds"]} == {"1", "2", "3", "4"}
    for row in made["seeds"]:
        assert row["value"] == values[row["run"]]
    ranks = [row["rank"] for row in made["seeds"]]
    assert ranks == sorted(ranks), "so that a line goes from row to row"


def test_the_failure_map_counts_runs_at_levels_and_pairs(unfinished_report, paper_report):
    from doe.views.charts.matrices import failure_data as data

    assert data(paper_report) is None, "all went well"
    rows = {row["pair"]: row for row in data(unfinished_report).datasets["pairs"]}
    ended = [r for r in unfinished_report.subject.runs if r.state in ("done", "failed", "diverged")]
    at = [r for r in ended if r.levels["A"] and not r.levels["C"]]
    pair = rows["AELO true, Heatmap supervision false"]
    assert pair["runs"] == len(at)
    assert pair["failed"] == sum(r.state == "failed" for r in at)
    single = [row for name, row in rows.items() if name in ("Noise false", "Noise true")]
    assert sum(row["failed"] for row in single) == 2
    assert sum(row["diverged"] for row in single) == 1


def test_estimates_settle_over_the_replicates_of_a_study_under_way(unfinished_report, paper_report):
    from doe.views.charts.runs import settling_data as data

    assert paper_report.settling == ()
    (response,) = {row.response for row in unfinished_report.settling}
    last = max(row.replicates for row in unfinished_report.settling)
    assert last > 1
    now = {effect.term: effect for effect in unfinished_report.analyses[response].effects}
    for row in unfinished_report.settling:
        if row.replicates == last:
            assert row.effect == now[row.factor].effect
    shown = data(unfinished_report).datasets["effects"]
    assert len(shown) == len(unfinished_report.settling)
