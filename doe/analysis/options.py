"""Options of an analysis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec import Struct

from doe.analysis.scales import choices
from doe.errors import DoeError, nearest
from doe.goals import parse_constraint, parse_desire

ERRORS = ("pure", "residual")
CODINGS = ("factorial", "range")


class AnalysisOptions(Struct, frozen=True):
    """Options of an analysis; raises DoeError if they could fit no study."""

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
    optimize: bool = False  # where to go next, also where the model has no squares
    coding: str = "factorial"  # what lies one coded unit from the centre: factorial points, or ends
    constraints: tuple[str, ...] = ()  # what a configuration has to keep: "seconds <= 60"
    contour: tuple[str, ...] = ()  # two factors whose contour map is drawn before all others
    desires: tuple[str, ...] = ()  # what is worth nothing, target, weight: "seconds=60..10:2"

    equivalence: bool = False  # test which effects are negligible
    matters: float | None = None  # the smallest effect worth knowing; None for the study's

    def __post_init__(self) -> None:
        if not 0.0 < self.alpha < 1.0:
            raise DoeError(
                f"alpha {self.alpha} is not a confidence level; expected a number between 0 and 1"
            )
        for name, value, known in (
            ("transform", self.transform, choices()),
            ("error", self.error, ERRORS),
            ("coding", self.coding, CODINGS),
        ):
            if value is not None and value not in known:
                raise DoeError(
                    f"{name} {value!r} is not one of {', '.join(known)}{nearest(str(value), known)}"
                )
        for text in self.constraints:
            parse_constraint(text)
        for text in self.desires:
            parse_desire(text)

    @property
    def pooled(self) -> bool:
        """Whether tests are against the residual even where runs are repeated."""
        return self.error == "residual"

    def hidden(self, keys: Sequence[str]) -> int:
        """Factors of `drop` as the bits of a term; DoeError if one is not a factor."""
        bits = 0
        for key in self.drop:
            if key not in keys:
                raise DoeError(
                    f"terms of {key!r} cannot be left out: no factor has that name"
                    f"{nearest(key, keys)}; the factors are {', '.join(keys)}"
                )
            bits |= 1 << list(keys).index(key)
        return bits

    def transform_of(self, scale: str) -> str:
        """Return the transformation that was asked for, else the scale of the response."""
        return self.transform or ("none" if scale == "raw" else scale)


DEFAULTS = AnalysisOptions()


def requested(**given: Any) -> AnalysisOptions:
    """Return the options with what is given; None is a default.

    A number of permutations implies the robust methods, what matters the tests of equivalence.
    """
    known = {name: value for name, value in given.items() if value is not None}
    for name, implied in (("permutations", "robust"), ("matters", "equivalence")):
        known |= {implied: True} if name in known else {}
    return AnalysisOptions(**known)
