"""The effect table: effects with standard errors, tests and shares of the variation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from msgspec import Struct

from doe.analysis.contrasts import Floats
from doe.analysis.fit import Fit
from doe.analysis.lenth import Lenth
from doe.analysis.pvalues import adjusted, t_critical, t_two_sided
from doe.analysis.rescale import units


class Effect(Struct, frozen=True, gc=False):
    """One term of the model on the analysed scale."""

    UNITS: ClassVar = units(effect=1, coef=1, se=1, ci_low=1, ci_high=1, ss=2)
    term: str
    effect: float  # mean at high minus mean at low, twice the coefficient
    coef: float
    se: float | None  # standard error of the effect; None in a saturated design
    ci_low: float | None
    ci_high: float | None
    t: float | None  # effect / se; in a saturated design effect / PSE
    p: float | None  # two-sided t; in a saturated design Lenth's, simulated
    p_holm: float | None
    p_bh: float | None
    ss: float  # type III sum of squares (all types agree in a balanced design)
    percent: float  # of the total sum of squares


def t_tests(fit: Fit) -> tuple[Floats, Floats, Floats]:
    """Standard error of each effect, t and two-sided p on the error's degrees of freedom.

    ``se = 2 sigma sqrt(Var(coef) / sigma²)``, which is ``2 sigma / sqrt(n)`` when balanced.
    """
    se = fit.effect_se
    with np.errstate(divide="ignore", invalid="ignore"):
        t = fit.effect / se
    return se, t, t_two_sided(t, fit.df_error)


def effect_table(
    fit: Fit, names: Sequence[str], shown: Sequence[bool], lenth: Lenth | None, alpha: float
) -> tuple[Effect, ...]:
    """Effects of the terms that are `shown`; adjusted p values are over these.

    With degrees of freedom for error the test is t; a saturated design is tested by Lenth's
    ratio against its simulated distribution, and has neither standard errors nor intervals.
    """
    index = np.flatnonzero(np.asarray(shown, dtype=bool))
    effect = fit.effect
    se = low = high = t = p = np.full(len(effect), np.nan)
    if fit.df_error > 0:
        se, t, p = t_tests(fit)
        reach = t_critical(alpha, fit.df_error) * se
        low, high = effect - reach, effect + reach
    elif lenth is not None:
        t, p = effect / lenth.pse, np.asarray(lenth.p)
    share = 100.0 / fit.ss_total if fit.ss_total > 0 else 0.0
    tests = [column[index] for column in (effect, fit.coef, se, low, high, t, p)]
    columns = (*tests, *adjusted(tests[-1]), fit.ss[index], share * fit.ss[index])
    chosen = [names[i] for i in index.tolist()]
    return tuple(Effect(*line) for line in zip(chosen, *map(plain, columns), strict=True))


def plain(values: Floats) -> list[float | None]:
    """Floats of Python, with None for what does not exist."""
    if np.isfinite(values).all():
        return list(values.tolist())
    return [None if value != value else value for value in values.tolist()]
