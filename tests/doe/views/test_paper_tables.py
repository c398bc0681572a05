"""The paper's tables: published cells come out as published, best and baseline are marked."""

import csv
import math
from pathlib import Path

import msgspec
import pytest

from doe.analysis.effects_by_response import EffectsByResponse, TermByResponse
from doe.numbers import Spread, cell_text
from doe.results.dataset import factor_columns
from doe.results.responses import Cell, best_cells, cell_spread
from doe.results.subject import Subject, report_section
from doe.study.presets import preset_study
from doe.study.values import Responses
from doe.views.tables.paper import best_rows, effect_rows, full_tables, paper_tables

PUBLISHED = Path(__file__).parents[3] / "examples" / "paper" / "full_factorial.csv"
STUDY = preset_study("paper")
SECTION = report_section(STUDY.report, STUDY.responses)
SUBJECT = Subject(
    name=STUDY.name,
    path=Path("paper"),
    factors=factor_columns(STUDY),
    responses=STUDY.responses,
    section=SECTION,
    design="",
    replicates=STUDY.replicates,
    runs=(),
    values={},
    cells=(),
    data={},
)


def published_cells():
    """The paper's configurations; a mean that was not printed is taken just above its limit."""
    with PUBLISHED.open() as file:
        lines = list(csv.DictReader(file))
    cells = []
    for line in lines:
        row = int(line["row"])
        spreads = {}
        for name in STUDY.responses.metrics:
            text, std = line[name], line[f"{name}_std"]
            mean = float(text[1:]) + 0.1 if text.startswith(">") else float(text)
            spreads[name] = Spread(mean, float(std) if std else None)
        levels = {key: bool(row >> i & 1) for i, key in enumerate(STUDY.keys)}
        cells.append(Cell(row, line["config"], levels, spreads))
    return cells, lines


def test_full_tables_write_every_published_cell_by_the_papers_rule():
    cells, lines = published_cells()
    tables = full_tables(SUBJECT, SECTION, cells)
    assert [table.name for table in tables] == ["l1-full-columns-f0", "l1-full-columns-f1"]
    written = {}
    for table in tables:
        assert len(table.rows) == 32
        for row in table.rows:
            texts = [cell_text(v, c.format) for v, c in zip(row.values, table.columns, strict=True)]
            written[int(texts[0])] = texts[1:]
    for line in lines:
        expected = [line["config"]]
        for name in STUDY.responses.metrics:
            text, std = line[name], line[f"{name}_std"]
            mean = text if text.startswith(">") else f"{float(text):.1f}"
            expected.append(f"{mean}±{std}" if std else mean)
        assert written[int(line["row"])] == expected


def test_best_rows_hold_the_baseline_and_each_columns_winner_among_the_others():
    cells, _ = published_cells()
    table = best_rows(SUBJECT, SECTION, SECTION.groups[1], cells)
    assert table.name == "l1-best-dec"
    baselines = [row.values[0] for row in table.rows if row.style == "baseline"]
    assert baselines == [7, 39], "as in the paper"
    noisy = [row for row in table.rows if row.style == "plain" and "F1" in str(row.values[1])]
    assert 55 in {row.values[0] for row in noisy}, "the paper's best under noise"
    for i, column in enumerate(table.columns[2:], start=2):
        winners = [row for row in noisy if row.marks.get(column.key) == "best"]
        others = [c.spreads[column.key].mean for c in cells if c.levels["F"] and c.row != 39]
        assert [row.values[i].mean for row in winners] == [min(others)] * others.count(min(others))


def test_the_encoders_baseline_is_heatmap_supervision_alone():
    cells, _ = published_cells()
    table = best_rows(SUBJECT, SECTION, SECTION.groups[0], cells)
    assert [row.values[0] for row in table.rows if row.style == "baseline"] == [4, 36]


def test_effects_are_ten_rows_and_the_first_average_is_underlined():
    rows = tuple(
        TermByResponse(f"T{i}", (-1.0 * i, 2.0 * i), (1.0, 1.0), (0.1, 0.1), (0.1, 0.1), 0.5 * i)
        for i in range(12, 0, -1)
    )
    effects = EffectsByResponse(("B56", "H56"), rows, "|average effect|", 24)
    table = effect_rows(SECTION.groups[0], effects, "n = 4 replicates")
    assert len(table.rows) == 10
    assert [c.title for c in table.columns] == ["Factor", "B56", "H56", "Avg"]
    assert table.rows[0].marks == {"average": "best"}
    assert not any(row.marks for row in table.rows[1:])
    written = [cell_text(value, "signed2") for value in table.rows[0].values[1:]]
    assert written == ["−12.00", "+24.00", "+6.00"]
    undeclared = tuple(msgspec.structs.replace(row, average=None) for row in rows)
    plain = effect_rows(
        SECTION.groups[0],
        EffectsByResponse(("B56", "H56"), undeclared, "smallest adjusted p", 24),
        "n = 4",
    )
    assert [c.title for c in plain.columns] == ["Factor", "B56", "H56"]
    assert "Ranked by smallest adjusted p" in plain.title


def test_each_column_is_underlined_by_its_own_goal():
    spreads = [
        {"acc": Spread(a, None), "loss": Spread(b, None)} for a, b in ((0.9, 2.0), (0.8, 1.0))
    ]
    cells = [Cell(i, f"A{i}", {"A": bool(i)}, s) for i, s in enumerate(spreads)]
    answers = Responses(metrics=("acc", "loss"), goal="max", goals={"loss": "min"})
    assert best_cells(cells, ("acc", "loss"), answers) == {"acc": 0, "loss": 1}


def test_terms_of_the_dropped_factor_are_left_out_by_default(paper_report):
    by_group = paper_report.group_effects
    assert set(by_group) == {"enc", "dec"}
    assert not any("F" in row.term for across in by_group.values() for row in across.rows)
    sizes = [abs(row.average) for row in by_group["dec"].rows]
    assert sizes == sorted(sizes, reverse=True)
    effects = {e.term: e.effect for e in paper_report.analyses["B112"].effects}
    first = by_group["dec"].rows[0]
    assert first.effects[0] == effects[first.term]


def test_names_and_number_of_the_papers_tables(paper_report):
    tables = paper_tables(paper_report)
    assert [table.name for table in tables] == [
        "factors",
        "l1-best-enc",
        "l1-best-dec",
        "effects-enc",
        "effects-dec",
        "velocity",
        "l1-full-columns-f0",
        "l1-full-columns-f1",
    ]


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([1.0, 3.0], Spread(2.0, math.sqrt(2))),
        ([1.0, math.nan], Spread(1.0, None)),
        ([math.nan], None),
    ],
)
def test_a_cell_is_the_mean_and_sample_deviation_of_its_runs(values, expected):
    assert cell_spread(values) == expected


def test_ties_are_all_underlined_and_the_caption_says_what_is_left_out():
    group = next(g for g in SECTION.groups if g.baseline)
    name = group.responses[0]
    levels = [dict(zip(STUDY.keys, [False] * 6, strict=True)) | {"B": i > 1} for i in range(4)]
    means = (0.101, 0.104, 0.2, 0.101)
    cells = [
        Cell(row, f"c{row}", levels[row] | {"A": True, "C": True}, {name: Spread(mean, 0.01)})
        for row, mean in enumerate(means)
    ]
    section = msgspec.structs.replace(SECTION, split="")
    titled = msgspec.structs.replace(STUDY.responses, titles={name: "first error"})
    table = best_rows(SUBJECT._replace(responses=titled), section, group, cells)
    marked = [row.values[1] for row in table.rows if name in row.marks]
    assert marked == ["c0", "c1", "c3"]
    assert table.title.endswith("; the baseline, in italics, is left out of it.")
    assert "first error" in [column.title for column in table.columns]
