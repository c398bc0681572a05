"""Subject of a report: the runs of a study or of a table with their responses."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from doe.analysis.dataset import Dataset, FactorColumn, Runs
from doe.design.changes import confirming
from doe.design.kinds import chosen_kind
from doe.goals import Desire
from doe.numbers import duration_text
from doe.results.dataset import confirming_runs, datasets, factor_columns, study_runs
from doe.results.looks import analysed
from doe.results.origins import machine_text
from doe.results.responses import Cell, cells_of, response_values
from doe.results.status import Overview, failures
from doe.store.scan import STATES, RunState, RunStatus
from doe.study.levels import allowed_rows
from doe.study.values import FACTORIAL, Goal, Group, Level, ReportSection, Responses, Study

if TYPE_CHECKING:
    from doe.analysis.tables import TableOptions


class RunRecord(NamedTuple):
    """One run as a page shows it."""

    run_id: str
    row: int
    """Number of its configuration in standard order; points between levels follow the last."""
    config: str
    levels: dict[str, Level]
    state: RunState
    reason: str
    facts: tuple[tuple[str, str], ...]
    """Whatever else is known of it, each with its name."""


class Subject(NamedTuple):
    """The runs of a study or of a table, and what was observed."""

    name: str
    path: Path
    """The study's directory or the table's file."""
    factors: tuple[FactorColumn, ...]
    responses: Responses
    section: ReportSection
    """How the runs become the tables of a paper."""
    design: str
    """The kind of design and its replicates."""
    replicates: int
    runs: tuple[RunRecord, ...]
    values: dict[str, tuple[float | None, ...]]
    """Response -> its value in each run."""
    cells: tuple[Cell, ...]
    """Configurations in standard order, without the runs that confirm a winner."""
    data: dict[str, Dataset]
    """Response -> what is analysed."""
    warnings: tuple[str, ...] = ()
    description: str = ""
    meanings: dict[str, str] = {}  # noqa: RUF012 - never written to
    """Factor -> what it means, where the study says so."""
    excluded: tuple[int, ...] = ()
    """Rows of the combinations that cannot run."""
    desirability: dict[str, Desire] = {}  # noqa: RUF012 - never written to
    """Response -> how desirable its values are, where the study says so."""
    state: Overview | None = None
    """How far a study has come; None for a table."""
    table: TableOptions | None = None
    """What the columns of a table are; None for a study."""

    @property
    def keys(self) -> tuple[str, ...]:
        """Factor keys."""
        return tuple(factor.key for factor in self.factors)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of candidates of each factor."""
        return tuple(len(factor.levels) for factor in self.factors)

    @property
    def statuses(self) -> Sequence[RunStatus]:
        """The directories of a study's runs as they were read; none of a table."""
        return self.state.statuses if self.state else ()

    @property
    def done(self) -> int:
        """Number of runs that are done."""
        return sum(run.state == "done" for run in self.runs)

    @property
    def failures(self) -> dict[str, list[str]]:
        """Reason -> the runs that failed or diverged for it, the most frequent first."""
        return failures([(run.run_id, run.state, run.reason) for run in self.runs])


# Of a study ---------------------------------------------------------------------------------------


def study_subject(state: Overview, names: Sequence[str]) -> Subject:
    """Return a study as far as it has run, with the responses that are named."""
    study, statuses = state.study, state.statuses
    values = [response_values(study, status) for status in statuses]
    data = study_datasets(study, statuses, names)
    columns = {name: [value[name] for value in values] for name in names}
    kept = [i for i, s in enumerate(statuses) if s.run.replicate not in confirming(study)]
    chosen = {name: [column[i] for i in kept] for name, column in columns.items()}
    return Subject(
        name=study.name,
        path=state.directory,
        factors=factor_columns(study),
        responses=study.responses,
        section=report_section(study.report, study.responses),
        design=_kind(study),
        replicates=study.replicates,
        runs=tuple(map(_record, statuses)),
        values={name: tuple(map(_finite, column)) for name, column in columns.items()},
        cells=cells_of([statuses[i].run for i in kept], chosen),
        data=data,
        warnings=tuple(state.warnings),
        description=study.description,
        meanings={factor.key: factor.description for factor in study.factors},
        excluded=_excluded(study),
        desirability=study.desirability,
        state=state,
    )


def study_datasets(
    study: Study, statuses: Sequence[RunStatus], names: Sequence[str]
) -> dict[str, Dataset]:
    """Return what is analysed of a study's runs: those of the design, as far as they may be looked
    at.
    """
    included = analysed(study, statuses)
    fresh = confirming_runs(study, statuses)
    read = datasets(study, included, study_runs(study, included), names, fresh)
    return {data.response: data for data in read}


def _kind(study: Study) -> str:
    kind = f"Fraction {study.fraction}" if study.fraction else "Full factorial"
    if study.kind != FACTORIAL:
        kind = chosen_kind(study).describe().partition(":")[0].removesuffix(".")
    return kind + (f" without {'; '.join(study.exclude)}" if study.exclude else "")


def _record(status: RunStatus) -> RunRecord:
    run = status.run
    took = "" if status.seconds is None else duration_text(status.seconds)
    name, _, seeds = run.seed_text.partition(" ")
    facts = [
        ("replicate", str(run.replicate)),
        (name, seeds),
        ("took", took),
        ("on", machine_text(status)),
        ("started", str(status.provenance.get("start", ""))[:16].replace("T", " ")),
    ]
    known = tuple((name, text) for name, text in facts if text)
    return RunRecord(
        run.run_id, run.row, run.config, run.levels, status.state, status.reason, known
    )


def _excluded(study: Study) -> tuple[int, ...]:
    if not study.exclude:
        return ()
    allowed = set(allowed_rows(study))
    return tuple(row for row in range(math.prod(study.sizes)) if row not in allowed)


def report_responses(responses: Responses) -> tuple[str, ...]:
    """Return all responses, those that summarise first."""
    return (*responses.averages, *responses.metrics, *responses.further)


def report_section(section: ReportSection, responses: Responses) -> ReportSection:
    """Return a [report] section; without groups, one for each average, else for the metrics."""
    if section.groups:
        return section
    averages = tuple(
        Group(name, name, parts, f"{name} factorial effects")
        for name, parts in responses.averages.items()
    )
    metrics = Group("metrics", "Metrics", responses.metrics, "Metrics factorial effects")
    further = Group("further", "Further metrics", responses.further) if responses.further else None
    return ReportSection(
        averages or (metrics,),
        section.further or further,
        section.split,
        section.drop,
        section.prefix,
        section.capped,
    )


# Of a table ---------------------------------------------------------------------------------------


def table_subject(path: Path, data: Sequence[Dataset], table: TableOptions) -> Subject:
    """Return the rows of a table as runs, with all that it says of them."""
    runs = data[0].runs
    goals = {d.response: _goal(table.goal_of(d.response)) for d in data}
    known = {name: goal for name, goal in goals.items() if goal is not None}
    responses = Responses(tuple(goals), goal=_goal(table.goals.get("")), goals=known)
    some = np.any([np.isfinite(d.y) | _limited(d) for d in data], axis=0)
    configs = {cell: (runs.config(cell), runs.values(cell)) for cell in set(runs.cells.tolist())}
    records = tuple(_table_record(runs, i, configs, bool(some[i])) for i in range(runs.count))
    cells, every = len({run.row for run in records}), runs.every
    most = max(Counter(run.row for run in records).values())
    values = {d.response: d.y.tolist() for d in data}
    return Subject(
        name=path.stem,
        path=path,
        factors=runs.factors,
        responses=responses,
        section=report_section(ReportSection(), responses),
        design="Full factorial" if cells == every else f"{cells} of {every} combinations",
        replicates=most,
        runs=records,
        values={name: tuple(map(_finite, column)) for name, column in values.items()},
        cells=cells_of(records, values),
        data={d.response: d for d in data},
        warnings=runs.notes
        if table.goal
        else (*runs.notes, "No goal was given, so that nothing is called the best."),
        table=table,
    )


def _goal(text: str | None) -> Goal | None:
    return "max" if text == "max" else "min" if text == "min" else None


def _limited(data: Dataset) -> np.ndarray:
    """Return which runs have a limit in the place of a value."""
    if data.limits is None:
        return np.zeros(len(data.y), dtype=bool)
    return ~np.isnan(data.limits[0]) & np.isnan(data.y)


def _table_record(
    runs: Runs, i: int, configs: dict[int, tuple[str, tuple[Level, ...]]], has_value: bool
) -> RunRecord:
    cell = int(runs.cells[i])
    config, levels = configs[cell]
    word, _, reason = runs.states[i].partition(": ")
    known = [state for state in STATES if state == word.lower()]
    state: RunState = known[0] if known else "done" if has_value else "failed"
    if state != "done" and not known:
        reason = runs.states[i] or "no value"
    labels = {"slot": runs.slot, "host": runs.host, **runs.facts}
    return RunRecord(
        run_id=runs.run_ids[i],
        row=cell if cell >= 0 else runs.every - 1 - cell,
        config=config,
        levels=dict(zip(runs.keys, levels, strict=True)),
        state=state,
        reason=reason if state != "done" else "",
        facts=tuple((n, texts[i]) for n, texts in labels.items() if texts and texts[i]),
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
