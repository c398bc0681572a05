"""Checks of the model's assumptions; each finding ends in what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis import distributions as stats
from doe.analysis.contrasts import MOST_RUNS, Floats, Ints
from doe.analysis.dataset import numbered
from doe.analysis.fit import Fit, computed_once, without_blocks
from doe.analysis.fitted import FittedResponse
from doe.analysis.pvalues import holm
from doe.analysis.transform import BoxCox, Transformation, box_cox
from doe.errors import listed
from doe.numbers import cell_text

CONFOUNDED = 0.5
"""Share of a factor's variation explained by slots, hosts or other facts of the runs from which
confounding is reported."""
COURSE = ("replicate", "seed", "started", "ended", "seconds")
"""Facts that are part of the design, or come of the run itself: no surroundings."""
SHUFFLES, MANY_RUNS = 1999, 100
"""Random assignments of facts that separate confounding from chance, for up to so many runs."""


class Residual(Struct, frozen=True, gc=False):
    """One observed run under the model."""

    run_id: str
    run_order: int  # that of the table where the order of the runs is not known
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
    p_holm: float | None = None  # over all checks of the response: what `ok` goes by


class Diagnostics(Struct, frozen=True):
    """All checks of the model's assumptions."""

    findings: tuple[Finding, ...]
    residuals: tuple[Residual, ...]  # in run order; empty in a saturated design
    spread: float | None  # root mean square of the residuals
    boxcox: BoxCox | None


class Check(NamedTuple):
    """A test with what to say in either case, before it is judged together with the others."""

    name: str
    statistic: float
    p: float
    fine: str
    alarm: str
    remedies: tuple[str, ...] = ()
    runs: tuple[str, ...] = ()


class Cure(NamedTuple):
    """Remedy, in words and as options."""

    words: str
    remedies: tuple[str, ...]


def diagnose(response: FittedResponse) -> Diagnostics:
    """Return all checks for the observed runs.

    Each has its own p value; alarms are raised at level α over all of them together (Holm), so
    that an analysis of clean data shows any alarm at all with probability α.
    """
    fit, transform, alpha = response.fit, response.transform, response.alpha
    left = fit.within
    if left.df < 1 or left.ss <= 1e-24 * fit.ss_total or fit.exact:
        advice = "the fit is exact."
        if saturated := left.df < 1:
            advice = "the design is saturated. Read the half-normal plot, or reduce the model."
        advice = f"No residual is left to check: {advice}"
        remedies = ("order",) if saturated else ()
        nothing = Finding("residuals", True, None, None, advice, remedies=remedies)
        return Diagnostics((nothing,), (), None, None)
    residuals = residual_table(response)
    profile = box_cox(fit, alpha) if transform.name == "none" else None
    distance, run = distances(fit)
    cure = _cure(fit, transform)
    checks = [
        normality(fit, transform),
        equal_variance(distance, fit.groups[run], cure),
        spread_by_factor(distance, fit.runs.index[run], response.keys, cure, alpha),
        drift(fit),
        *(
            check
            for name, labels in facts_of(fit)
            for check in surroundings(fit, name, labels, alpha)
        ),
        outliers(residuals, fit, alpha),
        None if profile is None else _box_cox_check(profile),
    ]
    findings = judged([check for check in checks if check is not None], alpha)
    if fit.runs.run_order is None:
        advice = "The order of the runs is not known, so that drift cannot be checked."
        findings.append(Finding("drift", True, None, None, advice))
    if (leverage := high_leverage(residuals, fit)) is not None:
        findings.append(leverage)
    spread = float(np.sqrt(left.ss / fit.n)) * fit.unit
    return Diagnostics(tuple(findings), residuals, spread, profile)


def judged(checks: Sequence[Check], alpha: float) -> list[Finding]:
    """Findings, with p values adjusted over all checks."""
    adjusted = holm(np.array([check.p for check in checks])).tolist()
    findings = []
    for check, p_holm in zip(checks, adjusted, strict=True):
        ok = p_holm >= alpha
        findings.append(
            Finding(
                check=check.name,
                ok=ok,
                statistic=check.statistic,
                p=check.p,
                advice=check.fine if ok else check.alarm,
                runs=() if ok else check.runs,
                remedies=() if ok else check.remedies,
                p_holm=p_holm,
            )
        )
    return findings


def residual_table(response: FittedResponse) -> tuple[Residual, ...]:
    """Residuals in run order, externally studentized, with leverage and Cook's distance.

    ``t_i = e_i / (s_(i) sqrt(1 - h_i))``, ``D_i = e_i² h_i / (p s² (1 - h_i)²)``.
    """
    fit, runs, kept = response.fit, response.runs, response.observed_runs.tolist()
    times = runs.run_order or range(1, len(runs.run_ids) + 1)
    e, h = fit.within.values, np.minimum(fit.within.leverage, 1.0)
    ss, df = fit.within.ss, fit.within.df
    p, free = fit.n - df, 1.0 - h
    s2 = ss / df
    with np.errstate(divide="ignore", invalid="ignore"):
        without = (ss - e**2 / free) / (df - 1)
        student = e / np.sqrt(np.maximum(without, 0.0) * free)
        cook = e**2 * h / (p * s2 * free**2)
    rank = stats.rankdata(e, method="ordinal")
    quantile = stats.norm.ppf((rank - 0.5) / fit.n)
    ok = free > 1e-9
    order = sorted(range(fit.n), key=lambda i: times[kept[i]])
    labels = {cell: runs.config(cell) for cell in set(fit.cells.tolist())}
    return tuple(
        Residual(
            run_id=runs.run_ids[kept[i]],
            run_order=times[kept[i]],
            config=labels[int(fit.cells[i])],
            fitted=fit.shift + fit.unit * float(fit.fitted[i]),
            residual=fit.unit * float(e[i]),
            studentized=float(student[i]) if ok[i] and np.isfinite(student[i]) else None,
            leverage=float(h[i]),
            cook=float(cook[i]) if ok[i] else None,
            normal_quantile=float(quantile[i]),
        )
        for i in order
    )


def normality(fit: Fit, transform: Transformation) -> Check | None:
    """Shapiro and Wilk's test of the residuals.

    Residuals of unequal variance look like a mixture, and where the model takes most degrees of
    freedom some are hardly any: corners beside centre runs would raise an alarm in half of studies.
    """
    even = float(np.ptp(fit.within.leverage)) < 1e-9 or 2 * fit.within.df >= fit.n
    if not 3 <= fit.n <= 5000 or not even:
        return None
    w, p = (float(value) for value in stats.shapiro(fit.within.values))
    raw = transform.name == "none"
    robust = "take p near the level with care" if fit.grouped else "compare with the robust methods"
    alarm = f"Residuals are not normal: {robust}{', and try a transformation' if raw else ''}."
    remedies = (*_robust(fit), *(("transform=auto",) if raw else ()))
    return Check("normality", w, p, "No evidence that residuals are not normal.", alarm, remedies)


@computed_once
def distances(fit: Fit) -> tuple[Floats, Ints]:
    """Distances of runs from the median of their cell, and a run of that cell for each.

    Of an odd number of runs one is the median itself and is left out; of an even number the two in
    the middle are equally far from it, and ``|y_(m+1) - y_(m)| / √2`` stands for both, as in
    `levene.test` of R's lawstat, which names Hines and O'Hara Hines (2000). Otherwise small cells
    look alike whatever their spread.
    """
    u = fit.within.values if fit.strata else without_blocks(fit.u, fit.groups, fit.block)
    order = np.lexsort((u, fit.groups))
    distance, run = [np.empty(0)], [np.empty(0, np.int64)]
    for runs in _grouped(fit.groups[order], order):
        n, half, ranked = len(runs), len(runs) // 2, u[runs]
        if n < 2:
            continue
        outer = np.abs(ranked - np.median(ranked))
        if n % 2:
            values = np.delete(outer, half)
        else:
            middle = (ranked[half] - ranked[half - 1]) / np.sqrt(2.0)
            values = np.append(np.delete(outer, (half - 1, half)), middle)
        distance.append(values)
        run.append(np.full(len(values), runs[0]))
    return np.concatenate(distance), np.concatenate(run)


def _grouped(labels: Ints, values: NDArray[Any]) -> list[NDArray[Any]]:
    """Return the values of each label; equal labels are adjacent."""
    return np.split(values, np.flatnonzero(np.diff(labels)) + 1)


def equal_variance(distance: Floats, groups: Ints, cure: Cure) -> Check | None:
    """Brown and Forsythe's test over cells of three runs or more."""
    tested = spread_between(distance, groups)
    if tested is None:
        return None
    return Check(
        *("equal variance", *tested),
        fine="No evidence that the spread differs between configurations.",
        alarm=f"The spread differs between configurations: {cure.words}.",
        remedies=cure.remedies,
    )


def spread_between(distance: Floats, groups: Ints) -> tuple[float, float] | None:
    """F and p of distances between groups of two or more; None where there are no two of them."""
    order = np.argsort(groups, kind="stable")
    several = [part for part in _grouped(groups[order], distance[order]) if len(part) > 1]
    if len(several) < 2:
        return None
    f, p = stats.f_oneway(*several)
    return (f, p) if np.isfinite(f) else None


def spreads_by_factor(
    distance: Floats, index: Ints, keys: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """F and p of distances between the levels of each factor of which they can be told."""
    tests = {k: spread_between(distance, levels) for k, levels in zip(keys, index.T, strict=True)}
    return {key: test for key, test in tests.items() if test is not None}


def spread_by_factor(
    distance: Floats, index: Ints, keys: Sequence[str], cure: Cure, alpha: float
) -> Check | None:
    """Return the test of equal spread between the levels of each factor, Holm-adjusted.

    Few runs in a cell say little about its own spread; all runs of a level say more.
    """
    known = spreads_by_factor(distance, index, keys)
    if not known:
        return None
    f, p = np.array(list(known.values())).T
    p_holm = holm(p)
    first = int(np.argmin(p))
    names = ", ".join(key for key, value in zip(known, p_holm, strict=True) if value < alpha)
    return Check(
        *("spread by factor", float(f[first]), float(p_holm[first])),
        fine="No factor is shown to change the spread.",
        alarm=f"The spread differs between the levels of {names}: {cure.words}.",
        remedies=cure.remedies,
    )


def _cure(fit: Fit, transform: Transformation) -> Cure:
    """Return what helps against unequal spread.

    Of runs with equal leverage the tests of terms hold nearly. Of others they do not, and neither
    do permutations: with a fourfold σ where 2 runs stand against 8 some inert term is called in
    half of studies, by HC3 with Holm in one of twenty.
    """
    remedies: tuple[str, ...] = ()
    holds = "tests of terms are nearly valid, since all runs weigh equally"
    if transform.share.items:
        holds = "judge terms by the counted items"
    elif float(np.ptp(fit.leverage)) > 1e-9 and not fit.grouped:
        holds, remedies = "judge terms by HC3 of the robust methods, not by max-T", _robust(fit)
    look = "" if fit.strata else "see the dispersion table"
    if transform.name == "none":
        logit = ("transform=logit",) if transform.share.items else ()
        options = logit or ("transform=log", "transform=auto")
        words = " and ".join(filter(None, ("transform the response", look)))
        return Cure(f"{words}; {holds}", (*options, *remedies))
    return Cure("; ".join(filter(None, (holds, look))), remedies)


def _robust(fit: Fit) -> tuple[str, ...]:
    """Return the option for robust methods, which are left out of large designs and of shared
    errors.
    """
    return ("robust",) if fit.n <= MOST_RUNS and not fit.grouped else ()


def added_columns(fit: Fit, columns: Floats) -> tuple[float, float] | None:
    """F and p of further columns after the model; None where they add nothing to it."""
    left = fit.within
    rest = columns - fit.within_basis @ (fit.within_basis.T @ columns)
    vectors, sizes, _ = np.linalg.svd(rest, full_matrices=False)
    basis = vectors[:, sizes > 1e-8 * max(float(np.linalg.norm(columns)), 1e-300)]
    rank = basis.shape[1]
    df = left.df - rank
    if rank == 0 or df < 1:
        return None
    gain = float(((basis.T @ left.values) ** 2).sum())
    f = gain / rank / max((left.ss - gain) / df, 1e-300)
    return f, float(stats.f.sf(f, rank, df))


def drift(fit: Fit) -> Check | None:
    """Linear trend over run order, tested after the model."""
    times = fit.runs.run_order
    if fit.n > MOST_RUNS or times is None:
        return None
    x = stats.rankdata(times) - (fit.n + 1) / 2
    trend = added_columns(fit, x[:, None])
    if trend is None:
        return None
    return Check(
        *("drift", *trend),
        fine="No evidence of drift over run order.",
        alarm="Results drift with run order. If data, code and machines did not change between "
        "runs, this is chance; if they did, trust effects only where runs were randomised.",
    )


def facts_of(fit: Fit) -> list[tuple[str, tuple[str, ...]]]:
    """Return what is known of the runs beside their factors: slot, host and others, by name."""
    runs = fit.runs
    apart = (*COURSE, runs.block_name)
    others = [(name, labels) for name, labels in runs.facts.items() if name not in apart]
    facts = [("slot", runs.slot), ("host", runs.host), *others]
    plots = [numbered(group.of.tolist()).tolist() for group in runs.groups]
    return [
        (name, labels)
        for name, labels in facts
        if labels is not None and numbered(labels).tolist() not in plots
    ]


def surroundings(fit: Fit, name: str, labels: tuple[str, ...], alpha: float) -> list[Check]:
    """Return whether a fact explains results after the model (F), or is confounded with a
    factor.
    """
    groups, group = np.unique(labels, return_inverse=True)
    if not 1 < len(groups) < fit.n or fit.n > MOST_RUNS:
        return []
    checks = []
    columns = (group[:, None] == np.arange(1, len(groups))).astype(np.float64)
    if (differ := added_columns(fit, columns)) is not None:
        checks.append(
            Check(
                *(name, *differ),
                fine=f"No evidence of a difference between {name}s.",
                alarm=f"Residuals differ between {name}s: compare the {name}s' logs and versions.",
            )
        )
    share, p = between_groups(fit.runs.index, group)
    confounded = (share > CONFOUNDED) & (p < alpha)
    tied = [key for key, is_tied in zip(fit.runs.keys, confounded, strict=True) if is_tied]
    checks.append(
        Check(
            *(f"{name} confounding", float(share.max()), float(p.min()) if tied else 1.0),
            fine=f"No factor is shown to be confounded with the {name}.",
            alarm=f"Factor {', '.join(tied)} is confounded with the {name}: their effects cannot "
            "be separated. Run the study again in its randomised order.",
        )
    )
    return checks


def between_groups(index: Ints, group: Ints) -> tuple[Floats, Floats]:
    """Share of each factor's variation between groups beyond that of random ones, and its p.

    The variation of levels (runs x factors) is that of one indicator per level (Light and Margolin
    1971). p is the share of random assignments to the groups with as much variation between them,
    by F where runs are many, Holm-adjusted over factors, and not looked for where no share is
    large.
    """
    sizes = np.bincount(group)
    n, groups = len(group), len(sizes)
    present = [np.unique(levels) for levels in index.T]
    columns = [lv[:, None] == at for lv, at in zip(index.T, present, strict=True)]
    indicators = np.column_stack(columns).astype(np.float64)
    centred = indicators - indicators.mean(axis=0)
    counts = np.array([len(at) for at in present])
    factor = np.repeat(np.arange(len(counts)), counts)
    own = (factor[:, None] == np.arange(len(counts))).astype(np.float64)
    total = np.maximum((centred**2).sum(axis=0) @ own, 1e-300)

    def between(assigned: Ints) -> Floats:
        sums = [(assigned == g) @ centred for g in range(groups)]
        squares = [part**2 / size for part, size in zip(sums, sizes.tolist(), strict=True)]
        return np.asarray(np.sum(squares, axis=0) @ own / total)

    observed = between(group)
    chance = (groups - 1) / max(n - 1, 1)
    share = (observed - chance) / max(1.0 - chance, 1e-9)
    if (share <= CONFOUNDED).all():
        return share, np.ones(len(share))
    if n > MANY_RUNS:
        free, df = max(n - groups, 1), counts - 1
        f = observed / (groups - 1) / (np.maximum(1.0 - observed, 1e-15) / free)
        p = np.asarray(stats.f.sf(f, df * (groups - 1), df * free))
        return share, holm(np.nan_to_num(p, nan=1.0))  # of one level alone there is none
    shuffled = np.random.default_rng(0).permuted(np.tile(group, (SHUFFLES, 1)), axis=1)
    above = (between(shuffled) >= observed - 1e-12).sum(axis=0)
    return share, holm((1.0 + above) / (1.0 + SHUFFLES))


def outliers(residuals: Sequence[Residual], fit: Fit, alpha: float) -> Check | None:
    """Runs whose externally studentized residual is significant after Bonferroni.

    The two runs of a configuration are equally far from their mean, so neither can be blamed.
    """
    if fit.within.df < 3:
        return None
    sizes = [(abs(r.studentized), r) for r in residuals if r.studentized is not None]
    if not sizes:
        return None
    largest = max(size for size, _ in sizes)
    limit = float(stats.t.isf(alpha / (2 * len(sizes)), fit.within.df - 1))
    far = [r for size, r in sorted(sizes, key=lambda s: -s[0]) if size > limit]
    p = min(1.0, float(2 * len(sizes) * stats.t.sf(largest, fit.within.df - 1)))
    return Check(
        *("outliers", largest, p),
        fine="No run is far from the others.",
        alarm=_far_text(far, residuals),
        runs=tuple(r.run_id for r in far),
    )


def _far_text(far: Sequence[Residual], residuals: Sequence[Residual]) -> str:
    by_config: dict[str, list[Residual]] = {}
    for r in residuals:
        by_config.setdefault(r.config, []).append(r)
    twins = {
        config: runs
        for config, runs in by_config.items()
        if len(runs) == 2
        and abs(runs[0].residual + runs[1].residual) < 1e-6 * abs(runs[0].residual)
    }
    single = [r.run_id for r in far if len(by_config[r.config]) == 1]
    repeated = [r.run_id for r in far if len(by_config[r.config]) > 1 and r.config not in twins]
    parts = []
    if single:
        parts.append(f"Look at {listed(single, 6)}: far from the model. {_keep(single)}")
    if repeated:
        own = "its configuration" if len(repeated) == 1 else "their configurations"
        advice = f"far from the rest of {own}. {_keep(repeated)}"
        parts.append(f"Look at {listed(repeated, 6)}: {advice}")
    for config in list(dict.fromkeys(r.config for r in far if r.config in twins))[:3]:
        first, second = twins[config]
        parts.append(
            f"Look at {first.run_id} and {second.run_id}, the two runs of {config}: they differ "
            "more than other pairs, and either may be wrong. Run the configuration once more."
        )
    return " ".join(parts)


def _keep(runs: Sequence[str]) -> str:
    return f"Do not drop {'it' if len(runs) == 1 else 'them'} for that alone."


def spread_checks(checks: Diagnostics) -> list[Finding]:
    """Checks of whether one variance holds for all configurations."""
    return [f for f in checks.findings if f.check in ("equal variance", "spread by factor")]


def shows_spread(fit: Fit) -> bool:
    """Return whether there are replicates enough for these checks to tell anything: more than
    two.
    """
    return fit.n > 2 * (int(fit.groups.max()) + 1)


def high_leverage(residuals: Sequence[Residual], fit: Fit) -> Finding | None:
    """Runs with more than twice the mean leverage, or that decide their own fit."""
    limit = min(2.0 * (fit.n - fit.within.df) / fit.n, 1.0 - 1e-9)
    runs = tuple(r.run_id for r in residuals if r.leverage > limit)
    if not runs:
        return None
    several = len(runs) > 1
    verb = "decide their own fit" if several else "decides its own fit"
    why = "replicates are missing" + " or a covariate is extreme" * bool(len(fit.model.adjusting))
    advice = (
        f"{listed(runs, 6)} {verb} ({why}): repeat "
        f"{'their configurations' if several else 'its configuration'}."
    )
    return Finding("leverage", False, max(r.leverage for r in residuals), None, advice, runs)


def _box_cox_check(profile: BoxCox) -> Check:
    bounds = " to ".join(cell_text(bound, "fixed2") for bound in (profile.low, profile.high))
    span = f"λ = {cell_text(profile.exponent, 'fixed2')} ({bounds})"
    return Check(
        *("box-cox", profile.exponent, profile.p_none),
        fine=f"Box-Cox {span}: no transformation needed.",
        alarm=f"Box-Cox {span} suggests "
        + ("logarithms." if profile.suggestion == "log" else "a power transformation."),
        remedies=(f"transform={profile.suggestion}",),
    )
