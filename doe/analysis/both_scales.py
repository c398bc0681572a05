"""The terms of one response on two scales side by side: as it is, and as logarithms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from msgspec import Struct

from doe.analysis.contrasts import Floats
from doe.analysis.effects import Effect
from doe.analysis.fitted import Fitted
from doe.analysis.pvalues import significant
from doe.analysis.rescale import units
from doe.analysis.scales import scale_of
from doe.analysis.transform import ScaleEffect, Transformation, back
from doe.errors import listed

if TYPE_CHECKING:
    from doe.analysis.levels.anova import TermTest

NAMED = 8
"""Terms that a sentence names; of more the number is said."""


class TermOnScales(Struct, frozen=True, gc=False):
    """A term on the raw scale and on the log scale; a term of several degrees of freedom has no
    single effect.
    """

    UNITS: ClassVar = units(effect=1, ci_low=1, ci_high=1)
    term: str
    effect: float | None
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_holm: float | None
    percent: float  # of the total sum of squares
    ratio: float | None  # of the geometric means at high and at low
    ratio_low: float | None
    ratio_high: float | None
    log_p: float | None
    log_p_holm: float | None
    log_percent: float


class BothScales(Struct, frozen=True):
    """What a response says on the raw scale and on the log scale."""

    terms: tuple[TermOnScales, ...]
    r2: float | None
    log_r2: float | None
    sentence: str


class OnScale(NamedTuple):
    """A response on one scale: its fit, its terms, and the effects of those at two levels."""

    fit: Fitted
    terms: Sequence[Effect | TermTest]
    effects: Sequence[Effect]


def both_scales(raw: OnScale, log: OnScale, alpha: float) -> BothScales:
    """Put the raw scale and the log scale side by side, term by term."""
    effects = {e.term: e for e in raw.effects}
    logs = {test.term: test for test in log.terms}
    ratios = {e.term: e for e in back(log.effects, 0.0, Transformation("log", 0.0, "log"))}
    terms = tuple(
        _beside(test, logs[test.term], effects.get(test.term), ratios.get(test.term))
        for test in raw.terms
    )
    return BothScales(
        terms=terms,
        r2=raw.fit.r_squared()[0],
        log_r2=log.fit.r_squared()[0],
        sentence=_sentence(terms, alpha),
    )


Interval = tuple[float | None, float | None, float | None]
"""A value with the ends of its interval."""


def _beside(
    raw: Effect | TermTest, log: Effect | TermTest, effect: Effect | None, ratio: ScaleEffect | None
) -> TermOnScales:
    nothing: Interval = (None, None, None)
    size = nothing if effect is None else (effect.effect, effect.ci_low, effect.ci_high)
    times = nothing if ratio is None else (ratio.value, ratio.low, ratio.high)
    figures = (*size, raw.p, raw.p_holm, raw.percent, *times, log.p, log.p_holm, log.percent)
    return TermOnScales(raw.term, *figures)


def _sentence(terms: Iterable[TermOnScales], alpha: float) -> str:
    """Which terms are significant on both scales, and which on one alone."""
    sides: dict[tuple[bool, bool], list[str]] = {}
    for term in terms:
        called = (significant(term.p_holm, alpha), significant(term.log_p_holm, alpha))
        sides.setdefault(called, []).append(term.term)
    both, raw, log = (
        listed(sides.get(side, []), NAMED) or "none"
        for side in ((True, True), (True, False), (False, True))
    )
    return (
        f"Significant after Holm's adjustment: on both scales {both}; "
        f"on the raw scale alone {raw}; on the log scale alone {log}."
    )


def log_possible(y: Floats) -> bool:
    """Whether every value has a logarithm."""
    return bool((y > scale_of("log").low).all())
