"""Studies made of studies: other replicates, a fraction, runs added to what is planned."""

from __future__ import annotations

import msgspec

from doe.design.fractions import (
    best_foldover,
    fraction_generators,
)
from doe.errors import DoeError
from doe.study.values import Augment, Study
from doe.terms import (
    term_name,
)


def augmented(study: Study, kind: str) -> Study:
    """The study with runs added as new blocks: `kind` is a number of replicates or "foldover"."""
    if kind == "foldover":
        flip = best_foldover(study.generators, len(study.factors))
        step = Augment(flip=tuple(term_name(mask, study.keys) for mask in flip))
    elif kind.isdecimal() and int(kind) > 0:
        used = [*study.seeds, *(seed for step in study.augment for seed in step.seeds)]
        step = Augment(seeds=tuple(max(used) + i for i in range(1, int(kind) + 1)))
    else:
        raise DoeError(f"augment {kind!r}: expected a number of replicates to add, or foldover")
    return msgspec.structs.replace(study, augment=(*study.augment, step))


def planned_replicates(study: Study) -> int:
    """Replicates of the plan with all that was added to it."""
    return study.replicates + sum(len(step.seeds) for step in study.augment)


def with_overrides(study: Study, replicates: int | None, fraction: str | None) -> Study:
    """The study with the command line's replicates and fraction; seeds are continued as needed."""
    if replicates is not None:
        seeds = study.seeds[: max(replicates, 0)]
        after = max(study.seeds, default=0)
        more = tuple(after + i for i in range(1, replicates - len(seeds) + 1))
        study = msgspec.structs.replace(study, replicates=replicates, seeds=seeds + more)
    if fraction is not None:
        generators = fraction_generators(fraction, study.keys)
        study = msgspec.structs.replace(study, fraction=generators)
    return study
