"""Stages as `doe plan` and `doe status` tell of them: what sharing saves, what is left."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from doe.errors import counted
from doe.numbers import duration_text
from doe.store.files import StudyDir
from doe.store.plan import Plan
from doe.store.scan import RunState, RunStatus, counts, scan
from doe.store.stages import REUSED, is_present
from doe.study.stages import stage_factors
from doe.study.values import Study


class StageState(NamedTuple):
    """One stage and its executions."""

    name: str
    factors: tuple[str, ...]
    runs: int
    """Runs that it serves: so often it would be executed without sharing."""
    counts: dict[RunState, int]
    seconds: float | None
    """How long an execution takes, by those that are done; None before one is."""
    removed: int
    """Executions of which nothing is left, as no run needs it."""
    reused: tuple[str, ...]
    """Executions of other studies that were taken over."""
    failures: dict[str, str]
    """Execution -> why it failed."""

    @property
    def executions(self) -> int:
        """How often it is executed."""
        return sum(self.counts.values())


def stage_states(plan: Plan) -> list[StageState]:
    """Look at the stages of a planned study."""
    if not plan.study.stages:
        return []
    statuses = scan(plan.files, plan.stages)
    return [
        _state(plan.study, plan.files, name, len(plan.design.runs), own)
        for name in plan.study.stages
        if (own := [status for status in statuses if status.run.stage == name])
    ]


def _state(
    study: Study, files: StudyDir, name: str, runs: int, statuses: Sequence[RunStatus]
) -> StageState:
    done = [status for status in statuses if status.state == "done"]
    made = [s.seconds for s in done if s.seconds is not None and REUSED not in s.provenance]
    return StageState(
        name=name,
        factors=stage_factors(study, name),
        runs=runs,
        counts=counts(statuses),
        seconds=sum(made) / len(made) if made else None,
        removed=sum(not is_present(files.run(status.run.run_id)) for status in done),
        reused=tuple(s.provenance[REUSED] for s in done if REUSED in s.provenance),
        failures={s.run.run_id: s.reason for s in statuses if s.state == "failed"},
    )


def plan_line(stage: StageState) -> str:
    """What sharing a stage saves: in executions, and in time once that is known."""
    of = f"for each level of {', '.join(stage.factors)}" if stage.factors else "for all levels"
    line = (
        f"Stage {stage.name}, {of}: {counted(stage.executions, 'execution')} for "
        f"{counted(stage.runs, 'run')}; without sharing {stage.runs}"
    )
    if stage.seconds is None:
        return f"{line}."
    shared, alone = (duration_text(n * stage.seconds) for n in (stage.executions, stage.runs))
    return f"{line}. At {duration_text(stage.seconds)} each: {shared} instead of {alone}."


def status_line(stage: StageState) -> str:
    """How a stage stands."""
    number = ", ".join(f"{count} {name}" for name, count in stage.counts.items() if count)
    line = f"stage {stage.name}: {counted(stage.executions, 'execution')}: {number}"
    if stage.removed:
        line += f"; {stage.removed} removed, for no run needs what they left"
    if stage.reused:
        line += f"; {len(stage.reused)} taken over, as from {stage.reused[0]}"
    return line


def stage_json(stage: StageState) -> dict[str, object]:
    """The same for machines."""
    return {**stage._asdict(), "executions": stage.executions}
