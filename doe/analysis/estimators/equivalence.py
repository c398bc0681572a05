"""Two one-sided tests of whether effects are negligible (Schuirmann, 1987)."""

from __future__ import annotations

import math

import numpy as np
from msgspec import Struct

from doe.analysis import distributions as stats
from doe.analysis.fitted import FittedResponse
from doe.analysis.pvalues import none_for_nan
from doe.analysis.transform import FIXED_SCALES
from doe.errors import DoeError


class EquivalenceRow(Struct, frozen=True):
    """One effect beside what matters."""

    term: str
    effect: float
    low: float | None  # interval of the two tests with zero in it (Hsu et al., 1994), of all terms
    high: float | None
    p: float | None  # the larger one of the two tests
    p_all: float | None  # over all terms (Bonferroni)
    within: bool  # whether it is negligible, all such statements together at α


class Equivalence(Struct, frozen=True):
    """Which effects lie within ± `matters`, in the unit of the response."""

    matters: float
    rows: tuple[EquivalenceRow, ...]
    scale: str = "none"  # where effects are tested, around the mean of the runs


def estimate(response: FittedResponse) -> Equivalence | None:
    """Test each effect, ``p = P(T > (matters - |effect|) / se)``; None unless it is asked for.

    A term has at most one true null, so each of both tests has the level α / terms. On the scale
    of logarithms or log odds all are differences of the response around its mean there.

    Raises
    ------
    DoeError
        If nobody says what matters, the analysed scale is another one, or looks were declared.
    """
    options, fit = response.options, response.fit
    if not options.equivalence:
        return None
    matters = options.matters if options.matters is not None else response.data.matters
    if matters is None or not 0.0 < matters < math.inf:
        raise DoeError(
            f"equivalence needs the smallest effect on {response.data.response} that matters, a "
            "positive number: `matters` in [responses] of the study, or of the analysis"
        )
    transform, middle = response.transform, float(fit.y.mean())
    if transform.name not in ("none", *FIXED_SCALES):
        raise DoeError(
            f"{response.data.response} is analysed on another scale, on which the smallest "
            "effect that matters has no size; use the transformation none or log"
        )
    if response.runs.looked is not None:
        raise DoeError("this study has a declared stopping rule, which says what is negligible")
    known = [e for e in response.effects if e.se is not None]
    effect = np.array([e.effect for e in known])
    se = np.array([e.se for e in known], dtype=np.float64)
    df = np.array([e.df_error or fit.df_error for e in known], dtype=np.float64)
    size = transform.effect_of(matters, middle)
    p = np.asarray(stats.t.sf((size - np.abs(effect)) / se, df), dtype=np.float64)
    reach = np.asarray(stats.t.isf(response.alpha / max(len(known), 1), df)) * se
    low, high = np.minimum(effect - reach, 0.0), np.maximum(effect + reach, 0.0)
    whole = np.minimum(len(known) * p, 1.0)
    effects, lows, highs = (
        [transform.difference(e, middle) for e in end.tolist()] for end in (effect, low, high)
    )
    rows = zip(known, effects, lows, highs, none_for_nan(p), none_for_nan(whole), strict=True)
    return Equivalence(
        matters,
        tuple(
            EquivalenceRow(e.term, own, least, most, one, over, (over or 0.0) < response.alpha)
            for e, own, least, most, one, over in rows
        ),
        transform.name,
    )
