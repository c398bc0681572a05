"""Past runs as verdicts of a planned study: matched by levels and seed, refused where they differ.

All rows are judged before the first is written, so a refused table changes nothing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from doe.design.runs import Run
from doe.errors import DoeError, nearest
from doe.store.plan import Plan, complete_design
from doe.store.requests import check_unchanged, prepare, request_digest
from doe.store.verdicts import IMPORTED, Failure, Result, commit
from doe.study.levels import same_level
from doe.study.values import Level, Study, seed_columns
from doe.terms import level_text

Cells = Mapping[str, str]
"""A row of a table: column -> cell."""

SEED = "seed"
FINISHED = ("", "done", "diverged", "finished", "complete")
"""States of a row that has a result, if the table has a column of states."""


class Imported(NamedTuple):
    """Outcome of importing the rows of a table."""

    new: tuple[str, ...]
    """Runs that received a verdict."""
    known: tuple[str, ...]
    """Runs that already had the same verdict."""
    unfinished: int
    """Rows without a value for every metric: their runs are still pending."""
    outside: int
    """Rows that are not in the plan, if these are left out."""


_Key = tuple[tuple[Level, ...], tuple[int, ...]]
"""Key of a run: the levels of all factors, and its seed, or the seed of every stream."""


class _Columns(NamedTuple):
    """Columns of a table for the factors, metrics and seeds of a study."""

    factors: dict[str, str]
    seeds: dict[str, str]
    metrics: dict[str, str]
    further: dict[str, str]


def import_runs(
    plan: Plan,
    rows: Sequence[Cells],
    source: str,
    named: Mapping[str, str] | None = None,
    matching: bool = False,
) -> Imported:
    """Give runs of a study their verdicts from a table.

    Parameters
    ----------
    source
        The name of the table, noted in every verdict.
    named
        Columns by what they hold, where a column has another name: factor, response or "seed".
    matching
        Leave out rows that the plan does not have, instead of refusing the table.

    Raises
    ------
    DoeError
        If the table contradicts the plan or what has run, naming the row.
    """
    columns = _columns(plan.study, list(rows[0]), dict(named or {}))
    runs = _runs_by_key(plan)
    taken: dict[str, tuple[int, Result]] = {}
    unfinished = outside = 0
    for number, row in enumerate(rows, start=1):
        try:
            run = _planned(row, columns, runs, taken)
        except DoeError as error:
            if matching:
                outside += 1
                continue
            raise DoeError(f"row {number} of {source}: {error}") from None
        result = _result(row, columns, number, source)
        if result is None:
            unfinished += 1
            continue
        former = taken.setdefault(run.run_id, (number, result))
        if former[1].metrics != result.metrics:
            raise DoeError(
                f"rows {former[0]} and {number} of {source} are both {run.name} with "
                f"{run.seed_text} and differ in their results; keep one of them"
            )
    new, known = _commit(plan, {run_id: result for run_id, (_, result) in taken.items()})
    return Imported(new, known, unfinished, outside)


# Matching ---------------------------------------------------------------------------------------


def _columns(study: Study, header: list[str], named: dict[str, str]) -> _Columns:
    """Find each column, by the name that was given, its own, or its key in [metrics]."""
    answers, keys = study.responses, study.metrics.keys
    seeds = seed_columns(study.streams) or (SEED,)
    wanted = [*study.keys, *seeds, *answers.returned, *answers.optional]
    for name, column in named.items():
        if name not in wanted:
            raise DoeError(
                f"{name!r} is neither a factor nor a metric of the study nor {', '.join(seeds)}"
                f"{nearest(name, wanted)}"
            )
        if column not in header:
            raise DoeError(f"the table has no column {column!r}{nearest(column, header)}")
    column_or_none = {
        name: next((c for c in (named.get(name), name, keys.get(name)) if c in header), None)
        for name in wanted
    }
    absent = [n for n in (*study.keys, *seeds, *answers.returned) if column_or_none[n] is None]
    if absent:
        raise DoeError(
            f"the table has no column {absent[0]!r}{nearest(absent[0], header)}; it has "
            f"{', '.join(header)}. Name its column: {absent[0]}=COLUMN"
        )
    column_of = {name: column for name, column in column_or_none.items() if column is not None}
    return _Columns(
        {key: column_of[key] for key in study.keys},
        {name: column_of[name] for name in seeds},
        {name: column_of[name] for name in answers.returned},
        {name: column_of[name] for name in answers.optional if name in column_of},
    )


def _runs_by_key(plan: Plan) -> dict[_Key, list[Run]]:
    """Return the planned runs by key; several of one key are interchangeable centre runs."""
    runs: dict[_Key, list[Run]] = {}
    for run in plan.design.runs:
        levels = tuple(run.levels[factor] for factor in plan.study.keys)
        runs.setdefault((levels, tuple(run.seeds.values()) or (run.seed,)), []).append(run)
    return runs


def _planned(
    row: Cells,
    columns: _Columns,
    runs: Mapping[_Key, Sequence[Run]],
    taken: Collection[str],
) -> Run:
    """Return the planned run of a row, by its levels and its seed."""
    levels = []
    for i, (key, column) in enumerate(columns.factors.items()):
        known = dict.fromkeys(planned[i] for planned, _ in runs)
        level = next((level for level in known if same_level(row[column], level)), None)
        if level is None:
            listing = ", ".join(map(level_text, known))
            raise DoeError(
                f"{key} is {row[column]!r}, which is not planned; its levels are {listing}"
            )
        levels.append(level)
    seeds: list[int] = []
    for i, (name, column) in enumerate(columns.seeds.items()):
        seed = _number(row[column])
        planned_seeds = dict.fromkeys(planned[i] for _, planned in runs)
        if seed is None or seed not in planned_seeds:
            listing = ", ".join(map(str, planned_seeds))
            raise DoeError(f"{name} {row[column]!r} is not planned; the seeds are {listing}")
        seeds.append(int(seed))
    alike = runs.get((tuple(levels), tuple(seeds)), ())
    if not alike:
        shown = ", ".join(
            f"{key} = {level_text(level)}"
            for key, level in zip(columns.factors, levels, strict=True)
        )
        cells = ", ".join(f"{name} {row[column]}" for name, column in columns.seeds.items())
        raise DoeError(f"{shown} with {cells} is not a run of the plan")
    return next((run for run in alike if run.run_id not in taken), alike[-1])


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


# Verdicts ---------------------------------------------------------------------------------------


def _result(row: Cells, columns: _Columns, number: int, source: str) -> Result | None:
    """Build the verdict of a row; None if some metric has no value."""
    if row.get("state", "").lower() not in FINISHED:
        return None
    metrics: dict[str, float | None] = {}
    for name, column in (columns.metrics | columns.further).items():
        cell = row[column]
        if not cell:
            if name in columns.metrics:
                return None
            continue
        value = _number(cell)
        if value is None:
            raise DoeError(f"row {number} of {source} holds {cell!r} for {name}; expected a number")
        metrics[name] = value if math.isfinite(value) else None
    origin: dict[str, Any] = {IMPORTED: source}
    seconds = _number(row.get("seconds", ""))
    if seconds is not None and math.isfinite(seconds):
        origin["seconds"] = seconds
    lost = [name for name, value in metrics.items() if value is None]
    if lost:
        failure = Failure("diverged", f"{', '.join(lost)} is not finite")
        return Result("diverged", metrics, failure, origin)
    return Result("done", metrics, None, origin)


def _commit(plan: Plan, results: Mapping[str, Result]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Write the verdicts of runs without one; return those, and the runs that had the same."""
    files = plan.files
    statuses = {status.run.run_id: status for status in plan.scan()}
    check_unchanged(plan.study, statuses.values(), files)
    known = []
    for run_id, result in results.items():
        status = statuses[run_id]
        if status.state == "running":
            raise DoeError(f"{run_id} is running; wait until it has ended, then import again")
        if status.problem or status.damaged:
            reason = status.problem or f"its {files.run(run_id).result.name} is damaged"
            raise DoeError(f"{run_id} cannot take a result: {reason}; fix that first")
        if status.result is not None and status.state != "failed":
            if status.result.metrics != result.metrics:
                raise DoeError(
                    f"{run_id} {status.run.name} has other results than its row in the table; "
                    "remove that row"
                )
            known.append(run_id)
        elif status.result is not None:
            raise DoeError(
                f"{run_id} {status.run.name} has failed here; `doe run --retry-failed` runs it "
                "again, or remove its row"
            )
    complete_design(plan)
    new = [run_id for run_id in results if run_id not in known]
    for run_id in new:
        run = statuses[run_id].run
        run_dir = files.run(run_id)
        if problem := prepare(run_dir, plan.study, run):
            raise DoeError(f"{run_id} cannot take a result: {problem}")
        origin = {
            "request": request_digest(plan.study, run),
            "seed": run.seed,
            **({"seeds": run.seeds} if run.seeds else {}),
        }
        result = results[run_id]
        whole = msgspec.structs.replace(result, provenance=result.provenance | origin)
        if not commit(run_dir, whole, f"import-{os.urandom(6).hex()}"):
            raise DoeError(f"{run_id} received another result meanwhile; import again")
    return tuple(new), tuple(known)
