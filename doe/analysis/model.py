"""The model: which terms, which of their columns the runs can estimate, and their degrees of
freedom.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, NamedTuple

import numpy as np
from msgspec import structs
from numpy.typing import NDArray

from doe.analysis.coding import (
    AVERAGED,
    column_labels,
    columns_at,
    contrast_means,
    run_columns,
    term_columns,
    term_width,
)
from doe.analysis.contrasts import (
    MOST_COLUMNS,
    Floats,
    Ints,
    balanced,
    block_contrasts,
    independent,
    sign_columns,
)
from doe.analysis.dataset import NEAR_MIDDLE, OFF, Runs
from doe.errors import DoeError
from doe.terms import (
    FACTORS,
    MEAN,
    SQUARE,
    by_order,
    factors_in,
    is_squared,
    model_order,
    parse_term,
    parts_of,
    single_letters,
    squared,
    term_name,
    terms_of_order,
    terms_up_to,
)

BLOCK = -1
CURVATURE = -2
COVARIATE = -3
"""The first covariate; further ones count down from it."""
SOURCES = {BLOCK: "Block", CURVATURE: "Curvature"}
NONE: Ints = np.empty(0, dtype=np.int64)
NAMED = {"linear": 1, "interactions": 2, "quadratic": 0}
"""Models by their names -> highest interaction; 0 for interactions of two and squares."""
EVERY_ORDER = 12
"""Two-level factors up to which interactions of every order are tried."""


class Alias(NamedTuple):
    """Term that the runs cannot separate from another one."""

    term: int
    sign: int  # -1 where the two columns have opposite signs


@dataclass(frozen=True)
class Model:
    """Columns of the mean, the blocks, the covariates, the terms by rising order, the curvature.

    Covariates are counted from their mean, so that level means are those of an average run.

    A term of which nothing can be estimated is left out and taken to be zero. A column of another
    term that lies in the span of earlier ones is not fitted: its coefficient is taken to be zero,
    and what depends on that choice is not estimable.
    """

    runs: Runs
    terms: tuple[int, ...]  # by rising order
    source: NDArray[Any]  # of each column: MEAN, BLOCK, COVARIATE, a term, CURVATURE
    fitted: NDArray[np.bool_]
    null: Floats  # fitted columns x others: the others as sums of the fitted ones
    solved_by_transform: bool = False  # two levels, each cell as often as all others in each block
    aliases: dict[int, tuple[Alias, ...]] = field(default_factory=dict)
    with_blocks: tuple[int, ...] = ()  # terms confounded with blocks
    inestimable: tuple[int, ...] = ()  # terms that the runs say nothing of
    broken: tuple[tuple[int, tuple[int, ...]], ...] = ()  # term -> its parts that are left out

    @property
    def rank(self) -> int:
        """Number of coefficients that the runs can estimate."""
        return int(self.fitted.sum())

    @property
    def full_rank(self) -> bool:
        """Whether everything of every term can be estimated."""
        return bool(self.fitted.all())

    @cached_property
    def X(self) -> Floats:  # noqa: N802 - its usual name
        """Runs x columns."""
        return _columns(self.runs, self.terms, CURVATURE in self.source[-1:])

    @cached_property
    def fitted_columns(self) -> Floats:
        """The fitted columns, of full rank."""
        return np.asarray(self.X[:, self.fitted])

    @cached_property
    def fitted_source(self) -> NDArray[Any]:
        """Source of each fitted column."""
        return np.asarray(self.source[self.fitted])

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Label of each column."""
        labels = ["mean", *(f"block {i}" for i in range(1, 1 + self.df(BLOCK)))]
        labels += [covariate.name for covariate in self.runs.covariates]
        for term in self.terms:
            labels += column_labels(self.runs.factors, term)
        return (*labels, *[SOURCES[CURVATURE]] * self.df_asked(CURVATURE))

    def columns(self, source: int) -> Ints:
        """Positions of a source among the fitted columns."""
        return self._fitted_positions.get(source, NONE)

    def df(self, source: int) -> int:
        """Degrees of freedom that the runs give to a source."""
        return self._counts[source]

    def df_asked(self, source: int) -> int:
        """Degrees of freedom that a source has where every cell has runs."""
        return len(self._columns.get(source, NONE))

    @cached_property
    def _counts(self) -> Counter[int]:
        return Counter(self.fitted_source.tolist())

    @cached_property
    def _columns(self) -> dict[int, Ints]:
        return _positions_of(self.source)

    @cached_property
    def _fitted_positions(self) -> dict[int, Ints]:
        return self._columns if self.full_rank else _positions_of(self.fitted_source)

    def name(self, source: int) -> str:
        """Name of a source as the analysis of variance shows it."""
        known = self._names
        if source not in known and MEAN < source <= FACTORS:  # from that without its last factor
            last = 1 << (source.bit_length() - 1)
            known[source] = f"{self.name(source ^ last)}{self._separator}{known[last]}"
        return known[source] if source in known else term_name(source, self.runs.keys)

    @cached_property
    def _names(self) -> dict[int, str]:
        covariates = enumerate(self.runs.covariates)
        adjusting = {COVARIATE - i: covariate.name for i, covariate in covariates}
        return SOURCES | adjusting | {1 << i: key for i, key in enumerate(self.runs.keys)}

    @cached_property
    def _separator(self) -> str:
        return "" if single_letters(self.runs.keys) else ":"

    @cached_property
    def adjusting(self) -> Ints:
        """Positions of the covariates among the fitted columns."""
        sources = range(COVARIATE, COVARIATE - len(self.runs.covariates), -1)
        return np.concatenate([NONE, *map(self.columns, sources)])

    @cached_property
    def sorted_terms(self) -> tuple[int, ...]:
        """The terms in standard order."""
        return tuple(sorted(self.terms))

    @property
    def two_level_terms(self) -> tuple[int, ...]:
        """Terms of two-level factors in standard order, which have one effect each."""
        sizes = self.runs.sizes
        if self.runs.two_level:
            return tuple(term for term in self.sorted_terms if term <= FACTORS)
        return tuple(
            term
            for term in self.sorted_terms
            if all(sizes[i] == 2 and not is_squared(term, i) for i in factors_in(term))
        )

    @cached_property
    def distinct(self) -> tuple[Ints, Ints]:
        """One run of every combination of cell and block, and each run's combination."""
        return distinct_rows(self.runs)

    def rows_at(self, index: Ints, position: Floats | None = None) -> Floats:
        """Rows of the model matrix at points, blocks averaged; AVERAGED leaves a factor open."""
        factors = self.runs.factors
        columns = columns_at(factors, index, position)
        rows = np.zeros((len(index), len(self.source)))
        rows[:, 0] = 1.0
        gone = sum(  # contrasts of an averaged factor leave nothing
            1 << i
            for i, factor in enumerate(factors)
            if contrast_means(factor)[1] and (index[:, i] == AVERAGED).all()
        )
        for term in self._terms_without(gone):
            rows[:, self._columns[term]] = term_columns(columns, term)
        return rows

    def _terms_without(self, gone: int) -> list[int]:
        """Terms without the factors of `gone`, but for squares of these."""
        left = FACTORS & ((1 << len(self.runs.factors)) - 1) & ~gone
        if 1 << left.bit_count() < len(self.terms) and not self._squares:
            return [part for part in (*parts_of(left), left) if part in self._columns]
        return [t for t in self.terms if not t & gone & ~(t >> SQUARE)]

    @cached_property
    def _squares(self) -> bool:
        return any(term > FACTORS for term in self.terms)

    def cell_rows(self, cells: Sequence[int], of: Runs | None = None) -> Floats:
        """Rows of the model matrix at configurations, those of centre runs with their curvature.

        `of` are other runs of the same factors whose numbers of configurations these are.
        """
        runs = self.runs if of is None else of
        levels = np.array([runs.cell_levels(cell) for cell in cells], np.int64)
        position = None
        if (levels == OFF).any():
            position = np.array(
                [
                    runs.cell_positions(cell) if cell < 0 else np.zeros(levels.shape[1])
                    for cell in cells
                ]
            )
        rows = self.rows_at(levels.reshape(len(cells), len(self.runs.factors)), position)
        rows[:, self._columns.get(CURVATURE, NONE)] = (np.asarray(cells) < 0)[:, None]
        return rows

    def margin_rows(self, held: Sequence[Mapping[int, int]]) -> Floats:
        """Rows of the model matrix with some factors held at levels, averaged over the others."""
        index = np.full((len(held), len(self.runs.factors)), AVERAGED, np.int64)
        for row, levels in zip(index, held, strict=True):
            row[list(levels)] = list(levels.values())
        return self.rows_at(index)

    def estimable(self, rows: Floats) -> NDArray[np.bool_]:
        """Return which linear functions of the coefficients, one per row, the runs determine.

        A function is estimable where it is a combination of the rows of X, so where it vanishes
        on every relation between the columns (Searle 1971).
        """
        if self.full_rank:
            return np.ones(len(rows), dtype=bool)
        away = rows[:, ~self.fitted] - rows[:, self.fitted] @ self.null
        return np.asarray(np.abs(away).max(axis=1) < 1e-7 * (1.0 + np.abs(rows).max(axis=1)))


def _positions_of(source: NDArray[Any]) -> dict[int, Ints]:
    """Positions of each source, which come in runs of equal ones."""
    positions: dict[int, list[int]] = {}
    for i, name in enumerate(source.tolist()):
        positions.setdefault(name, []).append(i)
    return {name: np.array(found) for name, found in positions.items()}


def make_model(runs: Runs, terms: Sequence[int], *, curved: bool = True) -> Model:
    """Build a model and choose the columns that the runs can estimate, low orders first.

    Centre runs have a mean of their own, unless the model is not `curved`, and what sets them apart
    from it is a part of its residual, or has squares. A term whose one column equals another up to
    sign is its alias, one in the span of the block columns is confounded with blocks, and any other
    of which nothing is left is inestimable. Terms of a random condition are not fixed.

    Raises
    ------
    DoeError
        If there are more columns than least squares can bear.
    """
    random = random_bits(runs)
    terms = tuple(sorted({term for term in terms if not term & random}, key=by_order))
    runs = _with_positions(runs, terms)
    broken = broken_hierarchy(terms)
    signs = _has_signs(runs, terms) and not runs.stratified and not runs.covariates
    if signs and balanced(runs.cells, len(runs.factors), runs.block):
        blocks = 0 if runs.block is None else int(runs.block.max())
        source = np.array([MEAN, *[BLOCK] * blocks, *terms], dtype=object)
        kept = np.ones(len(source), dtype=bool)
        null = np.empty((len(source), 0))
        return Model(runs, terms, source, kept, null, solved_by_transform=True, broken=broken)
    curved = curved and runs.has_centre and not any(term > FACTORS for term in terms)
    widths = [term_width(runs.factors, term) for term in terms]
    if min(sum(widths) + 1, runs.count) > MOST_COLUMNS:
        raise DoeError(
            f"{sum(widths)} terms on {runs.count} runs of an unbalanced design are too many; "
            "choose fewer terms, or a lower order: 2 has the main effects and two-factor "
            "interactions alone"
        )
    first, _ = distinct_rows(runs)
    leaders, aliases = _distinct_terms(runs, terms, widths)
    return _full(runs, first, leaders, curved, aliases, broken)


def _with_positions(runs: Runs, terms: Sequence[int]) -> Runs:
    """Code numbers that the model has squares of by their positions, as in a response surface."""
    if max(terms, default=0) <= FACTORS:
        return runs
    bent = [any(is_squared(term, i) for term in terms) for i in range(len(runs.factors))]
    factors = tuple(
        structs.replace(factor, degree=1) if bends else factor
        for factor, bends in zip(runs.factors, bent, strict=True)
    )
    return replace(runs, factors=factors)


def _full(
    runs: Runs,
    first: Ints,
    terms: Sequence[int],
    curved: bool,
    aliases: dict[int, tuple[Alias, ...]],
    broken: tuple[tuple[int, tuple[int, ...]], ...],
) -> Model:
    """Return the model of terms with different columns, less those of which nothing can be
    estimated.
    """
    source = _source(runs, terms, curved)
    distinct = _columns(runs.only(first) if len(first) < runs.count else runs, terms, curved)
    kept, Q = independent(distinct)
    lost = [term for term in terms if not kept[source == term].any()]
    base = distinct[:, (source == MEAN) | (source == BLOCK)]
    confounded = tuple(t for t in lost if _spanned(base, distinct[:, source == t]))
    chosen = tuple(term for term in terms if term not in set(lost))
    inside = np.array([s not in set(lost) for s in source.tolist()])
    distinct, source, kept = distinct[:, inside], source[inside], kept[inside]
    null = np.linalg.solve(Q.T @ distinct[:, kept], Q.T @ distinct[:, ~kept])
    leaders = {*chosen, *confounded, MEAN}
    return Model(
        runs=runs,
        terms=chosen,
        source=source,
        fitted=kept,
        null=np.asarray(null, np.float64),
        aliases={term: aliases[term] for term in sorted(leaders) if term in aliases},
        with_blocks=tuple(sorted(confounded)),
        inestimable=tuple(sorted(set(lost) - set(confounded))),
        broken=broken,
    )


def _source(runs: Runs, terms: Sequence[int], curved: bool) -> NDArray[Any]:
    blocks = 0 if runs.block is None else int(runs.block.max())
    widths = (term_width(runs.factors, term) for term in terms)
    pairs = zip(terms, widths, strict=True)
    covariates = [COVARIATE - i for i in range(len(runs.covariates))]
    of_terms = [term for term, count in pairs for _ in range(count)]
    sources = [MEAN, *[BLOCK] * blocks, *covariates, *of_terms, *[CURVATURE] * curved]
    return np.array(sources, dtype=object)


def _columns(runs: Runs, terms: Sequence[int], curved: bool) -> Floats:
    """Columns of a model at runs."""
    parts = [np.ones((runs.count, 1)), block_contrasts(runs.block, runs.count)]
    parts += [(c.values - c.values.mean())[:, None] for c in runs.covariates]
    if _has_signs(runs, terms):
        parts.append(sign_columns(runs.cells, terms))
    else:
        columns = run_columns(runs)
        parts += [term_columns(columns, term) for term in terms]
    if curved:
        parts.append(runs.off[:, None].astype(np.float64))
    return np.column_stack(parts)


def _has_signs(runs: Runs, terms: Sequence[int]) -> bool:
    """Return whether every column of the terms is -1 or +1 in every run."""
    return runs.two_level and not runs.off.any() and max(terms, default=0) <= FACTORS


def _spanned(base: Floats, columns: Floats) -> bool:
    """Return whether columns lie in the span of `base`."""
    rest = columns - base @ np.linalg.lstsq(base, columns, rcond=None)[0]
    return float(np.linalg.norm(rest)) < 1e-9 * float(np.linalg.norm(columns))


def _distinct_terms(
    runs: Runs, terms: Sequence[int], widths: Sequence[int]
) -> tuple[list[int], dict[int, tuple[Alias, ...]]]:
    """Group terms of one column that agree up to sign; the mean is a term as well."""
    cells, at = np.unique(runs.cells, return_index=True)
    if max(terms, default=0) <= FACTORS and runs.has_centre and (cells >= 0).any():
        at = at[cells >= 0]  # centre runs make no columns different
        cells = cells[cells >= 0]
    single = [term for term, count in zip(terms, widths, strict=True) if count == 1]
    if _has_signs(runs, terms):
        columns = sign_columns(cells, single)
    elif single:
        parts = run_columns(runs.only(at))
        columns = np.column_stack([term_columns(parts, term) for term in single])
    else:
        return list(terms), {}
    rounded = np.round(columns, 9) + 0.0
    lead = rounded[(rounded != 0).argmax(axis=0), np.arange(rounded.shape[1])]
    signs = np.where(lead < 0, -1, 1)
    rounded = np.ascontiguousarray((rounded * signs).T) + 0.0
    known: dict[bytes, Alias] = {np.ones(len(cells)).tobytes(): Alias(MEAN, 1)}
    groups: dict[int, list[Alias]] = {}
    for term, sign, column in zip(single, signs.tolist(), rounded, strict=True):
        leader = known.setdefault(column.tobytes(), Alias(term, sign))
        if leader.term != term:
            groups.setdefault(leader.term, []).append(Alias(term, sign * leader.sign))
    aliased = {alias.term for members in groups.values() for alias in members}
    leaders = [term for term in terms if term not in aliased]
    return leaders, {term: tuple(members) for term, members in groups.items()}


def distinct_rows(runs: Runs) -> tuple[Ints, Ints]:
    """Return one run of every combination of cell and block, and the number of each run's
    combination.

    With covariates no two runs are alike.
    """
    if runs.covariates:
        return np.arange(runs.count), np.arange(runs.count)
    block = np.zeros(runs.count, np.int64) if runs.block is None else runs.block
    cells = np.unique(runs.cells, return_inverse=True)[1]
    code = cells * (int(block.max(initial=0)) + 1) + block
    _, first, row = np.unique(code, return_index=True, return_inverse=True)
    return first, row


# Which terms -------------------------------------------------------------------------------------


def chosen_terms(runs: Runs, terms: Sequence[str] | None, order: int | None) -> tuple[int, ...]:
    """Terms of the model: those named, all up to an order, or those that suit the runs.

    Raises
    ------
    DoeError
        If a term names no factor, a square is of no number, or the order does not fit.
    """
    keys, count = runs.keys, len(runs.factors)
    if terms is not None and len(terms) == 1 and terms[0] in NAMED and terms[0] not in keys:
        order, terms = NAMED[terms[0]], None
        if order == 0:
            return second_order(runs)
        order = min(order, count)
    if terms is not None:
        chosen = tuple(parse_term(text, keys) for text in terms)
        for term in chosen:
            _check_squares(runs, term)
        return chosen
    if order is not None:
        return tuple(terms_up_to(count, model_order(order, count)))
    return default_terms(runs)


def _check_squares(runs: Runs, term: int) -> None:
    for i in factors_in(term):
        factor = runs.factors[i]
        if is_squared(term, i) and not factor.numeric:
            raise DoeError(f"{factor.key}^2: {factor.key} has no numbers, so it has no square")
        if is_squared(term, i) and len(np.unique(run_positions(runs)[:, i])) < 3:
            raise DoeError(
                f"{factor.key}^2: {factor.key} has two values in these runs, and a square needs "
                "three; add centre or axial runs"
            )


def run_positions(runs: Runs) -> Floats:
    """Position of every factor in every run, 0 of words."""
    columns = [
        f.positions[np.maximum(runs.index[:, i], 0)] if f.numeric else np.zeros(runs.count)
        for i, f in enumerate(runs.factors)
    ]
    at_levels = np.column_stack(columns)
    if runs.position is None:
        return at_levels
    return np.where(runs.index == OFF, runs.position, at_levels)


def default_terms(runs: Runs) -> tuple[int, ...]:
    """Terms that suit the runs where nothing else is said.

    Of two-level factors all products, low orders first, of which `make_model` keeps what the runs
    can tell apart. Of more levels all terms up to the highest order at which none is confounded
    with another: an order is taken whole where its terms add as many degrees of freedom as the
    cells of their own margins allow. A combination that never runs takes degrees of freedom from
    its interaction alone and does not stop there; a fraction, whose interactions share theirs,
    does. Of points at more than one place between levels, and of levels about a centre that are not
    crossed, a full second-order model.
    """
    count = len(runs.factors)
    if runs.has_surface or _is_surface(runs):
        return second_order(runs)
    if runs.two_level:
        return _two_level_terms(runs)
    random = random_bits(runs)
    chosen = tuple(terms_of_order(count, 1))
    before = make_model(runs, chosen).rank
    for order in range(2, count + 1):
        added = tuple(term for term in terms_of_order(count, order) if not term & random)
        if sum(term_width(runs.factors, term) for term in (*chosen, *added)) > MOST_COLUMNS:
            break
        rank = make_model(runs, (*chosen, *added)).rank
        if rank - before < sum(margin_df(runs, term) for term in added):
            break
        chosen, before = (*chosen, *added), rank
    return chosen


def random_bits(runs: Runs) -> int:
    """Return the bits of the random conditions, whose terms have variances and no effects."""
    return sum(1 << i for i, factor in enumerate(runs.factors) if factor.random)


def _is_surface(runs: Runs) -> bool:
    """Return whether levels lie as in a surface design: about a centre, not crossed, fit for
    squares.
    """
    bent = [i for i, f in enumerate(runs.factors) if f.numeric and len(f.levels) > 2]
    if len(bent) < 2 or len(np.unique(runs.cells)) >= runs.every:
        return False
    centre = (np.abs(run_positions(runs)[:, bent]) < NEAR_MIDDLE).all(axis=1)
    return bool(centre.any()) and make_model(runs, second_order(runs)).full_rank


def _two_level_terms(runs: Runs) -> tuple[int, ...]:
    """Return all products; of many factors no higher orders than the runs can estimate."""
    count, cells = len(runs.factors), len(np.unique(runs.cells))
    if count <= EVERY_ORDER or cells == 1 << count:
        return tuple(terms_up_to(count))
    chosen: list[int] = []
    for order in range(1, count + 1):
        chosen += terms_of_order(count, order)
        if len(chosen) >= cells - 1:
            break
    return tuple(chosen)


def second_order(runs: Runs) -> tuple[int, ...]:
    """Main effects, two-factor interactions, and squares of the numbers with three values."""
    numeric = [i for i, factor in enumerate(runs.factors) if factor.numeric]
    places = run_positions(runs)
    squares = [squared(i) for i in numeric if len(np.unique(places[:, i])) > 2]
    return (*terms_up_to(len(runs.factors), 2), *squares)


def margin_df(runs: Runs, term: int) -> int:
    """Degrees of freedom that a term's own margin allows, whatever other terms there are.

    With every cell of the margin filled, and of a number that is fitted as a polynomial, the
    product of levels less one; else the filled cells less the rank of the terms within it.
    """
    own = factors_in(term)
    filled = np.unique(runs.index[~runs.off][:, own], axis=0)
    factors = tuple(runs.factors[i] for i in own)
    if any(factor.degree is not None for factor in factors):
        return term_width(runs.factors, term)
    if len(filled) == np.prod([runs.sizes[i] for i in own]):
        return term_width(runs.factors, term)
    below = terms_up_to(len(own))[:-1]
    return len(filled) - make_model(Runs(factors, filled), below).rank


def broken_hierarchy(terms: Sequence[int]) -> tuple[tuple[int, tuple[int, ...]], ...]:
    """Terms of which a part is not in the model, with these parts.

    Without them its test depends on how levels are coded (Nelder 1977).
    """
    known = set(terms)
    if len(known) == (1 << max(terms, default=0).bit_length()) - 1:  # all products
        return ()
    return tuple(
        (term, absent)
        for term in terms
        if (absent := tuple(part for part in parts_of(term) if part not in known))
    )


def empty_cells(runs: Runs, most: int) -> tuple[int, tuple[int, ...]]:
    """Return how many cells of the full factorial have no run, and the first of them."""
    filled = set(runs.cells[~runs.off].tolist())
    count = runs.every - len(filled)
    first = islice((cell for cell in range(runs.every) if cell not in filled), min(most, count))
    return count, tuple(first)
