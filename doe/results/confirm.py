"""Confirming a winner: which configurations to run again with fresh seeds."""

from __future__ import annotations

from pathlib import Path

from doe.analysis.analyze import fit_response
from doe.analysis.best import best
from doe.analysis.confirm import cells_to_confirm
from doe.analysis.options import DEFAULTS
from doe.design.changes import with_confirmation
from doe.errors import DoeError
from doe.results.cells import baseline, cells_of
from doe.results.dataset import datasets, scan_study, study_runs
from doe.results.decision import decision
from doe.results.looks import analysed
from doe.store.plan import Plan, change_plan
from doe.store.scan import RunStatus
from doe.study.values import Study


def confirm_plan(directory: Path, seeds: int, response: str | None) -> Plan:
    """Add fresh runs of the configuration that the model predicts best, the best observed, the
    runner-up and the baseline to a study that has ended, a block per seed.

    Raises
    ------
    DoeError
        If the study has not ended, or there is no response or goal to choose by.
    """
    study, scanned = scan_study(directory)
    reached = decision(study, scanned)
    ended = reached.is_final if reached else all(s.result is not None for s in scanned)
    if not ended:
        raise DoeError("runs are still to come; a winner is confirmed when the study has ended")
    if seeds < 2:
        raise DoeError(f"got {seeds}; expected at least 2 fresh seeds, to see their spread")
    name = response or study.responses.headline[0]
    chosen = chosen_configs(study, analysed(study, scanned), name)
    return change_plan(directory, lambda s: with_confirmation(s, chosen, name, seeds))


def chosen_configs(study: Study, statuses: list[RunStatus], response: str) -> tuple[str, ...]:
    """The predicted best, the best observed, the runner-up and the baseline, each once, as files
    name them.
    """
    runs = study_runs(study, statuses)
    (data,) = datasets(study, statuses, runs, [response])
    if data.goal is None:
        raise DoeError(f"{response} has no goal; say whether min or max is better")
    fitted = fit_response(data, DEFAULTS)
    names = {
        cell: status.run.name for cell, status in zip(runs.cells.tolist(), statuses, strict=True)
    }
    chosen = [names[cell] for cell in cells_to_confirm(fitted, best(fitted, data.goal))]
    other = baseline(study, cells_of([status.run for status in statuses], {}), response)
    labels = {status.run.config: status.run.name for status in statuses}
    return tuple(dict.fromkeys((*chosen, labels[other])))
