"""From the runs of a study to datasets: what every analysis starts from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from doe.analysis.dataset import (
    Covariate,
    Dataset,
    FactorColumn,
    FreshRuns,
    Limits,
    Looked,
    RandomGroup,
    Runs,
    numbered,
    runs_at,
    state_text,
)
from doe.analysis.streams import Seeding
from doe.design.changes import confirming
from doe.design.kinds import chosen_kind
from doe.design.kinds.optimal import constraints_of
from doe.design.runs import Run, portion, portions_per_replicate, stage_execution
from doe.results.curves import reported_at
from doe.results.looks import look_notes, stopping_rule
from doe.results.responses import (
    baseline,
    cells_of,
    check_response,
    columns,
    response_values,
    slot_and_host,
    table_rows,
)
from doe.store.plan import load_plan
from doe.store.scan import RunStatus
from doe.study.levels import conditions, excluded_levels
from doe.study.values import Study, covariate_step

if TYPE_CHECKING:
    import pandas as pd


def scan_study(directory: Path) -> tuple[Study, list[RunStatus]]:
    """Read a planned study and the state of its runs, in run order."""
    plan = load_plan(directory)
    return plan.study, plan.scan()


def load(directory: Path) -> pd.DataFrame:
    """Read a study's responses table, in run order."""
    import pandas as pd

    study, statuses = scan_study(directory)
    return pd.DataFrame(table_rows(study, statuses), columns=columns(study))


def planned_runs(study: Study, planned: Sequence[Run]) -> Runs:
    """Levels and block of planned runs: the block is the replicate, or what splits it."""
    factors = factor_columns(study)
    levels = {key: [run.levels[key] for run in planned] for key in study.keys}
    index, position = runs_at(levels, factors)
    split = portions_per_replicate(study) > 1
    block = numbered(portion(study, run) if split else run.block for run in planned)
    blocked = bool(block.max(initial=0) > 0)
    same = bool((numbered(run.replicate for run in planned) == block).all())
    return Runs(
        factors=factors,
        index=index,
        position=position,
        block=block if blocked else None,
        block_name="replicate" if same else "block",
        run_ids=tuple(run.run_id for run in planned),
        run_order=tuple(run.run_order for run in planned),
        seeding=_seeding(study, planned),
        limits=study_limits(study),
        groups=_whole_plots(study, planned),
    )


def _whole_plots(study: Study, planned: Sequence[Run]) -> tuple[RandomGroup, ...]:
    """Runs that share a whole plot, and those that share the execution of a stage."""
    stages = [name for name, stage in study.stages.items() if stage.factors]
    groups = [
        RandomGroup(
            f"{name} execution", numbered(stage_execution(study, name, r).run_id for r in planned)
        )
        for name in stages
    ]
    hard = [factor.key for factor in study.factors if factor.hard]
    if hard and stages:
        plots = numbered((r.block, *(r.levels[key] for key in hard)) for r in planned)
        groups.append(RandomGroup("whole plot", plots))
    elif hard:
        groups.append(RandomGroup("whole plot", numbered(run.whole_plot for run in planned)))
    return tuple(groups)


def factor_columns(study: Study) -> tuple[FactorColumn, ...]:
    """Return the factors of a study as an analysis knows them."""
    return tuple(
        FactorColumn(
            f.key,
            f.name or f.key,
            f.levels,
            f.numeric,
            f.scale,
            f.role,
            random=f.random,
        )
        for f in study.factors
    )


def study_limits(study: Study) -> Limits:
    """Return where a study may run: what `exclude`, `when` and linear constraints leave."""
    nested = {i: (other, frozenset(off)) for i, (other, off) in conditions(study).items()}
    weights, bounds = constraints_of(study)
    return Limits(
        integer=tuple(factor.integer and factor.ranged for factor in study.factors),
        listed=tuple(factor.numeric and not factor.ranged for factor in study.factors),
        excluded=tuple(excluded_levels(study)),
        nested=nested,
        weights=weights if len(weights) else None,
        bounds=bounds if len(weights) else None,
    )


def study_runs(study: Study, statuses: Sequence[RunStatus]) -> Runs:
    """Read the runs of a study: levels, block, and what else is known of them."""
    planned = [status.run for status in statuses]
    slots, hosts = zip(*(slot_and_host(status) for status in statuses), strict=True)
    return replace(
        planned_runs(study, planned),
        slot=slots if any(slots) else None,
        host=hosts if any(hosts) else None,
        states=tuple(state_text(status.state, status.reason) for status in statuses),
        notes=look_notes(study, statuses),
        looked=_looked(study, planned),
        covariates=tuple(_covariate(study, statuses, n) for n in study.responses.covariates),
    )


def _covariate(study: Study, statuses: Sequence[RunStatus], text: str) -> Covariate:
    """Values of a covariate: a metric, or what was reported at a step; NaN where it is lacking."""
    name, step = covariate_step(text)
    if step is None:
        return Covariate(text, np.array([response_values(study, s)[name] for s in statuses]))
    reported = [reported_at(s.directory, name, step) if s.directory else np.nan for s in statuses]
    return Covariate(text, np.array(reported))


def _looked(study: Study, planned: Sequence[Run]) -> Looked | None:
    if study.stopping is None:
        return None
    rule = stopping_rule(study)
    numbers = np.array([portion(study, run) for run in planned], dtype=np.int64)
    return Looked(rule, numbers) if int(numbers.max()) >= rule.first else None


def _seeding(study: Study, planned: Sequence[Run]) -> Seeding | None:
    if not study.streams:
        return None
    seeds = [numbered(run.seeds[name] for run in planned) for name in study.streams]
    replicate = numbered(run.replicate for run in planned)
    return Seeding(tuple(study.streams), replicate, np.stack(seeds))


def datasets(
    study: Study,
    statuses: Sequence[RunStatus],
    runs: Runs,
    names: Iterable[str],
    fresh: Sequence[RunStatus] = (),
) -> list[Dataset]:
    """Read the responses that are named, with the study's units, goals and scales.

    `fresh` are runs that confirm a winner, as `confirming_runs` gives them.

    Raises
    ------
    DoeError
        If the study has no such response.
    """
    responses = study.responses
    values = [response_values(study, status) for status in statuses]
    cells = cells_of([status.run for status in statuses], {})
    sampled = any(factor.random for factor in study.factors)  # no part of a configuration
    read = []
    for name in dict.fromkeys(names):
        check_response(study, name)
        y = np.array([value[name] for value in values], dtype=np.float64)
        y[~np.isfinite(y)] = np.nan
        read.append(
            Dataset(
                runs,
                name,
                y,
                unit=responses.unit_of(name),
                goal=responses.goal_of(name),
                scale=responses.scale_of(name),
                items=responses.items_of(name),
                fresh=fresh_runs(study, fresh, name),
                baseline="" if sampled else baseline(study, cells, name),
                terms=usual_terms(study),
                matters=responses.matters_of(name),
            )
        )
    return read


def usual_terms(study: Study) -> tuple[int, ...] | None:
    """Return the usual model of the study's kind of design; None for what suits the runs."""
    terms = chosen_kind(study).terms()
    return None if terms is None else tuple(terms)


def confirming_runs(study: Study, statuses: Sequence[RunStatus]) -> list[RunStatus]:
    """Return the runs that confirm a winner with fresh seeds."""
    return [status for status in statuses if status.run.replicate in confirming(study)]


def fresh_runs(study: Study, fresh: Sequence[RunStatus], name: str) -> FreshRuns | None:
    """Values of fresh runs for the response whose best configuration they confirm."""
    step = next((step for step in study.augment if step.confirm), None)
    if step is None or step.response != name or not fresh:
        return None
    at = {(s.run.name, s.run.seed): i for i, s in enumerate(fresh)}
    table = np.array([[at.get((c, seed), -1) for seed in step.seeds] for c in step.confirm])
    values = np.array([*(response_values(study, s)[name] for s in fresh), np.nan], np.float64)
    values[~np.isfinite(values)] = np.nan
    plots = tuple(group.of[table] for group in _whole_plots(study, [s.run for s in fresh]))
    labels = {status.run.name: status.run.config for status in fresh}
    configs = tuple(labels[config] for config in step.confirm)
    return FreshRuns(configs, values[table], plots)
