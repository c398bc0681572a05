"""From what is asked to a plan on disk: new studies, added runs, past runs taken over."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from doe.design.changes import with_overrides
from doe.errors import DoeError
from doe.results.table_file import Say, read_table
from doe.store.files import StudyDir
from doe.store.imports import Imported, import_runs
from doe.store.plan import RUNS, Outcome, Plan, augment_plan, find_study, load_plan, write_plan
from doe.study.command import check_program
from doe.study.file import checked_study, load_study
from doe.study.presets import study_or_preset
from doe.study.values import Study

if TYPE_CHECKING:
    import pandas as pd

    from doe.results.budget import Known, Offer


class PlanRequest(msgspec.Struct, frozen=True):
    """Request of `doe plan` and `doe.plan`; raises DoeError if its parts contradict each other."""

    study: Study | Mapping[str, Any] | Path | None = None  # a value, its tables, or its file
    preset: str | None = None
    replicates: int | None = None
    fraction: str | None = None
    out: Path | None = None  # the study's directory
    augment: str | None = None  # replicates, foldover, axial, optimal, ascent
    confirm: int | None = None  # fresh seeds for the best configuration
    response: str | None = None  # whose best is confirmed, or whose ascent is followed
    runs: int | None = None  # to add by an optimal design, or steps of the ascent
    model: str | None = None  # of that design
    budget: str | None = None  # hours or runs, which choose replicates and fraction
    run_time: str | None = None  # of a run, such as 90s
    sigma: float | None = None  # of single runs
    slots: int | None = None  # runs at once
    choose: int | None = None  # number of the design among those that fit, from 1

    def __post_init__(self) -> None:
        if not isinstance(self.study, (Study, Mapping, Path, type(None))):
            raise DoeError(
                f"got {type(self.study).__name__}; expected a Study, a dict or the path of a "
                "study file"
            )
        self._check_budget()
        if self.augment not in ("optimal", "ascent") and self.runs is not None:
            raise DoeError("runs belong to augment optimal or ascent; give it too")
        if self.augment != "optimal" and self.model is not None:
            raise DoeError("a model belongs to augment optimal; give it too")
        if self.confirm is None and self.augment != "ascent" and self.response is not None:
            raise DoeError(
                "a response belongs to confirmation, and to augment ascent: say how many fresh "
                "seeds (confirm)"
            )
        changes = (self.study, self.preset, self.replicates, self.fraction)
        both = self.augment is not None and self.confirm is not None
        added = self.augment is not None or self.confirm is not None
        if both or (added and any(change is not None for change in changes)):
            raise DoeError(
                "augment and confirm add to a planned study and take only its directory (out); "
                "leave out the study, preset, replicates and fraction, and the other of the two"
            )

    def _check_budget(self) -> None:
        size = (self.replicates, self.fraction, self.augment, self.confirm)
        added = (self.response, self.runs, self.model)
        if self.budget is not None and any(option is not None for option in (*size, *added)):
            raise DoeError("budget chooses replicates and fraction itself; remove those options")
        details = (self.run_time, self.sigma, self.slots, self.choose)
        if self.budget is None and any(option is not None for option in details):
            raise DoeError("choose, run_time, sigma and slots need budget")


def make_plan(request: PlanRequest) -> tuple[Plan, Outcome]:
    """Plan a study, or add runs to a planned one.

    Raises
    ------
    DoeError
        If the study cannot be planned so, or contradicts what is planned there.
    """
    if request.confirm is not None:
        from doe.results.confirm import confirm_plan

        directory = find_study(request.out)
        return confirm_plan(directory, request.confirm, request.response), "augmented"
    if request.augment == "ascent":
        from doe.results.confirm import ascent_plan

        directory = find_study(request.out)
        return ascent_plan(directory, request.response, request.runs), "augmented"
    if request.augment is not None:
        added = (request.augment, request.runs or 0, request.model or "")
        return augment_plan(find_study(request.out), *added), "augmented"
    study = requested_study(request) if request.budget is None else _chosen_design(request)
    check_program(study, Path.cwd())
    return write_plan(study, request.out or RUNS / study.name)


def designs_within(request: PlanRequest) -> tuple[list[Offer], Known]:
    """Return the designs that fit a budget, and what is known of time and spread."""
    from doe.results.budget import known_of, offers, read_budget

    study = requested_study(request)
    directory = RUNS / study.name
    if request.out is not None and StudyDir(request.out).design.exists():
        directory = request.out  # else what has run under the name tells, and may stay as it is
    known = known_of(directory, study, request.run_time, request.sigma, request.slots or 1)
    return offers(study, read_budget(request.budget or ""), known), known


def _chosen_design(request: PlanRequest) -> Study:
    """Return the study in the chosen design among those that fit a budget."""
    found, _ = designs_within(request)
    fitting = "; ".join(f"{i} {o.design} ({o.runs} runs)" for i, o in enumerate(found, start=1))
    if request.choose is None:
        raise DoeError(f"choose a design that fits {request.budget}: {fitting}")
    if not 1 <= request.choose <= len(found):
        raise DoeError(f"choose {request.choose}: expected one of {fitting}")
    return found[request.choose - 1].study


def requested_study(request: PlanRequest) -> Study:
    """Return the study that a request names, with its replicates and fraction."""
    given = request.study
    if isinstance(given, Mapping):
        given = checked_study(given, "the study")
    return with_overrides(
        study_or_preset(given, request.preset), request.replicates, request.fraction
    )


def planned_or_new(path: Path | None) -> tuple[Plan, Outcome]:
    """Load a planned study; a study file that is not the frozen one is planned first."""
    if path is not None and path.is_file() and not StudyDir(path.parent).design.exists():
        study = load_study(path)
        return write_plan(study, RUNS / study.name)
    return load_plan(find_study(path)), "unchanged"


def import_table(
    plan: Plan,
    table: Path | pd.DataFrame,
    columns: Mapping[str, str],
    matching: bool,
    say: Say,
    decimal: str | None = None,
) -> Imported:
    """Take past runs of a table over as results of a plan; see `import_runs`."""
    frame = (
        read_table(table, say, decimal) if isinstance(table, Path) else table.rename(columns=str)
    )
    rows = [
        dict(zip(frame.columns, map(_cell, row), strict=True)) for row in frame.to_numpy().tolist()
    ]
    name = table.name if isinstance(table, Path) else "DataFrame"
    return import_runs(plan, rows, name, columns, matching)


def _cell(value: object) -> str:
    """Return a cell as text; a gap is empty."""
    return "" if value is None or value != value else str(value)
