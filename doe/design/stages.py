"""The executions of stages that the runs of a design need."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

from doe.design.runs import Run
from doe.study.stages import stage_factors, stages_in_order
from doe.study.values import NO_SEED, REPLICATE, Study
from doe.terms import level_text


def stage_needs(study: Study, run: Run) -> dict[str, str]:
    """Stage -> id of its execution that a run, or the execution of another stage, waits for."""
    names: Iterable[str] = study.stages
    if run.stage:
        names = study.stages[run.stage].needs
    return {name: stage_execution(study, name, run).run_id for name in names}


def stage_execution(study: Study, name: str, run: Run) -> Run:
    """The execution of a stage for the levels and the seed of a run.

    Its id holds a digest of its levels, so that it stays the same in a design that grows.
    """
    seed = study.stages[name].seed
    levels = {key: run.levels[key] for key in stage_factors(study, name)}
    label = ", ".join(f"{key}={level_text(level)}" for key, level in levels.items())
    digest = hashlib.sha256(label.encode()).hexdigest()[:8]
    scope = {REPLICATE: f"-r{run.replicate}", NO_SEED: ""}.get(seed)
    seeds = run.seeds if seed == REPLICATE else {}
    number = run.seed if seed == REPLICATE else 0
    if scope is None:
        number = run.seeds[seed]
        seeds, scope = {seed: number}, f"-{seed}{number}"
    return Run(
        run_id=f"stage-{name}-{digest}{scope}",
        run_order=run.run_order,
        row=0,
        replicate=run.replicate if seed == REPLICATE else 1,
        block=run.block,
        seed=number,
        config=label or "all levels",
        name=label,
        levels=levels,
        coded=(),
        seeds=seeds,
        stage=name,
    )


def stage_executions(study: Study, runs: Iterable[Run]) -> tuple[Run, ...]:
    """All executions of stages that some runs need, once each, in the order of these runs."""
    names = stages_in_order(study)
    executions: dict[str, Run] = {}
    for run in runs if names else ():
        for name in names:
            execution = stage_execution(study, name, run)
            executions.setdefault(execution.run_id, execution)
    return tuple(executions.values())
