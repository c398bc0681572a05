"""From a study or a table on disk to runs and observations: what every analysis starts from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from doe.analysis.data import FactorLevels, Fresh, Looked, Observations, Runs, numbered, state_text
from doe.analysis.levels.layout import MIDDLE, FactorColumn, LevelObservations, LevelRuns
from doe.analysis.streams import Seeding
from doe.design.changes import confirming
from doe.design.configurations import CENTRE
from doe.design.runs import Run
from doe.results.cells import baseline, cells_of
from doe.results.looks import look_notes, stopping_rule
from doe.results.responses import (
    check_response,
    columns,
    response_values,
    slot_and_host,
    table_rows,
)
from doe.store.plan import load_plan
from doe.store.scan import RunStatus
from doe.study.levels import level_numbers
from doe.study.values import FIRST_LOOK, Study
from doe.terms import level_text

if TYPE_CHECKING:
    import pandas as pd


def scan_study(directory: Path) -> tuple[Study, list[RunStatus]]:
    """Read a planned study and the state of its runs, in run order."""
    plan = load_plan(directory)
    return plan.study, plan.scan()


def load(directory: Path) -> pd.DataFrame:
    """A study's responses table, in run order."""
    import pandas as pd

    study, statuses = scan_study(directory)
    return pd.DataFrame(table_rows(study, statuses), columns=columns(study))


def study_runs(study: Study, statuses: Sequence[RunStatus]) -> Runs | LevelRuns:
    """Which run had which levels and stood in which block: the replicate, or what splits it."""
    planned = [status.run for status in statuses]
    block = numbered(run.block for run in planned)
    blocked = block.max() > 0
    same = (numbered(run.replicate for run in planned) == block).all()
    name = ("replicate" if same else "block") if blocked else None
    if not study.two_level or study.centre:
        layout = design_runs(study, planned, name)
        return replace(layout, notes=look_notes(study, statuses))
    slots, hosts = zip(*(slot_and_host(status) for status in statuses), strict=True)
    return Runs(
        factors=tuple(
            FactorLevels(f.key, level_text(f.low), level_text(f.high), f.name)
            for f in study.factors
        ),
        coded=np.array([run.coded for run in planned], np.int8),
        block=block if blocked else None,
        block_name=name,
        run_ids=tuple(run.run_id for run in planned),
        run_order=tuple(run.run_order for run in planned),
        slot=slots if any(slots) else None,
        host=hosts if any(hosts) else None,
        states=tuple(state_text(status.state, status.reason) for status in statuses),
        notes=look_notes(study, statuses),
        looked=_looked(study, planned),
        seeding=_seeding(study, planned),
    )


def design_runs(study: Study, planned: Sequence[Run], block_name: str | None = None) -> LevelRuns:
    """Runs of a design by the numbers of their levels, for factors with any number of them."""
    centre = np.array([run.config == CENTRE for run in planned])
    middle = (MIDDLE,) * len(study.factors)
    block = numbered(run.block for run in planned)
    return LevelRuns(
        tuple(
            FactorColumn(f.key, f.name or f.key, f.levels, f.numeric, f.scale)
            for f in study.factors
        ),
        np.array(
            [
                middle if is_centre else level_numbers(run.row, study.sizes)
                for run, is_centre in zip(planned, centre.tolist(), strict=True)
            ],
            np.int64,
        ),
        block if block.max() > 0 else None,
        block_name or "block",
        centre if centre.any() else None,
        seeding=_seeding(study, planned),
    )


def _looked(study: Study, planned: Sequence[Run]) -> Looked | None:
    replicate = np.array([run.replicate for run in planned], dtype=np.int64)
    if study.stopping is None or int(replicate.max()) < FIRST_LOOK:
        return None
    return Looked(stopping_rule(study.stopping), replicate)


def _seeding(study: Study, planned: Sequence[Run]) -> Seeding | None:
    if not study.streams:
        return None
    seeds = [numbered(run.seeds[name] for run in planned) for name in study.streams]
    replicate = numbered(run.replicate for run in planned)
    return Seeding(tuple(study.streams), replicate, np.stack(seeds))


def observations(
    study: Study,
    statuses: Sequence[RunStatus],
    runs: Runs | LevelRuns,
    names: Iterable[str],
    fresh: Sequence[RunStatus] = (),
) -> list[Observations | LevelObservations]:
    """The responses that are named, with the study's units, goals and scales.

    `fresh` are runs that confirm a winner, as `confirming_runs` gives them.

    Raises
    ------
    DoeError
        If the study has no such response.
    """
    answers = study.responses
    values = [response_values(study, status) for status in statuses]
    observed: list[Observations | LevelObservations] = []
    cells = cells_of(statuses, {})
    for name in dict.fromkeys(names):
        check_response(study, name)
        y = np.array([value[name] for value in values], dtype=np.float64)
        y[~np.isfinite(y)] = np.nan
        kind = (answers.unit_of(name), answers.goal_of(name), answers.scale_of(name))
        if isinstance(runs, Runs):
            compared = (fresh_values(study, fresh, name), baseline(study, cells, name))
            observed.append(Observations(runs, name, y, y, y, *kind, *compared))
        else:
            observed.append(LevelObservations(runs, name, y, *kind))
    return observed


def confirming_runs(study: Study, statuses: Sequence[RunStatus]) -> list[RunStatus]:
    """The runs that confirm a winner with fresh seeds."""
    return [status for status in statuses if status.run.replicate in confirming(study)]


def fresh_values(study: Study, fresh: Sequence[RunStatus], name: str) -> Fresh | None:
    """What fresh runs give for the response whose best configuration they confirm."""
    step = next((step for step in study.augment if step.confirm), None)
    if step is None or step.response != name or not fresh:
        return None
    values = {(s.run.name, s.run.seed): response_values(study, s)[name] for s in fresh}
    y = [[values.get((config, seed), np.nan) for seed in step.seeds] for config in step.confirm]
    table = np.array(y, dtype=np.float64)
    labels = {status.run.name: status.run.config for status in fresh}
    configs = tuple(labels[config] for config in step.confirm)
    return Fresh(configs, np.where(np.isfinite(table), table, np.nan))
