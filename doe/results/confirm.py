"""Runs that answers ask for: fresh seeds of a winner, and the path of steepest ascent."""

from __future__ import annotations

from pathlib import Path

from doe.analysis.analyze import fit_response
from doe.analysis.best import best
from doe.analysis.confirm import cells_to_confirm, in_all_conditions
from doe.analysis.options import DEFAULTS
from doe.analysis.surface import surface
from doe.design.changes import with_confirmation, with_path
from doe.design.configurations import Levels, study_configurations
from doe.errors import DoeError
from doe.results.dataset import datasets, scan_study, study_runs
from doe.results.decision import decision
from doe.results.looks import analysed
from doe.results.responses import baseline, cells_of
from doe.store.plan import Plan, change_plan
from doe.store.scan import RunStatus
from doe.study.values import Study
from doe.terms import FACTORS


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
    if random := [factor.key for factor in study.factors if factor.random]:
        raise DoeError(
            f"{random[0]} is random: fresh seeds at levels that have run do not show what others "
            f"will give; run the best at levels of {random[0]} that this study does not have"
        )
    name = response or study.responses.headline[0]
    chosen, points = chosen_configs(study, analysed(study, scanned), name)
    return change_plan(directory, lambda s: with_confirmation(s, chosen, name, seeds, points))


def ascent_plan(directory: Path, response: str | None, steps: int | None) -> Plan:
    """Add the path of steepest ascent of a response to a study, a run of each point and replicate.

    Raises
    ------
    DoeError
        If there is no goal, no number to change, or the model has squares and needs no path.
    """
    study, scanned = scan_study(directory)
    name = response or study.responses.headline[0]
    statuses = analysed(study, scanned)
    (data,) = datasets(study, statuses, study_runs(study, statuses), [name])
    if data.goal is None:
        raise DoeError(f"{name} has no goal; say whether min or max is better")
    found = surface(fit_response(data, DEFAULTS), DEFAULTS.coding)
    if found is None:
        raise DoeError("no factor is a range of numbers, so that there is no path to follow")
    if found.kind is not None:
        raise DoeError(
            "the model has squares: its optimum is known, and a path of steepest ascent is for "
            "models without them; the analysis names it"
        )
    path = [point for point in found.path[1:] if steps is None or point.step <= steps]
    if not path:
        raise DoeError(f"no factor has a slope on {name} to follow within what is possible")
    points = tuple(tuple(point.levels[key] for key in study.keys) for point in path)
    return change_plan(directory, lambda s: with_path(s, points))


def chosen_configs(
    study: Study, statuses: list[RunStatus], response: str
) -> tuple[tuple[str, ...], tuple[Levels, ...]]:
    """Return the predicted best, the best observed, the runner-up and the baseline, each once, as
    files name them; the optimum of a surface comes first, with its levels.
    """
    runs = study_runs(study, statuses)
    (data,) = datasets(study, statuses, runs, [response])
    if data.goal is None:
        raise DoeError(f"{response} has no goal; say whether min or max is better")
    fitted = fit_response(data, DEFAULTS)
    names = {
        cell: status.run.name for cell, status in zip(runs.cells.tolist(), statuses, strict=True)
    }
    ranked = best(fitted, data.goal)
    other = baseline(study, cells_of([status.run for status in statuses], {}), response)
    labels = {s.run.config: cell for s, cell in zip(statuses, runs.cells.tolist(), strict=True)}
    cells = tuple(dict.fromkeys((*cells_to_confirm(fitted, ranked), labels[other])))
    planned = tuple(names[cell] for cell in in_all_conditions(fitted, ranked, cells))
    found = surface(fitted, DEFAULTS.coding) if max(fitted.fit.model.terms) > FACTORS else None
    if found is None or found.optimum is None:
        return planned, ()
    levels = tuple(found.optimum.levels.get(f.key, f.low) for f in study.factors)
    name = study_configurations(study).at(levels).name
    return tuple(dict.fromkeys((name, *planned))), (() if name in planned else (levels,))
