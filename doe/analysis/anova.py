"""Analysis of variance: blocks first, then terms, lack of fit, error and total."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import scipy
from msgspec import Struct

from doe.analysis import distributions as stats
from doe.analysis.contrasts import Floats
from doe.analysis.effects import plain
from doe.analysis.fit import Fit, design_matrix
from doe.analysis.fitted import Fitted
from doe.analysis.lenth import Lenth
from doe.analysis.pvalues import f_upper, quotient
from doe.analysis.rescale import units
from doe.errors import counted
from doe.numbers import cell_text, share_text

MOST_TYPE2 = 256
"""Type II needs one decomposition per term; beyond this many terms type III alone is given."""
FEW_DF = 4
"""Degrees of freedom of pure error below which it is said how few they are."""


class AnovaRow(Struct, frozen=True, gc=False):
    """A line of the analysis of variance: Block first, then terms, Lack of fit, Error, Total."""

    UNITS: ClassVar = units(ss=2, ms=2)
    source: str
    df: int
    ss: float
    ms: float | None
    f: float | None
    p: float | None


class Blocking(Struct, frozen=True):
    """What the blocks took out of the error."""

    UNITS: ClassVar = units(variance=2)
    name: str
    blocks: int
    variance: float | None  # variance component (MS_block - MS_error) / runs per block, at least 0
    share: float | None  # of the variance within a cell
    share_low: float | None
    share_high: float | None
    efficiency: float | None  # replicates needed without blocks per replicate with them
    sentence: str


class Anova(Struct, frozen=True):
    """The analysis of variance with the model's summary figures."""

    rows: tuple[AnovaRow, ...]  # type III where the design is unbalanced
    type2: tuple[AnovaRow, ...] | None  # type II, only where it differs (unbalanced)
    balanced: bool
    error: str | None  # "pure error", "residual", or None in a saturated design
    r2: float | None
    r2_adjusted: float | None
    r2_predicted: float | None
    blocking: Blocking | None


def anova(fit: Fit, names: Sequence[str], block: str | None, alpha: float) -> Anova:
    """Table with an F test of every term against the error, and the model's summary figures."""
    type2 = None
    if not fit.model.balanced and 0 < len(names) <= MOST_TYPE2:
        type2 = _rows(fit, names, type_two(fit))
    r2, adjusted, predicted = fit.r_squared()
    return Anova(
        rows=_rows(fit, names, fit.ss),
        type2=type2,
        balanced=fit.model.balanced,
        error=fit.error,
        r2=r2,
        r2_adjusted=adjusted,
        r2_predicted=predicted,
        blocking=blocking(fit, block, alpha),
    )


def type_two(fit: Fit) -> Floats:
    """Type II sums of squares: each term after blocks and all terms that do not contain it.

    The reduction is ``b_j² / [(X_s' X_s)^-1]_jj`` in the model s of the terms that do not
    strictly contain term j.
    """
    X = design_matrix(fit.cells, fit.block, fit.model)
    gram, moment = X.T @ X, X.T @ fit.y
    first = X.shape[1] - len(fit.model.masks)
    masks = np.asarray(fit.model.masks, dtype=np.int64)
    sums = np.empty(len(masks))
    for j, mask in enumerate(fit.model.masks):
        inside = ((masks & mask) != mask) | (masks == mask)
        chosen = np.concatenate([np.arange(first), first + np.flatnonzero(inside)])
        at = first + int(inside[:j].sum())
        factor = scipy.linalg.cho_factor(gram[np.ix_(chosen, chosen)])
        unit = np.zeros(len(chosen))
        unit[at] = 1.0
        column = scipy.linalg.cho_solve(factor, unit)
        sums[j] = float(column @ moment[chosen]) ** 2 / column[at]
    return sums


def _rows(fit: Fit, names: Sequence[str], ss: Floats) -> tuple[AnovaRow, ...]:
    rows = []
    if fit.df_block > 0:
        rows.append(anova_row(fit, "Block", fit.df_block, fit.ss_block))
    with np.errstate(divide="ignore", invalid="ignore"):
        f = ss / fit.ms_error
    columns = (ss.tolist(), plain(f), plain(f_upper(f, 1, fit.df_error)))
    for name, square, f_term, p in zip(names, *columns, strict=True):
        rows.append(AnovaRow(name, 1, square, square, f_term, p))
    return (*rows, *closing_rows(fit))


def anova_row(fit: Fitted, source: str, df: int, ss: float, *, tested: bool = False) -> AnovaRow:
    """A line on the scale of y; where it is `tested` and an error is left, with its F test."""
    f = p = None
    if tested and fit.df_error > 0 and (f := quotient(ss / df, fit.ms_error)) is not None:
        p = float(f_upper(np.array(f), df, fit.df_error))
    return AnovaRow(source, df, ss * fit.square, ss / df * fit.square, f, p)


def closing_rows(fit: Fitted) -> list[AnovaRow]:
    """The lines below the terms: Lack of fit, Error, Total."""
    rows = []
    ss_lack, df_lack = fit.lack_of_fit
    if fit.from_pure and df_lack > 0:
        rows.append(anova_row(fit, "Lack of fit", df_lack, ss_lack, tested=True))
    ss_error, df_error = fit.error_line
    if df_error > 0:
        rows.append(anova_row(fit, "Error", df_error, ss_error))
    rows.append(AnovaRow("Total", fit.n - 1, fit.ss_total * fit.square, None, None, None))
    return rows


def blocking(fit: Fit, name: str | None, alpha: float) -> Blocking | None:
    """Variance component of blocks and the efficiency of blocking against none.

    ``s²_block = max(0, (MS_block - MS_error) / c)`` and, for b blocks of c runs,
    ``RE = ((b - 1) MS_block + b (c - 1) MS_error) / ((b c - 1) MS_error)``. The interval of the
    share ρ of blocks in the variance within a cell is ``(F/F_u - 1) / (F/F_u + c - 1)`` with F =
    MS_block / MS_error and its quantiles F_u: that of an intraclass correlation. Where cells share
    no block the blocks carry confounded terms as well, and nothing can be said. Where replicates
    share seeds, `streams` says where the variance comes from.
    """
    if name is None or fit.df_error == 0 or fit.seeding is not None:
        return None
    blocks = fit.df_block + 1
    if fit.n - len(np.unique(fit.cells)) - fit.df_pure < fit.df_block:
        sentence = f"What {name} carries cannot be told from terms confounded with it."
        return Blocking(name, blocks, None, None, None, None, None, sentence)
    size = fit.n / blocks
    ms_block = fit.ss_block / fit.df_block
    variance = max(0.0, (ms_block - fit.ms_error) / size)
    gain = (fit.df_block * ms_block + blocks * (size - 1) * fit.ms_error) / (
        (fit.n - 1) * fit.ms_error
    )
    share = variance / (variance + fit.ms_error)
    tails = stats.f.isf([alpha / 2.0, 1.0 - alpha / 2.0], fit.df_block, fit.df_error)
    ratio = ms_block / fit.ms_error / tails
    low, high = np.maximum(0.0, (ratio - 1.0) / (ratio + size - 1.0)).tolist()
    worth = (
        f"without blocks the same precision would take {cell_text(gain, 'fixed2')} times the "
        "replicates"
        if gain > 1
        else "blocking gained nothing here and cost little"
    )
    sentence = (
        f"{name} carries {share_text(share)} of the variance within a cell "
        f"({share_text(low)} to {share_text(high)}); {worth}."
    )
    return Blocking(name, blocks, variance, share, low, high, gain, sentence)


def seed_warnings(fit: Fitted, robust: bool) -> list[str]:
    """What shared seeds leave out, and whether the tests could not allow for them."""
    warnings = []
    if robust and fit.seeding is not None:
        warnings.append(
            "The robust methods are left out: they take replicates that share seeds as others."
        )
    if fit.seeding is not None and fit.over_seeds is None and fit.seeding.shared:
        warnings.append(
            "Replicates share seeds, and the runs so far cannot tell their streams apart: p values "
            "and intervals take the replicates as independent, so that they promise too much."
        )
    return warnings


def error_warnings(fit: Fitted, df_left: int, lenth: Lenth | None) -> list[str]:
    """What the tests are against, where that is nothing, little, or holds more than noise.

    `df_left` are the degrees of freedom of all that the terms leave; `lenth` is None where too few
    effects differ from zero for his method.
    """
    instead = "p is Lenth's, simulated, without intervals"
    if lenth is None:
        instead = "too few effects differ from zero for Lenth's method, so that nothing is tested"
    if fit.exact:
        return [
            "Runs that should differ by chance agree to the last digit: there is no error to test "
            f"against, and {instead}."
        ]
    if fit.error is None:
        return [f"The design is saturated: {instead}."]
    if fit.from_pure and fit.df_error < FEW_DF:
        degrees = counted(fit.df_error, "degree")
        more = ""
        if df_left > fit.df_error:
            more = (
                f"; the residual of the model has {df_left} and may be tested against instead, if "
                "the terms left out are taken as zero"
            )
        return [
            f"Tests are against the pure error of repeated runs alone, on {degrees} of freedom"
            f"{more}."
        ]
    return [] if fit.from_pure else _pooled_warnings(fit)


def _pooled_warnings(fit: Fitted) -> list[str]:
    """Whether the residual as error holds more than the spread of repeated runs."""
    ss_lack, df_lack = fit.lack_of_fit
    if fit.df_pure == 0 or fit.ss_pure <= 0.0 or df_lack < 1:
        return []
    f = ss_lack / df_lack / (fit.ss_pure / fit.df_pure)
    p = float(f_upper(np.array(f), df_lack, fit.df_pure))
    return [
        "Tests are against the residual; its lack of fit, against the pure error, has "
        f"F = {cell_text(f, 'short')} on {df_lack} and {fit.df_pure} degrees of freedom, "
        f"p = {cell_text(p, 'p')}."
    ]
