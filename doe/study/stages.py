"""Stages: the factors they depend on, how often each is executed, and the checks of their
tables."""

from __future__ import annotations

import math
import re

from doe.errors import AddProblem, nearest, short
from doe.study.command import (
    FUNCTION,
    check_progress,
    flat_settings,
    stage_placeholders,
    used_pieces,
)
from doe.study.values import NO_SEED, REPLICATE, Stage, Study, is_name

STAGE_DIR = "stage_dir"
"""Placeholder: the directory for the output of a stage's command."""


def stage_factors(study: Study, name: str) -> tuple[str, ...]:
    """Return the factors on which a stage depends: its own, and those of the stages that it
    needs."""
    own = {key for before in _with_needs(study, name) for key in study.stages[before].factors}
    return tuple(key for key in study.keys if key in own)


def _with_needs(study: Study, name: str) -> list[str]:
    """Return a stage and all that precede it."""
    names = [name]
    for before in names:
        needs = study.stages[before].needs
        names += [other for other in needs if other not in names and other in study.stages]
    return names


def stages_in_order(study: Study) -> list[str]:
    """Return stages in order, each after those that it needs."""
    return sorted(study.stages, key=lambda name: len(_with_needs(study, name)))


def read_by_runs(study: Study) -> list[str]:
    """Return what a function that executes runs is expected to read: factors and stages."""
    keys = [f.key for f in study.factors if not f.sets and f.key not in study.staged_factors]
    needed = {other for stage in study.stages.values() for other in stage.needs}
    return [*keys, *stage_placeholders(name for name in study.stages if name not in needed)]


def stage_doubts(study: Study) -> list[str]:
    """List possible mistakes in stages that are otherwise valid, one sentence each."""
    doubts = []
    for name, stage in study.stages.items():
        inherited = any(study.stages[other].seed != NO_SEED for other in stage.needs)
        if stage.command and stage.seed != NO_SEED and not inherited and not _uses_seed(stage):
            doubts.append(
                f"the command of stage {name} does not use {{seed}}, but it is executed again "
                f'for each {stage.seed}; add {{seed}}, or set seed = "{NO_SEED}" to execute it once'
            )
    return doubts


def _uses_seed(stage: Stage) -> bool:
    used = used_pieces(stage.command, stage.env, lambda _: None)
    return any(str(piece.name).partition(".")[0] == "seed" for piece in used)


# Checks -----------------------------------------------------------------------------------------


def check_stages(study: Study, add: AddProblem) -> None:
    """List everything that is wrong with the stages of a study."""
    for name, stage in study.stages.items():
        path = f"stages.{name}"
        if not is_name(name):
            add(f"{path}: expected a name of letters, digits and underscores")
        for key in stage.factors:
            if key not in study.keys:
                add(
                    f"{path}.factors: {key!r} is not a factor of this "
                    f"study{nearest(key, study.keys)}; "
                    "expected keys of [factors]"
                )
        for other in stage.needs:
            if other not in study.stages:
                add(f"{path}.needs: no stage {other!r}{nearest(other, study.stages)}")
        if not 0 <= stage.timeout < math.inf:
            add(f"{path}.timeout = {stage.timeout:g}: expected seconds, or 0 for no limit")
        _check_work(study, name, add)
        _check_seed(study, name, add)
    cycle = [
        name
        for name, stage in study.stages.items()
        if any(name in _with_needs(study, o) for o in stage.needs if o in study.stages)
    ]
    if cycle:
        circle = f"{', '.join(cycle)} need each other in a circle"
        circle = f"{cycle[0]} needs itself" if len(cycle) == 1 else circle
        add(f"stages: {circle}; remove {'it' if len(cycle) == 1 else 'one of them'} from needs")
    if study.backend == "command":
        _check_used(study, add)


def _check_work(study: Study, name: str, add: AddProblem) -> None:
    """Check that a stage is a function, or a command that uses what it depends on."""
    stage, path = study.stages[name], f"stages.{name}"
    if bool(stage.command) == bool(stage.function):
        got = "both" if stage.command else "neither"
        add(f"{path}: got {got} of command and function; expected exactly one of them")
    elif stage.function and not re.fullmatch(FUNCTION, stage.function):
        add(f"{path}.function = {short(stage.function)}: expected package.module:function")
    if not stage.command:
        return
    settings, levels = flat_settings(stage.settings), stage_factors(study, name)
    made = {n: f.key for f in study.factors for values in f.sets.values() for n in values}
    known = [
        *levels,
        *(setting for setting, key in made.items() if key in levels),
        *settings,
        *([] if stage.seed == NO_SEED else ["seed"]),
        *([f"seed.{stream}" for stream in study.streams] if stage.seed == REPLICATE else []),
        *(STAGE_DIR, "device", "threads"),
        *stage_placeholders(stage.needs),
    ]
    unreadable: list[str] = []
    used = list(used_pieces(stage.command, stage.env, unreadable.append, f"{path}.command"))
    for problem in unreadable:
        add(problem)
    names = {str(piece.name) for piece in used}
    for other in sorted(names - {*known}):
        why = "no factor of this stage" if other in study.keys else "unknown"
        add(
            f"{path}.command: placeholder {{{other}}}: {why}{nearest(other, known)}; known are "
            f"{', '.join(known)}"
        )
    names |= {key for setting, key in made.items() if setting in names}
    wanted = (*stage.factors, *stage_placeholders(stage.needs))
    if not unreadable and (idle := [key for key in wanted if key not in names]):
        add(f"{path}.command: it does not use {{{idle[0]}}}; add it, or remove it from the stage")
    check_progress(stage.progress, [*levels, *settings], add, f"{path}.progress")


def _check_seed(study: Study, name: str, add: AddProblem) -> None:
    stage, path = study.stages[name], f"stages.{name}.seed = {short(study.stages[name].seed)}"
    known = (REPLICATE, NO_SEED, *study.streams)
    if stage.seed not in known:
        near = nearest(stage.seed, known)
        add(
            f"{path}: neither of these words nor a stream of seeds{near}; expected "
            f"{' or '.join(known)}"
        )
    for other in stage.needs:
        before = study.stages[other].seed if other in study.stages else NO_SEED
        if before not in (NO_SEED, stage.seed) and stage.seed != REPLICATE:
            add(
                f"{path}: it needs {other}, which is executed for each {before}; set the same "
                "seed here"
            )


def _check_used(study: Study, add: AddProblem) -> None:
    """Check that every stage is used by the command of the runs or by another stage."""
    names = {piece.name for piece in used_pieces(study.command, study.env, lambda _: None)}
    needed = {other for stage in study.stages.values() for other in stage.needs}
    for name, placeholder in zip(study.stages, stage_placeholders(study.stages), strict=True):
        if placeholder not in names and name not in needed:
            add(
                f"command: it does not use {{{placeholder}}}, so this stage would be executed for "
                f"nothing; add it, or remove stages.{name}"
            )
