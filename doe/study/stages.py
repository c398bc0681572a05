"""Stages: which factors they depend on, what they are done once for, what is wrong with them."""

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
"""As a placeholder: where the command of a stage leaves what it makes."""


def stage_factors(study: Study, name: str) -> tuple[str, ...]:
    """Factors on which a stage depends: its own, and those of the stages that it needs."""
    own = {key for before in _with_needs(study, name) for key in study.stages[before].factors}
    return tuple(key for key in study.keys if key in own)


def _with_needs(study: Study, name: str) -> list[str]:
    """A stage and all that come before it."""
    names = [name]
    for before in names:
        needs = study.stages[before].needs
        names += [other for other in needs if other not in names and other in study.stages]
    return names


def stages_in_order(study: Study) -> list[str]:
    """Stages with those that they need before them."""
    return sorted(study.stages, key=lambda name: len(_with_needs(study, name)))


def read_by_runs(study: Study) -> list[str]:
    """What a function that executes runs is expected to look at: factors, and stages."""
    keys = [f.key for f in study.factors if not f.sets and f.key not in study.staged_factors]
    needed = {other for stage in study.stages.values() for other in stage.needs}
    return [*keys, *stage_placeholders(name for name in study.stages if name not in needed)]


def stage_doubts(study: Study) -> list[str]:
    """What is not wrong with stages and yet may be a mistake, a sentence each."""
    doubts = []
    for name, stage in study.stages.items():
        inherited = any(study.stages[other].seed != NO_SEED for other in stage.needs)
        if stage.command and stage.seed != NO_SEED and not inherited and not _told_seed(stage):
            doubts.append(
                f"the command of stage {name} does not use {{seed}}, and yet it is done again for "
                f'each {stage.seed}; put {{seed}} in, or say seed = "{NO_SEED}" to do it once'
            )
    own = {stage_factors(study, name) for name in study.stages} - {()}
    if len(own) > 1:
        doubts.append(
            "stages depend on different factors, and the analysis has one error for all of them, "
            f"that of whole plots of {', '.join(study.whole_plot_factors)}: it takes a level of a "
            "stage with fewer factors as drawn anew in each of these"
        )
    return doubts


def _told_seed(stage: Stage) -> bool:
    used = used_pieces(stage.command, stage.env, lambda _: None)
    return any(str(piece.name).partition(".")[0] == "seed" for piece in used)


# Checks -----------------------------------------------------------------------------------------


def check_stages(study: Study, add: AddProblem) -> None:
    """Everything that is wrong with the stages of a study."""
    for name, stage in study.stages.items():
        path = f"stages.{name}"
        if not is_name(name):
            add(f"{path}: expected a name of letters, digits and underscores")
        for key in stage.factors:
            if key not in study.keys:
                add(
                    f"{path}.factors: no factor {key!r} in this study{nearest(key, study.keys)}; "
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
        add(f"stages: {', '.join(cycle)} need each other in a circle; remove one of their needs")
    if study.backend == "command":
        _check_used(study, add)


def _check_work(study: Study, name: str, add: AddProblem) -> None:
    """A command that uses what it depends on, or a function."""
    stage, path = study.stages[name], f"stages.{name}"
    if bool(stage.command) == bool(stage.function):
        got = "both" if stage.command else "neither"
        add(f"{path}: got {got} of command and function; expected one of them")
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
        why = "it is another's factor" if other in study.keys else "unknown"
        add(
            f"{path}.command: placeholder {{{other}}}: {why}{nearest(other, known)}; known are "
            f"{', '.join(known)}"
        )
    names |= {key for setting, key in made.items() if setting in names}
    wanted = (*stage.factors, *stage_placeholders(stage.needs))
    if not unreadable and (idle := [key for key in wanted if key not in names]):
        add(
            f"{path}.command: it does not use {{{idle[0]}}}; put it in, or remove it from the stage"
        )
    check_progress(stage.progress, [*levels, *settings], add, f"{path}.progress")


def _check_seed(study: Study, name: str, add: AddProblem) -> None:
    stage, path = study.stages[name], f"stages.{name}.seed = {short(study.stages[name].seed)}"
    known = (REPLICATE, NO_SEED, *study.streams)
    if stage.seed not in known:
        near = nearest(stage.seed, known)
        add(f"{path}: neither of these nor a stream of seeds{near}; expected {' or '.join(known)}")
    for other in stage.needs:
        before = study.stages[other].seed if other in study.stages else NO_SEED
        if before not in (NO_SEED, stage.seed) and stage.seed != REPLICATE:
            add(f"{path}: it needs {other}, which is done for each {before}; say the same here")


def _check_used(study: Study, add: AddProblem) -> None:
    """Every stage is used by the command of the runs, or by another stage."""
    names = {piece.name for piece in used_pieces(study.command, study.env, lambda _: None)}
    needed = {other for stage in study.stages.values() for other in stage.needs}
    for name, placeholder in zip(study.stages, stage_placeholders(study.stages), strict=True):
        if placeholder not in names and name not in needed:
            add(
                f"command: it does not use {{{placeholder}}}, so this stage would be done for "
                f"nothing; put it in, or remove stages.{name}"
            )
