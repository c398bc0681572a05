"""The terms of one response on two scales side by side: as it is, and as logarithms."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from msgspec import Struct

from doe.analysis.anova import sums_of_squares
from doe.analysis.contrasts import Floats
from doe.analysis.effects import (
    Effect,
    ScaleEffect,
    TermTest,
    back,
    half_normal_plot,
    term_tests,
    two_level_effects,
)
from doe.analysis.fit import Fit, refitted
from doe.analysis.fitted import FittedResponse
from doe.analysis.pvalues import significant
from doe.analysis.scales import scale_of
from doe.analysis.transform import Transformation
from doe.errors import listed

NAMED = 8
"""Terms that a sentence names; of more the number is said."""


class TermOnScales(Struct, frozen=True, gc=False):
    """A term on the raw scale and on the log scale; a term of several degrees of freedom has no
    single effect.
    """

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
    """Terms of a response on the raw scale and on the log scale."""

    terms: tuple[TermOnScales, ...]
    r2: float | None
    log_r2: float | None
    sentence: str


class OnScale(NamedTuple):
    """A response on one scale: its fit, its terms, and the effects of those at two levels."""

    fit: Fit
    tests: Sequence[TermTest]
    effects: Sequence[Effect]


def both_scales(response: FittedResponse) -> BothScales:
    """Put the raw scale and the log scale side by side, term by term, from the same model."""
    alpha = response.alpha
    raw, log = on_scale(response, "none"), on_scale(response, "log")
    effects = {e.mask: e for e in raw.effects}
    logs = {test.mask: test for test in log.tests}
    identity = Transformation("log", 0.0, "log")
    ratios = dict(zip((e.mask for e in log.effects), back(log.effects, 0.0, identity), strict=True))
    terms = tuple(
        _beside(test, logs[test.mask], effects.get(test.mask), ratios.get(test.mask))
        for test in raw.tests
    )
    return BothScales(
        terms=terms,
        r2=raw.fit.r_squared()[0],
        log_r2=log.fit.r_squared()[0],
        sentence=_sentence(terms, alpha),
    )


def on_scale(response: FittedResponse, scale: str) -> OnScale:
    """Return the fit of the model with the response on a scale."""
    if scale == response.transform.name:
        return OnScale(response.fit, response.tests, response.effects)
    fit = refitted(response.fit, scale_of(scale).forward(response.observed))
    plot = half_normal_plot(fit, response.alpha)
    hidden = response.options.hidden(response.keys)
    tests = term_tests(fit, sums_of_squares(fit, fit.kind), plot, hidden)
    return OnScale(fit, tests, two_level_effects(fit, tests, plot, response.alpha))


Interval = tuple[float | None, float | None, float | None]
"""A value with the ends of its interval."""


def _beside(
    raw: TermTest, log: TermTest, effect: Effect | None, ratio: ScaleEffect | None
) -> TermOnScales:
    nothing: Interval = (None, None, None)
    size = nothing if effect is None else (effect.effect, effect.ci_low, effect.ci_high)
    times = nothing if ratio is None else (ratio.value, ratio.low, ratio.high)
    figures = (*size, raw.p, raw.p_holm, raw.percent, *times, log.p, log.p_holm, log.percent)
    return TermOnScales(raw.term, *figures)


def _sentence(terms: Iterable[TermOnScales], alpha: float) -> str:
    """Return which terms are significant on both scales, and which on one alone."""
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
    """Return whether every value has a logarithm."""
    return bool((y > scale_of("log").low).all())
