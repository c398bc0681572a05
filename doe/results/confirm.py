"""Confirming a winner: which configurations to run again with fresh seeds."""

from __future__ import annotations

from pathlib import Path

from doe.analysis.analyze import Analysis, analyze
from doe.analysis.confirm import by_prediction
from doe.analysis.data import Observations
from doe.design.changes import with_confirmation
from doe.errors import DoeError
from doe.results.cells import baseline, cells_of
from doe.results.decision import decision
from doe.results.looks import analysed
from doe.results.observations import observations, scan_study, study_runs
from doe.store.plan import Plan, change_plan
from doe.store.scan import RunStatus
from doe.study.values import Study


def confirm_plan(directory: Path, seeds: int, response: str | None) -> Plan:
    """Add fresh runs of the configuration that the model predicts best, the runner-up and the
    baseline to a study that has ended, a block per seed.

    Raises
    ------
    DoeError
        If the study has not ended, or there is no response or goal to choose by.
    """
    study, scanned = scan_study(directory)
    reached = decision(study, scanned)
    over = reached.over if reached else all(s.result is not None for s in scanned)
    if not over:
        raise DoeError("runs are still to come; a winner is confirmed when the study has ended")
    if seeds < 2:
        raise DoeError(f"got {seeds}; expected at least 2 fresh seeds, to see their spread")
    answers = study.responses
    name = response or next(iter(answers.averages), answers.metrics[0])
    statuses = analysed(study, scanned)
    (observed,) = observations(study, statuses, study_runs(study, statuses), [name])
    if not isinstance(observed, Observations):
        raise DoeError(
            "a winner can be confirmed where each factor has two levels, without centre runs"
        )
    chosen = chosen_configs(study, statuses, analyze(observed))
    return change_plan(directory, lambda s: with_confirmation(s, chosen, name, seeds))


def chosen_configs(study: Study, statuses: list[RunStatus], analysis: Analysis) -> tuple[str, ...]:
    """The predicted best, the runner-up and the baseline, each once, as files name them."""
    if analysis.best is None:
        raise DoeError(f"nobody says which way {analysis.response} is better; give it a goal")
    best, runner_up, *_ = by_prediction(analysis.best, study.keys)
    other = baseline(study, cells_of(statuses, {}), analysis.response)
    names = {status.run.config: status.run.name for status in statuses}
    return tuple(dict.fromkeys(names[config] for config in (best, runner_up, other)))
