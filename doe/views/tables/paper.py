"""The tables of a paper from the runs: best rows, effects, further metrics, every configuration."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doe.analysis.effects_by_response import EffectsByResponse
from doe.errors import counted
from doe.numbers import Format, cell_text
from doe.results.report import Report
from doe.results.responses import Cell, best_cells, best_first, is_baseline
from doe.results.subject import Subject
from doe.study.values import Group, ReportSection
from doe.terms import config_header, level_text
from doe.views.plan_tables import factors_table
from doe.views.table import Column, Mark, Row, RowStyle, Table
from doe.views.tables import MOST_ROWS, StudyTables

EFFECTS = 10
"""Terms in a table of effects."""


def paper_tables(report: Report) -> list[Table]:
    """Return every table of the paper, in its order."""
    subject, section, cells = report.subject, report.section, report.subject.cells
    tables = [best_rows(subject, section, group, cells) for group in section.groups]
    tables += [
        effect_rows(group, report.group_effects[group.name], _runs_text(subject))
        for group in section.groups
        if group.name in report.group_effects
    ]
    if section.further is not None:
        tables.append(best_rows(subject, section, section.further, cells))
    return [
        factors_table(subject.factors, subject.meanings),
        *tables,
        *full_tables(subject, section, cells),
    ]


# Best rows --------------------------------------------------------------------------------------


def best_rows(
    subject: Subject, section: ReportSection, group: Group, cells: Sequence[Cell]
) -> Table:
    """Return the baseline, and each configuration that is best in some column, by parts of the
    design.
    """
    rows: list[Row] = []
    for heading, part in _parts(subject, section, cells):
        baselines = [cell for cell in part if is_baseline(group, cell)]
        others = [cell for cell in part if cell not in baselines]
        best = _best(others, group.responses, subject, "spread2")
        winners = [cell for cell in others if any(cell.row in rows for rows in best.values())]
        if heading:
            rows.append(Row((heading,), "section"))
        rows += [_spread_row(cell, group.responses, {}, "baseline") for cell in baselines]
        rows += [_spread_row(cell, group.responses, best) for cell in winners]
    best_text = "Best per column and part is underlined" if section.split else "Best is underlined"
    title = f"{group.title} ({_runs_text(subject)}, mean ± std{_unit(subject, group)})."
    italic = "; the baseline, in italics, is left out of it." if group.baseline else "."
    name = group.name if group is section.further else f"{section.prefix}best-{group.name}"
    return Table(
        name,
        f"{title} {best_text}{italic}",
        _columns(subject, group.responses, "spread2"),
        tuple(rows),
    )


def _best(
    cells: Sequence[Cell], responses: Sequence[str], subject: Subject, form: Format
) -> dict[str, set[int]]:
    """Response -> rows of the configurations whose mean is written as that of the best."""

    def written(cell: Cell, name: str) -> str:
        spread = cell.spreads.get(name)
        return "" if spread is None else cell_text(spread, form).partition("±")[0]

    by_row = {cell.row: cell for cell in cells}
    return {
        name: {c.row for c in cells if written(c, name) == written(by_row[row], name)}
        for name, row in best_cells(cells, responses, subject.responses).items()
    }


def _spread_row(
    cell: Cell, responses: Sequence[str], best: Mapping[str, set[int]], style: RowStyle = "plain"
) -> Row:
    marks: dict[str, Mark] = {name: "best" for name in responses if cell.row in best.get(name, ())}
    return Row((cell.row, cell.config, *map(cell.spreads.get, responses)), style, marks)


def _columns(subject: Subject, responses: Sequence[str], form: Format) -> tuple[Column, ...]:
    return (
        Column("row", "Row", "int"),
        Column("config", config_header(subject.keys, "Config")),
        *(Column(name, subject.responses.title_of(name), form) for name in responses),
    )


def _parts(
    subject: Subject, section: ReportSection, cells: Sequence[Cell]
) -> list[tuple[str, Sequence[Cell]]]:
    """Return the parts of the design with their headings, in standard order."""
    ordered = sorted(cells, key=lambda cell: cell.row)
    if not section.split:
        return [("", ordered)]
    factor = subject.factors[subject.keys.index(section.split)]
    name, switch = factor.name, factor.levels == (False, True)
    parts: list[tuple[str, Sequence[Cell]]] = []
    for number, level in enumerate(factor.levels):
        heading = f"{section.split}={level_text(level)}" + (
            f" ({name})" if factor.name != factor.key else ""
        )
        if switch:
            heading = f"{section.split}={number} ({name} {'on' if level else 'off'})"
        parts.append((heading, [c for c in ordered if c.levels[section.split] == level]))
    return parts


# Effects ----------------------------------------------------------------------------------------


def effect_rows(group: Group, table: EffectsByResponse, runs: str) -> Table:
    """Return the most significant terms; an average only where the study declares it."""
    averaged = any(row.average is not None for row in table.rows)
    columns = (
        Column("term", "Factor"),
        *(Column(name, name, "signed2") for name in table.responses),
        *([Column("average", "Avg", "signed2")] if averaged else []),
    )
    rows = []
    for i, row in enumerate(table.rows[:EFFECTS]):
        average = [row.average] if averaged else []
        marks: dict[str, Mark] = {"average": "best"} if averaged and i == 0 else {}
        rows.append(Row((row.term, *row.effects, *average), marks=marks))
    title = f"{group.effects} ({runs}). Negative lowers the value."
    if not averaged:
        title += f" Ranked by {table.ranked_by}."
    return Table(f"effects-{group.name}", title, columns, tuple(rows))


# Every configuration ----------------------------------------------------------------------------


def full_tables(
    subject: Subject, section: ReportSection, cells: Sequence[Cell]
) -> tuple[Table, ...]:
    """Return every configuration with every metric, a table for each part of the design."""
    metrics = subject.responses.metrics
    form: Format = "capped" if section.capped else "spread1"
    tables = []
    for number, (heading, part) in enumerate(_parts(subject, section, cells)):
        best = _best(part, metrics, subject, form)
        part_text = f"{heading}, " if heading else ""
        if len(part) > MOST_ROWS:  # where only some are printed, the best
            part = best_first(part, metrics[0], subject.responses.goal_of(metrics[0]))
            part_text += f"by {metrics[0]}, "
        tables.append(
            Table(
                section.prefix
                + (f"full-columns-{section.split.lower()}{number}" if section.split else "full"),
                f"Full factorial results ({part_text}{_runs_text(subject)}, mean ± std).",
                _columns(subject, metrics, form),
                tuple(_spread_row(cell, metrics, best) for cell in part),
                ("A mean above 10, 20 or 50 is written as >10, >20 or >50.",)
                if section.capped
                else (),
            )
        )
    return tuple(tables)


def _runs_text(subject: Subject) -> str:
    return f"n = {counted(subject.replicates, 'replicate')}"


def _unit(subject: Subject, group: Group) -> str:
    units = {subject.responses.unit_of(name) for name in group.responses} - {""}
    return f", {units.pop()}" if len(units) == 1 else ""


ENTRIES = (StudyTables(10, "paper", paper_tables, files="paper"),)
