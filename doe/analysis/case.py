"""One response with its fitted model: what every further analysis starts from."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from msgspec import Struct

from doe.analysis.contrasts import Floats
from doe.analysis.data import Runs
from doe.analysis.effects import Effect
from doe.analysis.fit import Fit
from doe.analysis.pvalues import significant
from doe.analysis.scales import choices
from doe.analysis.transform import Transformation
from doe.errors import DoeError, nearest
from doe.terms import parse_term

ERRORS = ("pure", "residual")


class AnalysisOptions(Struct, frozen=True):
    """What may be chosen; raises DoeError where it could fit no study at all."""

    transform: str | None = None  # one of `choices`; None for the response's own scale
    order: int | None = None  # highest interaction; None for all
    drop: tuple[str, ...] = ()  # factors whose terms are not shown
    terms: tuple[str, ...] | None = None  # the model; None for all terms up to `order`
    random_blocks: bool = False  # blocks as drawn from many
    robust: bool = False
    permutations: int = 10_000
    error: str = "pure"  # what tests are against where runs are repeated: pure or residual
    alpha: float = 0.05
    seed: int = 42
    beats: tuple[tuple[str, str], ...] = ()  # pairs of configurations, or best, runner-up, baseline

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise DoeError(f"alpha {self.alpha} is no level; expected a number between 0 and 1")
        for name, value, known in (
            ("transform", self.transform, choices()),
            ("error", self.error, ERRORS),
        ):
            if value is not None and value not in known:
                raise DoeError(
                    f"{name} {value!r} is not one of {', '.join(known)}{nearest(str(value), known)}"
                )

    @property
    def pooled(self) -> bool:
        """Whether tests are against the residual even where runs are repeated."""
        return self.error == "residual"

    def shown(self, masks: Sequence[int], keys: Sequence[str]) -> list[bool]:
        """Which terms are shown: those without a factor of `drop`, which must be factors."""
        hidden = 0
        for key in self.drop:
            if key not in keys:
                raise DoeError(
                    f"terms of {key!r} cannot be left out: no factor has that name"
                    f"{nearest(key, keys)}; the factors are {', '.join(keys)}"
                )
            hidden |= 1 << list(keys).index(key)
        return [not mask & hidden for mask in masks]

    def transform_of(self, scale: str) -> str:
        """The transformation that was asked for, else the scale of the response."""
        return self.transform or ("none" if scale == "raw" else scale)


DEFAULTS = AnalysisOptions()


@dataclass(frozen=True)
class Case:
    """One response, its model and its effects."""

    runs: Runs  # all that were planned
    kept: Sequence[int]  # those with a value, in the order of `fit`
    fit: Fit
    names: Sequence[str]  # of the model's terms
    effects: tuple[Effect, ...]  # of the terms that are shown
    goal: str | None  # min, max, or None where nobody said
    transform: Transformation
    order: int  # highest interaction asked for
    options: AnalysisOptions

    @property
    def keys(self) -> tuple[str, ...]:
        """Factor keys."""
        return self.runs.keys

    @property
    def alpha(self) -> float:
        """Level of tests and intervals."""
        return self.options.alpha

    @property
    def active(self) -> frozenset[int]:
        """Terms that are significant at false discovery rate α."""
        called = (e.term for e in self.effects if significant(e.p_bh, self.alpha))
        return frozenset(parse_term(term, self.keys) for term in called)

    @property
    def y(self) -> Floats:
        """The response of all planned runs on the analysed scale; NaN where there is none."""
        y = np.full(len(self.runs.run_ids), np.nan)
        y[list(self.kept)] = self.fit.y
        return y
