"""Checks of the model's assumptions; each finding ends in what to do about it."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis import distributions as stats
from doe.analysis.case import Case
from doe.analysis.contrasts import MOST_RUNS, Floats, Ints
from doe.analysis.fit import Fit, design_matrix, without_blocks
from doe.analysis.pvalues import holm
from doe.analysis.transform import BoxCox, Transformation, box_cox

CONFOUNDED = 0.5
"""Share of a factor's variation explained by slots or hosts from which confounding is reported."""


class Residual(Struct, frozen=True, gc=False):
    """One observed run under the model."""

    run_id: str
    run_order: int
    config: str
    fitted: float
    residual: float
    studentized: float | None  # externally studentized; None where leverage is 1
    leverage: float
    cook: float | None
    normal_quantile: float  # plotting position (i - 1/2)/n


class Finding(Struct, frozen=True):
    """One check, its figures, and a sentence that says what to do."""

    check: str  # normality, equal variance, spread by factor, drift, slot, host, outliers, …
    ok: bool
    statistic: float | None
    p: float | None
    advice: str
    runs: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()  # options that would help: "robust", "transform=log", "order"


class Diagnostics(Struct, frozen=True):
    """All checks of the model's assumptions."""

    findings: tuple[Finding, ...]
    residuals: tuple[Residual, ...]  # in run order; empty in a saturated design
    spread: float | None  # root mean square of the residuals
    boxcox: BoxCox | None


def diagnose(case: Case) -> Diagnostics:
    """All checks for the observed runs."""
    fit, chosen, alpha = case.fit, case.transform, case.alpha
    if fit.df_residual < 1 or fit.ss_residual <= 1e-24 * max(fit.ss_total, 1e-300):
        advice = (
            "No residual is left to check: the design is saturated or the fit exact. Read the "
            "half-normal plot, or reduce the model."
        )
        nothing = Finding("residuals", True, None, None, advice, remedies=("order",))
        return Diagnostics((nothing,), (), None, None)
    residuals = residual_table(case)
    profile = box_cox(fit, alpha) if chosen.name == "none" else None
    distance, cells = distances(fit)
    findings = [
        normality(fit, alpha, chosen),
        equal_variance(distance, cells, alpha, chosen),
        spread_by_factor(distance, cells, case.keys, alpha, chosen),
        drift(fit, [case.runs.run_order[i] for i in case.kept], alpha),
        *confounding(case),
        outliers(residuals, fit, alpha),
        high_leverage(residuals, fit),
        *([_box_cox_finding(profile)] if profile else []),
    ]
    spread = float(np.sqrt(fit.ss_residual / fit.n))
    return Diagnostics(tuple(f for f in findings if f is not None), residuals, spread, profile)


def residual_table(case: Case) -> tuple[Residual, ...]:
    """Residuals in run order, externally studentized, with leverage and Cook's distance.

    ``t_i = e_i / (s_(i) sqrt(1 - h_i))``, ``D_i = e_i² h_i / (p s² (1 - h_i)²)``.
    """
    fit, runs, kept = case.fit, case.runs, case.kept
    e, h = fit.residual, np.minimum(fit.leverage, 1.0)
    p, df = fit.n - fit.df_residual, fit.df_residual
    free = 1.0 - h
    s2 = fit.ss_residual / df
    with np.errstate(divide="ignore", invalid="ignore"):
        without = (fit.ss_residual - e**2 / free) / (df - 1)
        student = e / np.sqrt(np.maximum(without, 0.0) * free)
        cook = e**2 * h / (p * s2 * free**2)
    rank = stats.rankdata(e, method="ordinal")
    quantile = stats.norm.ppf((rank - 0.5) / fit.n)
    ok = free > 1e-9
    order = sorted(range(fit.n), key=lambda i: runs.run_order[kept[i]])
    labels = {cell: runs.config(cell) for cell in set(fit.cells.tolist())}
    return tuple(
        Residual(
            run_id=runs.run_ids[kept[i]],
            run_order=runs.run_order[kept[i]],
            config=labels[int(fit.cells[i])],
            fitted=float(fit.fitted[i]),
            residual=float(e[i]),
            studentized=float(student[i]) if ok[i] and np.isfinite(student[i]) else None,
            leverage=float(h[i]),
            cook=float(cook[i]) if ok[i] else None,
            normal_quantile=float(quantile[i]),
        )
        for i in order
    )


def normality(fit: Fit, alpha: float, chosen: Transformation) -> Finding | None:
    """Shapiro and Wilk's test of the residuals."""
    if not 3 <= fit.n <= 5000:
        return None
    w, p = (float(value) for value in stats.shapiro(fit.residual))
    ok = p >= alpha
    if ok:
        return Finding("normality", ok, w, p, "Residuals look normal; nothing to do.")
    raw = chosen.name == "none"
    cure = ", and try a transformation" if raw else ""
    advice = f"Residuals are not normal: compare with the robust methods{cure}."
    remedies = ("robust", *(("transform=auto",) if raw else ()))
    return Finding("normality", ok, w, p, advice, remedies=remedies)


def distances(fit: Fit) -> tuple[Floats, Ints]:
    """Distance of each run from the median of its cell, for cells of three runs or more."""
    y = without_blocks(fit.y, fit.cells, fit.block)
    _, group, counts = np.unique(fit.cells, return_inverse=True, return_counts=True)
    ordered = y[np.lexsort((y, group))]
    first = np.cumsum(counts) - counts
    medians = (ordered[first + (counts - 1) // 2] + ordered[first + counts // 2]) / 2
    enough = counts[group] >= 3
    return np.abs(y - medians[group])[enough], fit.cells[enough]


def equal_variance(
    distance: Floats, cells: Ints, alpha: float, chosen: Transformation
) -> Finding | None:
    """Brown and Forsythe's test over cells, from the distances to their medians."""
    order = np.argsort(cells, kind="stable")
    groups = np.split(distance[order], np.flatnonzero(np.diff(cells[order])) + 1)
    if len(groups) < 2:
        return None
    f, p = (float(value) for value in stats.f_oneway(*groups))
    if not np.isfinite(f):
        return None
    if p >= alpha:
        advice = "No sign that the spread differs between configurations; nothing to do."
        return Finding("equal variance", True, f, p, advice)
    cure, remedies = _cure(chosen)
    advice = f"The spread differs between configurations: {cure}."
    return Finding("equal variance", False, f, p, advice, remedies=remedies)


def spread_by_factor(
    distance: Floats, cells: Ints, keys: Sequence[str], alpha: float, chosen: Transformation
) -> Finding | None:
    """The same between the two levels of each factor, Holm-adjusted.

    Few runs in a cell say little about its own spread; half of all runs say more.
    """
    high = [(cells >> j & 1).astype(bool) for j in range(len(keys))]
    if any(min(level.sum(), (~level).sum()) < 2 for level in high):
        return None
    tests = np.array([stats.f_oneway(distance[level], distance[~level]) for level in high])
    if not np.isfinite(tests).all():
        return None
    p = holm(tests[:, 1])
    first = int(np.argmin(tests[:, 1]))
    names = ", ".join(key for key, value in zip(keys, p, strict=True) if value < alpha)
    figures = (float(tests[first, 0]), float(p[first]))
    if not names:
        advice = "No factor changes the spread; nothing to do."
        return Finding("spread by factor", True, *figures, advice)
    cure, remedies = _cure(chosen)
    advice = f"The spread differs between the levels of {names}: {cure}."
    return Finding("spread by factor", False, *figures, advice, remedies=remedies)


def _cure(chosen: Transformation) -> tuple[str, tuple[str, ...]]:
    """What helps against unequal spread, in words and as options."""
    spread = "and see the dispersion table"
    if chosen.name == "none":
        return f"transform the response, {spread}", ("transform=log", "transform=auto")
    return f"compare with the robust methods, {spread}", ("robust",)


def added_columns(fit: Fit, columns: Floats) -> tuple[float, float] | None:
    """F and p of further columns after the model; None where they add nothing to it."""
    X = design_matrix(fit.cells, fit.block, fit.model)
    basis = np.linalg.qr(X)[0]
    rest = columns - basis @ (basis.T @ columns)
    left, size, _ = np.linalg.svd(rest, full_matrices=False)
    left = left[:, size > 1e-8 * max(float(np.linalg.norm(columns)), 1e-300)]
    df, rank = fit.df_residual - left.shape[1], left.shape[1]
    if rank == 0 or df < 1:
        return None
    gain = float(((left.T @ fit.residual) ** 2).sum())
    f = gain / rank / max((fit.ss_residual - gain) / df, 1e-300)
    return f, float(stats.f.sf(f, rank, df))


def drift(fit: Fit, order: Sequence[int], alpha: float) -> Finding | None:
    """Linear trend over run order, tested after the model."""
    if fit.n > MOST_RUNS:
        return None
    x = stats.rankdata(order) - (fit.n + 1) / 2
    trend = added_columns(fit, x[:, None])
    if trend is None:
        return None
    ok = trend[1] >= alpha
    advice = (
        "No drift over run order; nothing to do."
        if ok
        else "Results drift with run order: look for a change in data, code or machine, "
        "and trust effects only where runs were randomised."
    )
    return Finding("drift", ok, *trend, advice)


def confounding(case: Case) -> list[Finding]:
    """Whether slots or hosts explain results after the model (F), or stand in for a factor (R²)."""
    runs, fit = case.runs, case.fit
    findings = []
    for name, all_labels in (("slot", runs.slot), ("host", runs.host)):
        if all_labels is None or fit.n > MOST_RUNS:
            continue
        labels = np.array([all_labels[i] for i in case.kept])
        groups = np.unique(labels)
        if len(groups) < 2:
            continue
        columns = (labels[:, None] == groups[None, 1:]).astype(np.float64)
        f, p = added_columns(fit, columns) or (None, None)
        shares = [_explained(x, labels) for x in runs.coded[list(case.kept)].T.astype(np.float64)]
        tied = [key for key, share in zip(runs.keys, shares, strict=True) if share > CONFOUNDED]
        differs = p is not None and p < case.alpha
        advice = _confounding_advice(name, differs, tied)
        findings.append(Finding(name, not differs and not tied, f, p, advice))
    return findings


def _explained(x: Floats, labels: NDArray[np.str_]) -> float:
    """Share of the variation of x that lies between groups, beyond that of random groups."""
    groups = np.unique(labels)
    centred = x - x.mean()
    between = sum(centred[labels == g].sum() ** 2 / (labels == g).sum() for g in groups)
    share = float(between) / max(float(centred @ centred), 1e-300)
    chance = (len(groups) - 1) / max(len(x) - 1, 1)
    return (share - chance) / max(1.0 - chance, 1e-9)


def _confounding_advice(name: str, differs: bool, tied: Sequence[str]) -> str:
    if tied:
        return (
            f"Factor {', '.join(tied)} goes with the {name}: their effects cannot be told apart. "
            "Run the study again with its randomised order."
        )
    if differs:
        return f"Residuals differ between {name}s: compare the {name}s' logs and versions."
    return f"No difference between {name}s; nothing to do."


def outliers(residuals: Sequence[Residual], fit: Fit, alpha: float) -> Finding | None:
    """Runs whose externally studentized residual is significant after Bonferroni."""
    if fit.df_residual < 3:
        return None
    sizes = [(abs(r.studentized), r) for r in residuals if r.studentized is not None]
    if not sizes:
        return None
    largest = max(size for size, _ in sizes)
    limit = float(stats.t.isf(alpha / (2 * len(sizes)), fit.df_residual - 1))
    runs = tuple(r.run_id for size, r in sorted(sizes, key=lambda s: -s[0]) if size > limit)
    p = min(1.0, float(2 * len(sizes) * stats.t.sf(largest, fit.df_residual - 1)))
    named = ", ".join(runs[:6]) + (" and others" if len(runs) > 6 else "")
    advice = (
        f"Look at {named}: far from the rest of the configuration. Do not drop them for that alone."
        if runs
        else "No outlying run; nothing to do."
    )
    return Finding("outliers", not runs, largest, p, advice, runs)


def high_leverage(residuals: Sequence[Residual], fit: Fit) -> Finding | None:
    """Runs with more than twice the mean leverage."""
    mean = (fit.n - fit.df_residual) / fit.n
    runs = tuple(r.run_id for r in residuals if r.leverage > max(2 * mean, mean + 1e-9) - 1e-12)
    alone = tuple(r.run_id for r in residuals if r.leverage > 1 - 1e-9)
    runs = tuple(dict.fromkeys((*runs, *alone)))
    if not runs:
        return None
    advice = (
        f"{', '.join(runs[:6])} decide their own fit (replicates are missing): repeat their "
        "configurations."
    )
    return Finding("leverage", False, max(r.leverage for r in residuals), None, advice, runs)


def _box_cox_finding(profile: BoxCox) -> Finding:
    span = f"λ = {profile.exponent:.2f} ({profile.low:.2f} to {profile.high:.2f})".replace("-", "−")
    advice = {
        "none": f"Box-Cox {span} allows the scale as it is; nothing to do.",
        "log": f"Box-Cox {span} asks for logarithms.",
        "boxcox": f"Box-Cox {span} asks for a power.",
    }[profile.suggestion]
    ok = profile.suggestion == "none"
    remedies = () if ok else (f"transform={profile.suggestion}",)
    return Finding("box-cox", ok, profile.exponent, None, advice, remedies=remedies)
