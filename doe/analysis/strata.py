"""Errors of strata: runs share whole plots, data sets or seeds, and each of these has an error.

``y = X b + sum_k Z_k u_k + e`` with random groups k. In a balanced design the partitions of the
runs into groups commute; with the joins of any two of them they split the space of the runs into
strata (Tjur 1984), each with a mean square of its own: R's ``aov(y ~ A*B + Error(plot))``. Least
squares is then the generalised estimate whatever the variances. All other designs are fitted by
restricted maximum likelihood, with Kenward and Roger's degrees of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
import scipy
from msgspec import Struct, structs

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import RandomGroup, Runs, numbered
from doe.analysis.model import BLOCK, Model
from doe.analysis.pvalues import f_upper
from doe.analysis.reml import FixedTest, Reml, planned, reml
from doe.errors import plural
from doe.terms import MEAN, term_name

RUN = "run"
"""Name of the last stratum: single runs within all groups."""
MOST_PARTITIONS = 64
"""Partitions with their joins up to which strata are told apart."""
MOST_GROUPS = 400
"""Columns of random groups up to which a model is fitted by maximum likelihood."""
NEAR = 1e-8


class Stratum(Struct, frozen=True, omit_defaults=True):
    """One error: what it is of, and what estimates it."""

    name: str  # whole plot, run, or what the groups share
    groups: int
    terms: tuple[str, ...]  # tested against it
    df: float | None  # None where the variances come from the likelihood
    ms: float | None  # None where nothing is left to estimate it
    variance: float | None  # the component of the groups
    lacking: bool = False  # whether its terms have no error to be tested against


class Errors(Protocol):
    """Variances of linear functions of the coefficients, of u; rows have the fitted columns."""

    @property
    def coef(self) -> Floats:
        """Estimates of the coefficients."""

    @property
    def covariance(self) -> Floats:
        """Their covariance."""

    def of(self, rows: Floats) -> tuple[Floats, Floats]:
        """Standard errors of single functions and their degrees of freedom."""

    def test(self, rows: Floats) -> FixedTest:
        """F test that all functions are zero."""


@dataclass(frozen=True)
class Strata:
    """The errors of a fitted model, the coarsest stratum first and that of single runs last."""

    method: str  # "analysis of variance" or "REML"
    lines: tuple[Stratum, ...]  # of u
    names: dict[int, str]  # source -> name of the error it is tested against
    errors: Errors
    unknown: Floats  # columns: what moves the coefficients and no error estimates
    group_part: Floats  # of each run, what its groups add to the fitted value
    ss_run: float
    df_run: int

    def lacks(self, rows: Floats) -> np.ndarray:
        """Return which functions of the fitted coefficients have no error."""
        if self.df_run == 0:
            return np.ones(len(rows), dtype=bool)
        size = np.abs(rows).max(axis=1, initial=0.0) + 1e-300
        moved = np.abs(rows @ self.unknown).max(axis=1, initial=0.0)
        return np.asarray(moved > NEAR * size)

    def of(self, rows: Floats) -> tuple[Floats, Floats]:
        """Standard errors, of u, and degrees of freedom; NaN where there is no error."""
        if self.df_run == 0:
            nothing = np.full(len(rows), np.nan)
            return nothing, nothing
        se, df = self.errors.of(rows)
        lacking = self.lacks(rows)
        return np.where(lacking, np.nan, se), np.where(lacking, np.nan, df)

    def test(self, rows: Floats) -> FixedTest | None:
        """F test that all functions are zero; None where there is no error."""
        if len(rows) == 0 or self.lacks(rows).any():
            return None
        return self.errors.test(rows)

    @property
    def without_error(self) -> tuple[Stratum, ...]:
        """Strata whose terms cannot be tested."""
        return tuple(line for line in self.lines if line.lacking and line.terms)


class StrataReport(Struct, frozen=True):
    """The errors of a response, for all to see."""

    method: str
    strata: tuple[Stratum, ...]  # the coarsest first, single runs last
    sentence: str


def strata_report(strata: Strata | None, square: float) -> StrataReport | None:
    """Return the errors on the scale of the response; None where there is but one."""
    if strata is None:
        return None

    def scaled(value: float | None) -> float | None:
        return None if value is None else value * square

    lines = tuple(
        structs.replace(line, ms=scaled(line.ms), variance=scaled(line.variance))
        for line in strata.lines
    )
    by = "mean squares of balanced groups, as R's aov with Error() has them"
    if strata.method == "REML":
        by = "restricted maximum likelihood, degrees of freedom by Kenward and Roger"
    sentence = f"Each test is against the error of its stratum: {by}."
    if strata.without_error:
        sentence += " Where a stratum has no error, p is Lenth's, of its own contrasts, or missing."
    return StrataReport(strata.method, lines, sentence)


def strata_warnings(strata: Strata) -> list[str]:
    """Return which terms have no error, and what would give them one."""
    warnings = []
    for line in (line for line in strata.without_error if line.name != RUN):
        one = len(line.terms) == 1
        varies, it, its = ("varies", "it", "its") if one else ("vary", "them", "their")
        warnings.append(
            f"{', '.join(line.terms)} {varies} only between {plural(line.name)}, and {line.groups} "
            f"of these leave no error to test {it} against: more than one {line.name} for each of "
            f"{its} levels would. The error of single runs is the wrong one."
        )
    return warnings


# Which groups -----------------------------------------------------------------------------------


def drawn_groups(model: Model) -> list[RandomGroup]:
    """Return what each replicate draws anew: whole plots, a random condition with its terms.

    An effect may differ from one level of a random condition to the next, so that each term of the
    model has groups: its levels within each of the condition's.
    """
    runs = model.runs
    groups = list(runs.groups)
    for i, factor in enumerate(runs.factors):
        if not factor.random:
            continue
        groups.append(RandomGroup(factor.key, numbered(runs.index[:, i].tolist())))
        for term in sorted(model.terms, key=lambda term: term.bit_count()):
            own = [i, *(j for j in range(len(runs.factors)) if term >> j & 1)]
            cells = numbered(map(tuple, runs.index[:, own].tolist()))
            groups.append(RandomGroup(f"{factor.key} × {term_name(term, runs.keys)}", cells))
    return groups


def random_groups(model: Model) -> list[RandomGroup]:
    """Return the random groups of a model's runs, each once, that blocks do not take up."""
    runs = model.runs
    groups = [*drawn_groups(model), *_shared_seeds(runs)]
    kept: list[RandomGroup] = []
    block = [0] * runs.count if runs.block is None else runs.block.tolist()
    blocks = len(set(block))
    for group in groups:
        if len(set(zip(block, group.of.tolist(), strict=True))) == blocks:
            continue  # blocks take it up
        known = (numbered(other.of.tolist()) for other in kept)
        mine = numbered(group.of.tolist())
        if 1 < mine.max(initial=0) + 1 < runs.count and not any((mine == o).all() for o in known):
            kept.append(RandomGroup(group.name, mine))
    return kept


def _shared_seeds(runs: Runs) -> list[RandomGroup]:
    """Return each configuration with each seed of a stream, where replicates share seeds unevenly.

    Where every configuration has every replicate, `streams` says what effects are tested against.
    """
    seeding, cells = runs.seeding, numbered(runs.combinations.tolist())
    if seeding is None or not seeding.shared:
        return []
    configurations, replicates = int(cells.max()) + 1, len(np.unique(seeding.replicate))
    if runs.count == configurations * replicates and not runs.groups:
        return []
    groups = [
        RandomGroup(f"configuration × {name}", numbered(zip(cells.tolist(), seeds, strict=True)))
        for name, seeds in zip(seeding.streams, seeding.seeds.tolist(), strict=True)
        if len(set(seeds)) < replicates
    ]
    return groups if sum(int(g.of.max()) + 1 for g in groups) <= MOST_GROUPS else []


def strata_of(
    model: Model, u: Floats, groups: Sequence[RandomGroup], rounding: float = 0.0
) -> Strata:
    """Fit the errors of all strata to the values of a model's runs.

    A group whose differences the fixed terms take up has no error: with one whole plot per level
    nothing tells the plot from the level. Nor has one whose differences are `rounding` alone.
    """
    X = model.fitted_columns
    basis, R = scipy.linalg.qr(X, mode="economic")
    Q = np.asarray(basis, np.float64)
    maps = np.asarray(scipy.linalg.solve_triangular(R, Q.T))
    indicators = [np.eye(int(g.of.max()) + 1)[g.of] for g in groups]
    residual = u - Q @ (Q.T @ u)
    none = len(u) * rounding**2
    taken = [
        bool(np.linalg.norm(Z - Q @ (Q.T @ Z)) < NEAR * np.linalg.norm(Z))
        or float((_averaged(g.of, residual[:, None]) ** 2).sum()) <= none
        for g, Z in zip(groups, indicators, strict=True)
    ]
    every = np.column_stack([X, *indicators])
    df_run = len(u) - int(np.linalg.matrix_rank(every))
    unknown = [maps @ Z for Z, lost in zip(indicators, taken, strict=True) if lost]
    columns = np.column_stack(unknown) if unknown else np.empty((X.shape[1], 0))
    names = _error_names(model, Q, groups)
    left = [g for g, lost in zip(groups, taken, strict=True) if not lost]
    parts = _tjur(groups, len(u))
    found = None if parts is None else _balanced(model, Q, maps, u, parts, none)
    several = sum(int(g.of.max()) + 1 for g in left) <= MOST_GROUPS
    if found is None and df_run > 0 and left and several:
        errors, lines, part = _by_likelihood(model, u, left)
        lines = _with_lost(lines, groups, names, model)
        rest = u - X @ errors.coef - part
        return Strata("REML", lines, names, errors, columns, part, float(rest @ rest), df_run)
    if found is not None:
        names = found.names
        columns = np.column_stack([columns, found.unknown])
    else:  # single runs alone have an error, and what varies between groups has none
        found = _balanced(model, Q, maps, u, [_Partition(RUN, np.arange(len(u)))])
        assert found is not None
        columns = np.column_stack([columns, *(maps @ Z for Z in indicators)])
    lines = _with_lost(found.lines, groups, names, model)
    return Strata(
        "analysis of variance",
        lines,
        names,
        found.errors,
        columns,
        found.group_part,
        found.ss_run,
        df_run,
    )


def _error_names(model: Model, Q: Floats, groups: Sequence[RandomGroup]) -> dict[int, str]:
    """Source -> the coarsest groups within which its columns hardly vary, else single runs."""
    ordered = sorted(groups, key=lambda group: int(group.of.max()))
    source = model.fitted_source
    names = {}
    for own in dict.fromkeys(source.tolist()):
        columns = Q[:, source == own]  # of length 1 each
        between = ((g.name, (_averaged(g.of, columns) ** 2).sum()) for g in ordered)
        close = [name for name, share in between if share > columns.shape[1] / 2]
        if own not in (MEAN, BLOCK):
            names[own] = close[0] if close else RUN
    return names


def _with_lost(
    lines: Sequence[Stratum], groups: Sequence[RandomGroup], names: dict[int, str], model: Model
) -> tuple[Stratum, ...]:
    """Return the strata with their terms, those first of which nothing is left for an error."""
    known = {line.name for line in lines}
    lost = [
        Stratum(group.name, int(group.of.max()) + 1, (), 0.0, None, None, lacking=True)
        for group in groups
        if group.name not in known and group.name in names.values()
    ]
    return tuple(
        structs.replace(
            line, terms=tuple(model.name(s) for s, name in names.items() if name == line.name)
        )
        for line in (*lost, *lines)
    )


class PlannedError(NamedTuple):
    """Error that a term will be tested against, before anything runs."""

    term: str
    stratum: str
    groups: int  # in that stratum; runs in the last one
    df_error: float | None  # None where there will be no error
    inflation: float  # its variance over that where groups do not vary


def planned_errors(model: Model) -> tuple[PlannedError, ...]:
    """Return the error of every term, where the groups vary as much as runs."""
    groups = random_groups(model)
    if not groups:
        return ()
    X = model.fitted_columns
    blank = strata_of(model, np.random.default_rng(0).normal(size=len(X)), groups)
    counts = {RUN: len(X)} | {group.name: int(group.of.max()) + 1 for group in groups}
    known = {line.name for line in blank.lines if not line.lacking}
    left = [group for group in groups if group.name in known] or groups
    fitted = planned(X, [group.of for group in left], np.ones(len(left)))
    plain = np.linalg.inv(X.T @ X)
    found = []
    for source, name in blank.names.items():
        rows = np.eye(X.shape[1])[model.columns(source)]
        test = blank.test(rows)
        df = test.df_error if test is not None and blank.method != "REML" else None
        if test is not None and df is None:
            df = fitted.test(rows).df_error
        inflation = np.trace(rows @ fitted.covariance @ rows.T) / np.trace(rows @ plain @ rows.T)
        count = counts.get(name, len(X))
        found.append(PlannedError(model.name(source), name, count, df, float(inflation)))
    return tuple(found)


# Balanced designs --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Partition:
    """Runs in groups of equal size."""

    name: str
    of: Ints
    joined: bool = False  # made of others, to close them under joins

    @property
    def count(self) -> int:
        """Number of groups."""
        return int(self.of.max()) + 1


def _averaged(group: Ints, columns: Floats) -> Floats:
    """Columns with every value replaced by the mean over its group."""
    sums = np.zeros((int(group.max()) + 1, columns.shape[1]))
    np.add.at(sums, group, columns)
    return np.asarray((sums / np.bincount(group)[:, None])[group])


def _tjur(groups: Sequence[RandomGroup], n: int) -> list[_Partition] | None:
    """Return the partitions with all joins, the coarsest first and single runs last.

    None where groups differ in size or two partitions do not commute.
    """
    parts = [_Partition(group.name, group.of) for group in groups]
    for second in parts:  # grows while it is gone through
        for first in parts:
            joined = _joined(first, second)
            if joined is None or len(parts) > MOST_PARTITIONS:
                return None
            if not any((joined == other.of).all() for other in parts):
                name = f"common to {first.name} and {second.name}"
                parts.append(_Partition(name, joined, joined=True))
    parts.append(_Partition(RUN, np.arange(n)))
    sizes = (np.bincount(part.of) for part in parts)
    if any(size.min() != size.max() for size in sizes):
        return None
    return sorted(parts, key=lambda part: part.count)


def _joined(first: _Partition, second: _Partition) -> Ints | None:
    """Return the finest partition coarser than both; None where their projections do not
    commute.
    """
    table = np.zeros((first.count, second.count), np.int64)
    np.add.at(table, (first.of, second.of), 1)
    link = scipy.sparse.csgraph.connected_components
    square = np.block(
        [[np.zeros((first.count,) * 2), table], [table.T, np.zeros((second.count,) * 2)]]
    )
    label = link(square, directed=False)[1]
    joined = numbered(label[first.of].tolist())
    of_row = joined[np.unique(first.of, return_index=True)[1]]
    of_column = joined[np.unique(second.of, return_index=True)[1]]
    together = of_row[:, None] == of_column[None, :]
    product = np.outer(table.sum(axis=1), table.sum(axis=0))
    expected = product / np.bincount(joined)[of_row][:, None] * together
    return joined if np.abs(table - expected).max() < NEAR else None


def _coarser(part: _Partition, than: _Partition) -> bool:
    """Return whether every group of `than` lies in one group of a partition with fewer groups."""
    if part.count >= than.count:
        return False
    first = np.unique(than.of, return_index=True)[1]
    return bool((part.of[first][than.of] == part.of).all())


class _MeanSquares(NamedTuple):
    """Errors of a balanced design: a mean square for each stratum."""

    coef: Floats
    parts: Floats  # strata x columns x columns: M S M' with M from values to coefficients
    ms: Floats  # 0 where nothing is left
    df: Floats

    @property
    def covariance(self) -> Floats:
        return np.asarray(np.tensordot(self.ms, self.parts, 1))

    def of(self, rows: Floats) -> tuple[Floats, Floats]:
        """Return the degrees of freedom, Satterthwaite's where a function has parts in several
        strata.
        """
        own = np.array([((rows @ part) * rows).sum(axis=1) for part in self.parts])
        own = self.ms[:, None] * np.where(own > 1e-12 * own.sum(axis=0), own, 0.0)
        total = own.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            df = total**2 / (own**2 / np.maximum(self.df, NEAR)[:, None]).sum(axis=0)
        return np.sqrt(total), df

    def test(self, rows: Floats) -> FixedTest:
        """Against the one stratum that the functions lie in."""
        value = rows @ self.coef
        at = int(np.argmax([np.trace(rows @ part @ rows.T) for part in self.parts]))
        plain = rows @ self.parts.sum(axis=0) @ rows.T
        with np.errstate(divide="ignore"):
            f = float(value @ np.linalg.solve(plain, value) / len(rows) / self.ms[at])
        df = float(self.df[at])
        return FixedTest(f, len(rows), df, float(f_upper(np.array(f), len(rows), df)))


class _Balanced(NamedTuple):
    errors: _MeanSquares
    lines: tuple[Stratum, ...]
    names: dict[int, str]
    unknown: Floats
    group_part: Floats
    ss_run: float


def _balanced(
    model: Model,
    Q: Floats,
    maps: Floats,
    u: Floats,
    parts: Sequence[_Partition],
    none: float = -1.0,
) -> _Balanced | None:
    """Return a mean square for each stratum; None where some term lies in several of them.

    The projection on a stratum is that on its partition less those on all coarser strata. A sum of
    squares up to `none` is rounding.
    """
    p, source = Q.shape[1], model.fitted_source
    terms = [s for s in dict.fromkeys(source.tolist()) if s not in (MEAN, BLOCK)]
    both = np.column_stack([Q, maps.T, u - Q @ (Q.T @ u)])
    projected: list[Floats] = []
    dims: list[int] = []
    figures: list[tuple[Floats, float, float]] = []
    lines: list[tuple[_Partition, Stratum]] = []
    names: dict[int, str] = {}
    unknown = [np.empty((p, 0))]
    for part in parts:
        below = [j for j, other in enumerate(parts) if _coarser(other, part)]
        own = _averaged(part.of, both) - sum((projected[j] for j in below), np.zeros_like(both))
        projected.append(own)
        dims.append(part.count - sum(dims[j] for j in below))
        inside, weights, residual = own[:, :p], own[:, p:-1], own[:, -1]
        share = (weights**2).sum(axis=0) / (maps**2).sum(axis=1)
        tested = [s for s in terms if share[source == s].max() > 1e-9]
        df = dims[-1] - round(float((inside**2).sum()))
        whole = all(share[source == s].min() > 1.0 - 1e-9 for s in tested)
        if np.linalg.norm(inside - Q @ (Q.T @ inside)) > 1e-7 or not whole:
            return None
        if part.joined and df < 1 and (tested or not model.df(BLOCK)):
            return None  # its error is made up of others
        names |= dict.fromkeys(tested, part.name)
        if part.name != RUN and float(residual @ residual) <= none:
            df = 0
        if df < 1 and tested:
            unknown.append(weights.T)
        ms = float(residual @ residual) / df if df > 0 else None
        figures.append((weights.T @ weights, ms or 0.0, float(df)))
        if df > 0 or tested:
            line = Stratum(part.name, part.count, (), float(df), ms, None, lacking=df < 1)
            lines.append((part, line))
    covariances, ms_all, df_all = zip(*figures, strict=True)
    errors = _MeanSquares(maps @ u, np.array(covariances), np.array(ms_all), np.array(df_all))
    last = projected[-1][:, -1]
    return _Balanced(
        errors,
        _with_variances(lines, len(u)),
        names,
        np.column_stack(unknown),
        both[:, -1] - last,
        float(last @ last),
    )


def _with_variances(lines: Sequence[tuple[_Partition, Stratum]], n: int) -> tuple[Stratum, ...]:
    """Components by ``E(MS) = sum of size × variance`` over the groups of a stratum and finer."""
    known: list[tuple[_Partition, float]] = []
    shown = []
    for part, line in reversed(lines):
        if line.ms is not None:
            finer = sum(n / other.count * value for other, value in known if _coarser(part, other))
            known.append((part, (line.ms - finer) * part.count / n))
            line = structs.replace(line, variance=max(0.0, known[-1][1]))
        shown.append(line)
    return tuple(reversed(shown))


# All others --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _KenwardRoger:
    """Errors by restricted maximum likelihood."""

    fitted: Reml

    @property
    def coef(self) -> Floats:
        return self.fitted.coef

    @property
    def covariance(self) -> Floats:
        return self.fitted.adjusted

    def of(self, rows: Floats) -> tuple[Floats, Floats]:
        return self.fitted.single(rows)

    def test(self, rows: Floats) -> FixedTest:
        return self.fitted.test(rows)


def _by_likelihood(
    model: Model, u: Floats, groups: Sequence[RandomGroup]
) -> tuple[_KenwardRoger, tuple[Stratum, ...], Floats]:
    """Errors, strata and what groups add to each run."""
    fitted = reml(model.fitted_columns, u, [group.of for group in groups])
    found = [*((g.name, int(g.of.max()) + 1) for g in groups), (RUN, len(u))]
    lines = []
    for (name, count), variance in zip(found, fitted.variances.tolist(), strict=True):
        lines.append(Stratum(name, count, (), None, None, variance))
    added = fitted.variances[fitted.groups] * fitted.zpy
    columns = np.cumsum([0, *fitted.sizes[:-1]])
    part = sum((added[g.of + at] for g, at in zip(groups, columns, strict=True)), np.zeros(len(u)))
    return _KenwardRoger(fitted), tuple(lines), part
