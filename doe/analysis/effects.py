"""Tests of terms, and single-degree answers: effects, parts of numbers, curvature, contrasts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from doe.analysis.coding import DEGREES, contrasts
from doe.analysis.contrasts import Floats, names_of
from doe.analysis.dataset import FactorColumn
from doe.analysis.fit import Fit
from doe.analysis.lenth import HalfNormalPoint, Lenth, half_normal_points, lenth
from doe.analysis.means import difference_function
from doe.analysis.model import CURVATURE
from doe.analysis.pvalues import (
    adjusted,
    f_upper,
    plain,
    quotient,
    signed_quotient,
    t_critical,
    t_two_sided,
)
from doe.terms import FACTORS, order


class Effect(Struct, frozen=True, gc=False):
    """One term of two-level factors on the analysed scale."""

    term: str
    effect: float  # mean at high minus mean at low, twice the coefficient
    coef: float
    se: float | None  # standard error of the effect; None in a saturated design
    ci_low: float | None
    ci_high: float | None
    t: float | None  # effect / se; in a saturated design effect / PSE
    p: float | None  # two-sided t; in a saturated design Lenth's, simulated
    p_holm: float | None  # over all terms that are shown
    p_bh: float | None
    ss: float  # after all other terms: type III (all types agree in a balanced design)
    percent: float  # of the total sum of squares
    mask: int = 0  # the term as a value


class TermTest(Struct, frozen=True, gc=False):
    """One term of any degrees of freedom with its test; adjusted p values are over the terms."""

    term: str
    df: int
    df_asked: int  # with runs in every cell; more than `df` where cells are empty
    ss: float
    percent: float  # of the total sum of squares
    f: float | None  # None in a saturated design
    p: float | None  # in a saturated design Lenth's, of its largest contrast
    p_holm: float | None
    p_bh: float | None
    mask: int = 0
