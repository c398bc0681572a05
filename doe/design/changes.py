"""Studies derived from studies: other replicates, a fraction, runs added to a plan."""

from __future__ import annotations

import msgspec

from doe.design.fractions import best_foldover, fraction_of
from doe.errors import DoeError
from doe.study.checks import MOST_PLANNED_RUNS
from doe.study.values import Augment, Level, Study
from doe.terms import term_name

SCREENING = "screening"
"""The kind of design whose fold-over exchanges the levels of every factor."""


def augmented(study: Study, kind: str, runs: int = 0, model: str = "") -> Study:
    """Return the study with runs added as new blocks.

    `kind` is a number of replicates, "foldover" of a two-level fraction, "part": the next one of a
    design that was planned as 1/N, "axial": what a response surface needs beside a factorial, or
    "optimal": so many `runs` for a larger `model`, given what is planned.
    """
    if confirming(study):
        raise DoeError("this study has been confirmed, so no runs can be added; plan a new study")
    if (runs or model) and kind != "optimal":
        raise DoeError("runs and model apply to an optimal augmentation only")
    if kind == "axial":
        step = Augment(axial=1.0)
    elif kind == "optimal":
        if runs < 1:
            raise DoeError("an optimal augmentation needs the number of runs to add")
        step = Augment(runs=runs, model=model)
    elif kind == "part":
        step = Augment(part=_next_part(study))
    elif kind == "foldover" and study.kind == SCREENING:
        step = Augment(flip=study.keys)
    elif kind == "foldover":
        flip = best_foldover(study.generators, len(study.factors))
        step = Augment(flip=tuple(term_name(mask, study.keys) for mask in flip))
    elif kind.isdecimal() and int(kind) > 0:
        step = Augment(seeds=fresh_seeds(study, int(kind)))
    else:
        raise DoeError(
            f"augment {kind!r}: expected a number of replicates to add, foldover, part, axial, "
            "optimal or ascent"
        )
    return msgspec.structs.replace(study, augment=(*study.augment, step))


def with_path(study: Study, points: tuple[tuple[Level, ...], ...]) -> Study:
    """Return the study with the points of a path of steepest ascent as a new block."""
    if confirming(study):
        raise DoeError("this study has been confirmed, so no runs can be added; plan a new study")
    step = Augment(points=points)
    return msgspec.structs.replace(study, augment=(*study.augment, step))


def on_path(study: Study) -> frozenset[tuple[Level, ...]]:
    """Return levels of the points of paths of steepest ascent."""
    return frozenset(p for step in study.augment if not step.confirm for p in step.points)


def fresh_seeds(study: Study, number: int) -> tuple[int, ...]:
    """Return unused seeds."""
    _check_number(number)
    streams = (seed for seeds in study.streams.values() for seed in seeds)
    used = [*study.seeds, *streams, *(seed for step in study.augment for seed in step.seeds)]
    return tuple(max(used) + i for i in range(1, number + 1))


def _check_number(replicates: int) -> None:
    """Refuse too many replicates before seeds are made for them."""
    if replicates > MOST_PLANNED_RUNS:
        raise DoeError(f"got {replicates} replicates; expected at most {MOST_PLANNED_RUNS} runs")


def planned_replicates(study: Study) -> int:
    """Return the replicates of the plan with all additions, except those that confirm."""
    return study.replicates + sum(len(s.seeds) for s in study.augment if not s.confirm)


def confirming(study: Study) -> range:
    """Return the numbers of the replicates that confirm a winner and contain a few configurations
    only."""
    first = planned_replicates(study) + 1
    return range(first, first + sum(len(s.seeds) for s in study.augment if s.confirm))


def with_confirmation(
    study: Study,
    configs: tuple[str, ...],
    response: str,
    number: int,
    points: tuple[tuple[Level, ...], ...] = (),
) -> Study:
    """Return the study with fresh runs of some configurations, a block per seed.

    `points` are the levels of those that were never run.
    """
    if confirming(study):
        raise DoeError("this study has already been confirmed; plan a new study")
    seeds = fresh_seeds(study, number)
    step = Augment(seeds=seeds, confirm=configs, response=response, points=points)
    return msgspec.structs.replace(study, augment=(*study.augment, step))


def _next_part(study: Study) -> int:
    number = max((1, *(step.part for step in study.augment))) + 1
    if not study.parts:
        raise DoeError(
            "a further part requires a design that was planned as 1/N; add replicates, or the "
            "foldover of a two-level fraction"
        )
    if number > study.parts:
        raise DoeError(
            f"all {study.parts} parts of the design are already planned; add replicates instead"
        )
    return number


def with_overrides(study: Study, replicates: int | None, fraction: str | None) -> Study:
    """Return the study with other replicates and another fraction, None for its own.

    Seeds are continued as needed.
    """
    if study.streams and replicates not in (None, study.replicates):
        raise DoeError(
            f"the {study.replicates} replicates are determined by the streams of [seeds] in the "
            "study file; change the streams instead"
        )
    if replicates is not None and not study.streams:
        _check_number(replicates)
        seeds = study.seeds[: max(replicates, 0)]
        after = max(study.seeds, default=0)
        more = tuple(after + i for i in range(1, replicates - len(seeds) + 1))
        study = msgspec.structs.replace(study, replicates=replicates, seeds=seeds + more)
    if fraction is not None or study.parts:
        text = study.fraction if fraction is None else fraction
        study = msgspec.structs.replace(study, fraction=fraction_of(study, text))
    return study
