"""Analysis of variance: blocks first, then terms, curvature, lack of fit, error and total."""

from __future__ import annotations

import numpy as np
from msgspec import Struct

from doe.analysis import distributions as stats
from doe.analysis.effects import f_test
from doe.analysis.fit import MOST_TYPE2, Fit
from doe.analysis.lenth import Lenth
from doe.analysis.model import CURVATURE
from doe.analysis.pvalues import f_upper, none_for_nan
from doe.errors import counted
from doe.numbers import about, cell_text, share_text

FEW_DF = 4
"""Degrees of freedom of pure error below which it is said how few they are."""


class AnovaRow(Struct, frozen=True, gc=False, omit_defaults=True):
    """A line of the analysis of variance: Block first, then terms, Lack of fit, Error, Total."""

    source: str
    df: int
    ss: float
    ms: float | None
    f: float | None
    p: float | None
    stratum: str = ""  # whose error F is against, where there are several
    df_error: float | None = None  # of that error


class Blocking(Struct, frozen=True):
    """Variance that the blocks took out of the error."""

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

    rows: tuple[AnovaRow, ...]
    kind: str  # the type of the rows: III, or II where cells are empty, I where that is too much
    type2: tuple[AnovaRow, ...] | None  # only where it differs
    balanced: bool  # no term shares anything with another: all types agree
    error: str | None  # "pure error", "residual", "variation over seeds", or None when saturated
    r2: float | None
    r2_adjusted: float | None
    r2_predicted: float | None
    blocking: Blocking | None


def anova(fit: Fit, kind: str, sums: dict[int, float], block: str | None, alpha: float) -> Anova:
    """Table with an F test of every term against the error, and the model's summary figures.

    `sums` are the sums of squares of type `kind`.
    """
    type2 = None
    plain = fit.strata is None
    if plain and kind == "III" and not fit.orthogonal and 0 < len(fit.model.terms) <= MOST_TYPE2:
        type2 = anova_rows(fit, sums_of_squares(fit, "II"))
    r2, adjusted, predicted = fit.r_squared()
    return Anova(
        rows=anova_rows(fit, sums),
        kind=kind,
        type2=type2,
        balanced=fit.orthogonal,
        error=fit.error,
        r2=r2,
        r2_adjusted=adjusted,
        r2_predicted=predicted,
        blocking=blocking(fit, block, alpha),
    )


def tested_sources(fit: Fit) -> list[int]:
    """Return the terms in standard order, and the curvature where there are centre runs."""
    return [*fit.model.sorted_terms, *([CURVATURE] if fit.model.df(CURVATURE) else [])]


def sums_of_squares(fit: Fit, kind: str) -> dict[int, float]:
    """Sum of squares of every term and of the curvature, of u.

    Type I: each after those before it, ``Σ (q_j'u)²`` over its columns of Q. Type II: each after
    all that do not contain it. Type III: each after all others, ``b'[(X'X)^-1]_tt^-1 b``, which
    with contrasts that sum to zero compares means with every cell weighted alike (Yates 1934).
    """
    sources = tested_sources(fit)
    if fit.strata is not None:
        return {s: _stratum_squares(fit, s) for s in sources}
    if fit.model.solved_by_transform:
        coef, scale = fit.coef_of(tuple(sources))
        return dict(zip(sources, (coef**2 / scale).tolist(), strict=True))
    if kind == "I" or fit.orthogonal:
        return {s: float((fit.rotated[fit.model.columns(s)] ** 2).sum()) for s in sources}
    if kind == "II":
        return {s: fit.square_of(fit.type_two_basis(s)) for s in sources}
    return {s: fit.wald(s) for s in sources}


def _stratum_squares(fit: Fit, source: int) -> float:
    """Return sums of squares by least squares, or those that F implies at the error of runs."""
    assert fit.strata is not None
    if fit.strata.method == "REML" and (test := fit.stratum_test(source)) is not None:
        return test.f * test.df * fit.ms_error
    basis = fit.term_basis(source) if fit.kind == "III" else fit.type_two_basis(source)
    return fit.square_of(basis)


def anova_rows(fit: Fit, sums: dict[int, float]) -> tuple[AnovaRow, ...]:
    """Lines of the table: Block without F, terms, Curvature, Lack of fit, Error, Total."""
    rows = []
    if df := fit.df_block:
        rows.append(_row(fit, "Block", df, fit.ss_block))
    rows += [
        _row(fit, fit.model.name(source), 1, fit.wald(source), tested=True)
        for source in fit.model.fitted_source[fit.model.adjusting].tolist()
    ]
    if fit.strata is not None:
        return (*rows, *_stratum_rows(fit, sums), _total(fit))
    if fit.model.solved_by_transform:
        rows += _single_rows(fit, sums)
    else:
        rows += [
            _row(fit, fit.model.name(source), fit.model.df(source), ss, tested=True)
            for source, ss in sums.items()
        ]
    return (*rows, *_closing_rows(fit))


def _stratum_rows(fit: Fit, sums: dict[int, float]) -> list[AnovaRow]:
    """Lines of each stratum, the coarsest first: its terms, then its error where that has one.

    Variances from the likelihood are not mean squares and have no line.
    """
    assert fit.strata is not None
    rows = []
    for line in fit.strata.lines:
        for source in (s for s in sums if fit.strata.names[s] == line.name):
            df, ss = fit.model.df(source), sums[source] * fit.square
            test = fit.stratum_test(source)
            f, p, of = (None,) * 3 if test is None else (test.f, test.p, test.df_error)
            rows.append(AnovaRow(fit.model.name(source), df, ss, ss / df, f, p, line.name, of))
        if line.ms is not None and line.df:
            ms, df = line.ms * fit.square, round(line.df)
            rows.append(AnovaRow("Error", df, ms * df, ms, None, None, line.name))
    return rows


def _single_rows(fit: Fit, sums: dict[int, float]) -> list[AnovaRow]:
    """Lines of terms of one degree of freedom each, of which there may be many."""
    ss = np.array(list(sums.values()))
    with np.errstate(divide="ignore", invalid="ignore"):
        f = ss / fit.ms_error
    squares = (ss * fit.square).tolist()
    columns = zip(squares, none_for_nan(f), none_for_nan(f_upper(f, 1, fit.df_error)), strict=True)
    names = [fit.model.name(term) for term in sums]
    return [
        AnovaRow(name, 1, square, square, f_term, p)
        for name, (square, f_term, p) in zip(names, columns, strict=True)
    ]


def _row(fit: Fit, source: str, df: int, ss: float, *, tested: bool = False) -> AnovaRow:
    """Return a line on the scale of y; where it is `tested` and an error is left, with its F
    test.
    """
    f, p = f_test(fit, ss, df) if tested else (None, None)
    return AnovaRow(source, df, ss * fit.square, ss / df * fit.square, f, p)


def _closing_rows(fit: Fit) -> list[AnovaRow]:
    """Return the lines below the terms: Lack of fit, Error, Total."""
    rows = []
    ss_lack, df_lack = fit.lack_of_fit
    if fit.from_pure and df_lack > 0:
        rows.append(_row(fit, "Lack of fit", df_lack, ss_lack, tested=True))
    ss_error, df_error = fit.error_line
    if df_error > 0:
        rows.append(_row(fit, "Error", df_error, ss_error))
    return [*rows, _total(fit)]


def _total(fit: Fit) -> AnovaRow:
    return AnovaRow("Total", fit.n - 1, fit.ss_total * fit.square, None, None, None)


def blocking(fit: Fit, name: str | None, alpha: float) -> Blocking | None:
    """Variance component of blocks and the efficiency of blocking against none.

    ``s²_block = max(0, (MS_block - MS_error) / c)`` and, for b blocks of c runs,
    ``RE = ((b - 1) MS_block + b (c - 1) MS_error) / ((b c - 1) MS_error)``. The interval of the
    share ρ of blocks in the variance within a cell is ``(F/F_u - 1) / (F/F_u + c - 1)`` with F =
    MS_block / MS_error and its quantiles F_u: that of an intraclass correlation. Where cells share
    no block the blocks carry confounded terms as well, and nothing can be said. Where replicates
    share seeds, `streams` says where the variance comes from.
    """
    if name is None or fit.df_block == 0 or fit.df_error == 0 or fit.seeding is not None:
        return None
    if fit.strata is not None:
        return None
    blocks = fit.df_block + 1
    if fit.n - len(np.unique(fit.cells)) - fit.df_pure < fit.df_block:
        sentence = f"The variation of {name} cannot be separated from terms confounded with it."
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
        else "blocking gained no precision here, and cost little"
    )
    sentence = (
        f"{name} accounts for {share_text(share)} of the variance within a cell "
        f"({share_text(low)} to {share_text(high)}); {worth}."
    )
    return Blocking(name, blocks, variance * fit.square, share, low, high, gain, sentence)


def seed_warnings(fit: Fit, robust: bool) -> list[str]:
    """Return what shared seeds leave out, and whether the tests could not allow for them."""
    warnings = []
    if robust and fit.grouped:
        warnings.append(
            "The robust methods are left out: they assume independent runs, and these share seeds "
            "or whole plots."
        )
    if (
        fit.strata is None
        and fit.seeding is not None
        and fit.seed_error is None
        and fit.seeding.shared
    ):
        warnings.append(
            "Replicates share seeds, and the runs so far cannot separate their streams: p values "
            "and intervals treat the replicates as independent, so they are too optimistic."
        )
    return warnings


def error_warnings(fit: Fit, df_left: int, lenth: Lenth | None) -> list[str]:
    """Return what the tests are against, where that is nothing, little, or holds more than noise.

    `df_left` are the degrees of freedom of all that the terms leave; `lenth` is None where too few
    effects differ from zero for his method.
    """
    instead = "p is Lenth's, simulated, without intervals"
    if lenth is None:
        instead = "too few effects differ from zero for Lenth's method, so that nothing is tested"
    if fit.exact:
        what = "The model fits every run to the last digit"
        if fit.df_pure > 0:
            apart = fit.df_block > 0 and fit.ss_block > fit.n * fit.rounding**2
            what = f"Replicates agree to the last digit{', but for their blocks' * apart}"
        return [
            f"{what}: there is no error to test against. Differences are exact for these runs; "
            "the variation over other seeds is unknown."
        ]
    if fit.error is None:
        return [f"The design is saturated: {instead}."]
    if fit.from_pure and fit.df_error < FEW_DF:
        degrees = counted(fit.df_error, "degree")
        more = ""
        if df_left > fit.df_error:
            more = (
                f"; the residual of the model has {df_left} and may serve as the error instead, if "
                "the terms left out are assumed to be zero"
            )
        return [
            f"Tests are against the pure error of repeated runs alone, on {degrees} of freedom"
            f"{more}."
        ]
    return [] if fit.from_pure or fit.strata is not None else _pooled_warnings(fit)


def _pooled_warnings(fit: Fit) -> list[str]:
    """Return whether the residual as error holds more than the spread of repeated runs."""
    ss_lack, df_lack = fit.lack_of_fit
    if fit.df_pure == 0 or fit.ss_pure <= 0.0 or df_lack < 1:
        return []
    f = ss_lack / df_lack / (fit.ss_pure / fit.df_pure)
    p = float(f_upper(np.array(f), df_lack, fit.df_pure))
    return [
        "Tests are against the residual; its lack of fit, against the pure error, has "
        f"F = {about(f)} on {df_lack} and {fit.df_pure} degrees of freedom, "
        f"p = {cell_text(p, 'p')}."
    ]
