"""Summary when `doe run` ends: counts, the best observed, what is decided."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, NamedTuple

from doe.results.decision import Decision, decision, required_runs
from doe.results.responses import Cell, best_cells, cells_of, response_values
from doe.store.plan import Plan
from doe.store.scan import RunState, RunStatus, counts
from doe.study.values import Study

Ending = Literal["finished", "stopped", "broken off"]
"""Nothing was left to do; interrupted; given up for an error."""


class BestObserved(NamedTuple):
    """The configuration with the best mean of a response, over the runs that have a value."""

    response: str
    goal: str | None
    config: str
    mean: float
    runs: int
    ties: int
    """Other configurations with the same mean."""


class Summary(NamedTuple):
    """A study at the end of `doe run`."""

    study: str
    ending: Ending
    counts: dict[RunState, int]
    seconds: float
    """How long this `doe run` took."""
    best: tuple[BestObserved, ...]
    """Of the averages, or where there are none of the metrics."""
    keys: tuple[str, ...]
    """Of the factors, whose levels a configuration names."""
    decision: Decision | None
    """Of a study that declares when it may stop."""


def summarise(plan: Plan, ending: Ending, seconds: float) -> Summary:
    """Sum a study up."""
    study, scanned = plan.study, plan.scan()
    reached = decision(study, scanned)
    statuses = required_runs(study, scanned, reached)
    best = _best(study, statuses)
    return Summary(study.name, ending, counts(statuses), seconds, best, study.keys, reached)


def _best(study: Study, statuses: Sequence[RunStatus]) -> tuple[BestObserved, ...]:
    answers = study.responses
    names = answers.principal
    rows = [response_values(study, status) for status in statuses]
    values = {name: [row[name] for row in rows] for name in names}
    cells = {cell.row: cell for cell in cells_of([status.run for status in statuses], values)}
    best = best_cells(list(cells.values()), names, answers)
    return tuple(
        BestObserved(
            name,
            answers.goal_of(name),
            cells[row].config,
            cells[row].spreads[name].mean,
            sum(
                status.run.row == row and value == value
                for status, value in zip(statuses, values[name], strict=True)
            ),
            _with_mean(cells.values(), name, cells[row].spreads[name].mean) - 1,
        )
        for name, row in best.items()
    )


def _with_mean(cells: Iterable[Cell], name: str, mean: float) -> int:
    return sum(name in cell.spreads and cell.spreads[name].mean == mean for cell in cells)
