"""Where variation comes from: the share of each stream of seeds, where replicates share seeds.

The run of configuration c in replicate r is ``y_cr = μ_c + sum_s (a_s + b_cs) + e_cr``: each seed
of stream s moves all configurations alike by ``a_s`` and each by a ``b_cs`` of its own. What the
streams do together, and what no seed fixes, is ``e``. A stream with a seed of its own in every
replicate is part of ``e`` and stands for it.

Sums of squares are taken one stream after the other, the one with the fewest seeds first, of the
mean over configurations and of the deviations from it. Their expectations are linear in the
variances and triangular, so that the ANOVA estimates follow by elimination. These are those of
restricted maximum likelihood where seeds cross completely or are nested; of other crossings the
likelihood itself is maximised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from msgspec import Struct

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.reml import Reml, reml
from doe.numbers import share_text

DRAWS = 10_000
"""Draws of the generalised pivotal quantities that intervals are quantiles of."""
TAILS = 0.2
"""Share of alpha that the quantiles leave out. With all of it the share of the rest beside three
streams of two seeds would be covered in 0.86 of studies, 0.78 with log-normal errors."""
REST = "rest"
"""What no stream explains alone."""


@dataclass(frozen=True)
class Seeding:
    """Seeds of the runs, by stream."""

    streams: tuple[str, ...]
    replicate: Ints  # of each run, from 0
    seeds: Ints  # streams x runs, the numbers of the seeds

    def of(self, kept: Ints) -> Seeding:
        """Return the streams of some runs."""
        return Seeding(self.streams, self.replicate[kept], self.seeds[:, kept])

    @property
    def shared(self) -> bool:
        """Whether some replicates share a seed."""
        replicates = len(np.unique(self.replicate))
        return any(len(np.unique(seeds)) < replicates for seeds in self.seeds)


class Component(Struct, frozen=True):
    """Contribution of one stream to the variance of a configuration's runs."""

    stream: str
    seeds: int
    variance: float
    variance_low: float
    variance_high: float
    common: float  # the part of it that moves all configurations alike
    share: float
    share_low: float
    share_high: float

    @property
    def name(self) -> str:
        """The stream, or what the rest is."""
        return "what no stream explains alone" if self.stream == REST else self.stream


class Variation(Struct, frozen=True):
    """The variance of a configuration's runs, by stream of seeds."""

    components: tuple[Component, ...]
    configurations: int  # those with a value in every replicate
    replicates: int
    sentence: str


@dataclass(frozen=True)
class StreamDecomposition:
    """The replicates split by their streams: orthogonal parts, one per stream, then the rest.

    A quadratic form ``y'Qy / tr(Q)`` of part j has the expectation ``sum_s expected[j, s] θ_s``.
    """

    streams: tuple[str, ...]
    seeds: tuple[int, ...]  # how many each has; those of the rest are the replicates
    bases: tuple[Floats, ...]  # replicates x degrees of freedom
    expected: Floats  # parts x streams, upper triangular
    shared: Floats  # how much more the mean of all replicates varies than it would unshared
    labels: Ints  # streams but the last x replicates, the seeds numbered from 0
    complete: bool  # seeds as often as others of their stream, streams crossed or nested

    @property
    def df(self) -> Ints:
        """Degrees of freedom of each part in one series of replicates."""
        return np.array([basis.shape[1] for basis in self.bases], dtype=np.int64)

    def squares(self, y: Floats) -> Floats:
        """Sums of squares of the parts over all rows of series x replicates."""
        return np.array([float(((y @ basis) ** 2).sum()) for basis in self.bases])

    def variances(self, mean_squares: Floats) -> Floats:
        """Return the ANOVA estimates, of parts x anything."""
        return np.asarray(np.linalg.solve(self.expected, mean_squares), dtype=np.float64)

    def likeliest(self, y: Floats) -> Reml:
        """Restricted maximum likelihood of series x replicates, each series with its own mean."""
        rows, replicates = y.shape
        own = np.repeat(np.arange(rows), replicates)
        groups = [own * (int(seed.max()) + 1) + np.tile(seed, rows) for seed in self.labels]
        return reml(np.eye(rows)[own], y.ravel(), groups)

    def estimated(self, y: Floats) -> Floats:
        """Variance of each stream from series x replicates, as many as there are contrasts of."""
        if self.complete:
            return self.variances(self.squares(y) / (self.df * len(y)))
        return self.likeliest(y).variances


def decompose(names: tuple[str, ...], labels: Ints) -> StreamDecomposition:
    """Split replicates by the seeds (streams x replicates) that they have."""
    replicates = labels.shape[1]
    labels = np.array([np.unique(seeds, return_inverse=True)[1] for seeds in labels], np.int64)
    counts = [len(np.unique(column)) for column in labels]
    order = sorted(range(len(names)), key=lambda s: counts[s])
    last = REST
    if order and counts[order[-1]] == replicates:
        last = names[order.pop()]
    sharing = [(labels[s][:, None] == labels[s]).astype(np.float64) for s in order]
    sharing.append(np.eye(replicates))
    before = np.full((replicates, 1), replicates**-0.5)  # what the mean and former streams span
    bases = []
    for matrix in sharing:
        vectors, sizes, _ = np.linalg.svd(matrix - before @ (before.T @ matrix))
        basis = vectors[:, sizes > 1e-9 * replicates]
        bases.append(basis)
        before = np.column_stack([before, basis])
    counts_alike = all(len(set(np.bincount(s).tolist())) == 1 for s in labels[order])
    commute = all(np.allclose(a @ b, b @ a) for a in sharing for b in sharing)
    expected = np.array(
        [[np.trace(b.T @ matrix @ b) / max(b.shape[1], 1) for matrix in sharing] for b in bases]
    )
    return StreamDecomposition(
        streams=(*(names[s] for s in order), last),
        seeds=(*(counts[s] for s in order), replicates),
        bases=tuple(bases),
        expected=np.triu(expected),
        shared=np.array([matrix.sum() / replicates for matrix in sharing]),
        labels=labels[order],
        complete=counts_alike and commute,
    )


def series(
    y: Floats, cells: Ints, seeding: Seeding | None
) -> tuple[Floats, StreamDecomposition] | None:
    """Configurations x replicates, of those with one value in each, and how seeds split these.

    None where there are no streams of seeds, or too few runs to separate them.
    """
    if seeding is None:
        return None
    rows = np.unique(cells, return_inverse=True)[1]
    replicates, columns = np.unique(seeding.replicate, return_inverse=True)
    table = np.full((rows.max() + 1, len(replicates)), np.nan)
    table[rows, columns] = y
    first = np.array([int(np.argmax(columns == r)) for r in range(len(replicates))])
    split = decompose(seeding.streams, seeding.seeds[:, first])
    whole = table[~np.isnan(table).any(axis=1)]
    return (whole, split) if len(whole) > 1 and split.df.min() > 0 else None


class SeedErrorTerm(NamedTuple):
    """The error of means over replicates that share seeds."""

    ms: float  # mean square that effects are tested against
    df: float
    single: float  # variance of one run among those of its replicate

    @property
    def integer_df(self) -> int:
        """Whole degrees of freedom, at least one."""
        return max(int(self.df), 1)


def seed_error(y: Floats, cells: Ints, seeding: Seeding | None) -> SeedErrorTerm | None:
    """Return what effects are tested against where seeds are shared.

    An effect is a mean over replicates. Replicates that share a seed of stream s are correlated,
    so its variance is that of ``sum_s n_s θ_s`` instead of one run's, with the variances ``θ_s``
    of the deviations from the replicates' means and ``n_s = sum_v n_sv² / R`` for seeds v in n_sv
    of R replicates. A variance below zero counts as none. Degrees of freedom are Satterthwaite's.
    """
    tabulated = series(y, cells, seeding)
    if tabulated is None:
        return None
    table, split = tabulated
    return combined(split, contrasts_of(table))


def contrasts_of(table: Floats) -> Floats:
    """Orthonormal contrasts of configurations x replicates: one row less, independent of the mean.

    Helmert's: each configuration against the mean of those before it.
    """
    i = np.arange(1.0, len(table))[:, None]
    before = np.cumsum(table, axis=0)[:-1]
    return np.asarray((table[1:] - before / i) * np.sqrt(i / (i + 1.0)))


def combined(split: StreamDecomposition, y: Floats) -> SeedErrorTerm:
    """``sum_s n_s θ_s`` from contrasts of configurations x replicates.

    A stream without a variance joins the rest. Degrees of freedom from a likelihood are
    ``2 (n'θ)² / n'Wn`` with the covariance W of the variances.
    """
    if not split.complete:
        fitted = split.likeliest(y)
        covariance = np.linalg.inv(fitted.information(expected=True))
        ms = float(split.shared @ fitted.variances)
        freedom = 2.0 * ms**2 / float(split.shared @ covariance @ split.shared)
        return SeedErrorTerm(ms, freedom, float(fitted.variances.sum()))
    squares, df = split.squares(y), split.df * len(y)
    kept = split.variances(squares / df) > 0.0
    kept[-1] = True
    joined = ~kept
    joined[-1] = True
    free = np.append(df[kept][:-1], df[joined].sum())
    mean_squares = np.append(squares[kept][:-1], squares[joined].sum()) / free
    expected = split.expected[np.ix_(kept, kept)]
    parts = np.linalg.solve(expected.T, split.shared[kept]) * mean_squares
    ms = float(parts.sum())
    single = float(np.maximum(np.linalg.solve(expected, mean_squares), 0.0).sum())
    return SeedErrorTerm(ms, float(ms**2 / (parts**2 / free).sum()) if ms > 0.0 else 1.0, single)


def variation(
    y: Floats,
    cells: Ints,
    seeding: Seeding | None,
    alpha: float,
    seed: int,
    square: float = 1.0,
) -> Variation | None:
    """Return the variance of a configuration's runs by stream, with intervals.

    `square` takes variances of y to those that are shown.

    A stream's variance is ``a_s + b_s``: what moves all configurations alike, from the mean over
    configurations, and what does not, from the deviations. Intervals are quantiles of generalised
    pivotal quantities (Weerahandi 1993): each sum of squares over a draw of its χ², taken through
    the same equations, and no variance below zero.
    """
    tabulated = series(y, cells, seeding)
    if seeding is None or tabulated is None:
        return None
    table, split = tabulated
    estimated, common = stream_variances(table, split)
    if estimated.sum() <= 0.0:
        return None
    drawn = pivotal_draws(table, split, np.random.default_rng(seed))
    total = drawn.sum(axis=0)
    shares = np.divide(drawn, total, out=np.zeros_like(drawn), where=total > 0.0)
    tail = TAILS * alpha / 2.0
    tails = [tail, 1.0 - tail]
    low, high = _holding(np.quantile(drawn, tails, axis=1), estimated)
    share = estimated / estimated.sum()
    share_low, share_high = _holding(np.quantile(shares, tails, axis=1), share)
    variances = (square * part for part in (estimated, low, high, common))
    columns = (*variances, share, share_low, share_high)
    components = [
        Component(stream, seeds, *map(float, line))
        for stream, seeds, line in zip(
            split.streams, split.seeds, zip(*columns, strict=True), strict=True
        )
    ]
    names = (*seeding.streams, REST)
    components.sort(key=lambda component: names.index(component.stream))
    configurations, replicates = table.shape
    return Variation(tuple(components), configurations, replicates, _sentence(components))


def _holding(ends: Floats, value: Floats) -> tuple[Floats, Floats]:
    """Ends of intervals that hold an estimate, which the likelihood may put elsewhere."""
    return np.minimum(ends[0], value), np.maximum(ends[1], value)


def stream_variances(table: Floats, split: StreamDecomposition) -> tuple[Floats, Floats]:
    """Variance by stream of configurations x replicates, and the part common to all; at least 0."""
    configurations = len(table)
    whole = split.estimated(table.mean(axis=0)[None])  # a + b / configurations
    own = split.estimated(contrasts_of(table)) if configurations > 1 else np.zeros_like(whole)
    estimated = np.maximum(whole + own * (configurations - 1) / configurations, 0.0)
    return estimated, np.clip(whole - own / configurations, 0.0, estimated)


def pivotal_draws(table: Floats, split: StreamDecomposition, rng: np.random.Generator) -> Floats:
    """Draws of the variance by stream, streams x draws.

    Deviations have Satterthwaite's degrees of freedom from the configurations' own sums of squares
    ``S_c``, ``(sum S_c)² / sum(S_c² / df)``: fewer where a few configurations carry the variance.
    """
    configurations = len(table)
    mean = table.mean(axis=0)

    def drawn(mean_squares: Floats, df: Floats) -> Floats:
        return (mean_squares * df)[:, None] / rng.chisquare(df[:, None], (len(df), DRAWS))

    whole = split.variances(drawn(split.squares(mean[None]) / split.df, split.df.astype(float)))
    if configurations == 1:
        return np.maximum(whole, 0.0)
    squares = np.array([(((table - mean) @ basis) ** 2).sum(axis=1) for basis in split.bases])
    left = (configurations - 1) / configurations
    total = np.maximum(squares.sum(axis=1), np.finfo(np.float64).tiny)
    df = left * total**2 / np.maximum((squares**2).sum(axis=1) / split.df, total**2 * 1e-12)
    within = drawn(total / (split.df * (configurations - 1)), df)
    return np.maximum(whole + split.variances(within) * left, 0.0)


def _sentence(components: Sequence[Component]) -> str:
    parts = [
        f"{c.name} {share_text(c.share)} ({share_text(c.share_low)} to {share_text(c.share_high)})"
        for c in sorted(components, key=lambda c: -c.share)
    ]
    return f"Of the variance between runs of one configuration: {', '.join(parts)}."
