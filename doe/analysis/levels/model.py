"""The model: which terms, which of their columns the runs can tell apart, and what they cost."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, islice

import numpy as np
from numpy.typing import NDArray

from doe.analysis.contrasts import MOST_COLUMNS, Floats, Ints, block_contrasts, independent
from doe.analysis.levels.coding import (
    column_labels,
    factor_columns,
    term_columns,
)
from doe.analysis.levels.layout import LevelRuns
from doe.errors import DoeError
from doe.terms import MEAN, by_order, factors_in, model_order, parse_term, term_name, terms_up_to

BLOCK = -1
CURVATURE = -2


@dataclass(frozen=True)
class ModelMatrix:
    """Columns of the mean, the blocks, the terms by rising order and the centre runs.

    A column in the span of earlier ones is not kept: its coefficient is taken to be zero, and
    what depends on that choice is not estimable.
    """

    layout: LevelRuns
    masks: tuple[int, ...]  # terms asked for, by rising order
    X: Floats  # runs x columns
    source: Ints  # of each column: MEAN, BLOCK, the mask of a term, CURVATURE
    labels: tuple[str, ...]  # of each column
    kept: NDArray[np.bool_]
    null: Floats  # kept columns x others: the others as sums of the kept ones

    @property
    def rank(self) -> int:
        """Number of coefficients that the runs can estimate."""
        return int(self.kept.sum())

    @property
    def full_rank(self) -> bool:
        """Whether that is all of them."""
        return bool(self.kept.all())

    @property
    def fitted_columns(self) -> Floats:
        """The kept columns, of full rank."""
        return np.asarray(self.X[:, self.kept])

    @property
    def fitted_source(self) -> Ints:
        """Source of each kept column."""
        return np.asarray(self.source[self.kept])

    def df(self, source: int) -> int:
        """Degrees of freedom that the runs give to a source."""
        return int((self.fitted_source == source).sum())

    def df_asked(self, source: int) -> int:
        """Degrees of freedom that a source has where every cell has runs."""
        return int((self.source == source).sum())

    def name(self, source: int) -> str:
        """Name of a source as the analysis of variance shows it."""
        words = {BLOCK: "Block", CURVATURE: "Curvature"}
        return words[source] if source < 0 else term_name(source, self.layout.keys)

    @property
    def terms(self) -> tuple[int, ...]:
        """Terms of which the runs can estimate something."""
        return tuple(mask for mask in self.masks if self.df(mask) > 0)

    def estimable(self, rows: Floats) -> NDArray[np.bool_]:
        """Which linear functions of the coefficients, one per row, the runs determine.

        A function is estimable where it is a combination of the rows of X, so where it vanishes
        on every relation between the columns (Searle 1971).
        """
        if self.full_rank:
            return np.ones(len(rows), dtype=bool)
        away = rows[:, ~self.kept] - rows[:, self.kept] @ self.null
        return np.asarray(np.abs(away).max(axis=1) < 1e-7 * (1.0 + np.abs(rows).max(axis=1)))


def model_matrix(layout: LevelRuns, masks: Sequence[int], *, curved: bool = True) -> ModelMatrix:
    """Build the columns of a model and choose those that the runs can tell apart.

    Centre runs have a mean of their own, unless the model is not `curved` and what sets them apart
    from it is a part of its residual.

    Raises
    ------
    DoeError
        If there are more columns than least squares can bear.
    """
    masks = tuple(sorted(set(masks), key=by_order))
    columns = factor_columns(layout)
    widths = [1, block_df(layout), *(width_of(layout, mask) for mask in masks)]
    if min(sum(widths), layout.runs) > MOST_COLUMNS:
        raise DoeError(
            f"the model has {sum(widths)} coefficients; at most {MOST_COLUMNS} can be fitted: "
            "choose fewer terms or a lower order"
        )
    blocks = block_contrasts(layout.block, layout.runs)
    parts = [np.ones((layout.runs, 1)), blocks, *(term_columns(columns, mask) for mask in masks)]
    sources = [MEAN, BLOCK, *masks]
    labels = ["mean", *(f"block {i}" for i in range(1, 1 + blocks.shape[1]))]
    labels += [label for mask in masks for label in column_labels(layout, mask)]
    if curved and layout.centre is not None and layout.centre.any():
        parts.append(layout.centre[:, None].astype(np.float64))
        sources.append(CURVATURE)
        labels.append("Curvature")
    X = np.column_stack(parts)
    source = np.repeat(sources, [part.shape[1] for part in parts])
    distinct = X[distinct_rows(layout)[0]]
    kept, Q = independent(distinct)
    null = np.linalg.solve(Q.T @ distinct[:, kept], Q.T @ distinct[:, ~kept])
    return ModelMatrix(layout, masks, X, source, tuple(labels), kept, np.asarray(null, np.float64))


def block_df(layout: LevelRuns) -> int:
    """Degrees of freedom of the blocks."""
    return 0 if layout.block is None else int(layout.block.max())


def width_of(layout: LevelRuns, mask: int) -> int:
    """Degrees of freedom of a term where every cell has runs: the product of levels less one."""
    return math.prod(layout.sizes[i] - 1 for i in factors_in(mask))


def distinct_rows(layout: LevelRuns) -> tuple[Ints, Ints]:
    """One run of every combination of cell and block, and the number of each run's combination."""
    block = np.zeros(layout.runs, np.int64) if layout.block is None else layout.block
    cells = np.unique(layout.cells, return_inverse=True)[1]
    code = cells * (int(block.max(initial=0)) + 1) + block
    _, first, row = np.unique(code, return_index=True, return_inverse=True)
    return first, row


def default_terms(layout: LevelRuns) -> tuple[int, ...]:
    """All terms up to the highest order at which no term is confounded with another.

    An order is taken whole where its terms add as many degrees of freedom as the cells of their
    own margins allow. A combination that never runs takes degrees of freedom from its interaction
    alone and does not stop there; a fraction, whose interactions share theirs, does.
    """
    count = len(layout.factors)
    chosen = terms_of_order(count, 1)
    before = model_matrix(layout, chosen).rank
    for order in range(2, count + 1):
        added = terms_of_order(count, order)
        width = sum(width_of(layout, mask) for mask in (*chosen, *added))
        if width > MOST_COLUMNS:
            break
        rank = model_matrix(layout, (*chosen, *added)).rank
        if rank - before < sum(margin_df(layout, mask) for mask in added):
            break
        chosen, before = (*chosen, *added), rank
    return tuple(sorted(chosen, key=by_order))


def terms_of_order(count: int, order: int) -> tuple[int, ...]:
    """All terms of `order` factors out of `count`, in standard order."""
    chosen = combinations(range(count), order)
    return tuple(sorted(sum(1 << i for i in factors) for factors in chosen))


def margin_df(layout: LevelRuns, mask: int) -> int:
    """Degrees of freedom that a term's own margin allows, whatever other terms there are.

    With every cell of the margin filled, the product of levels less one; else the filled cells
    less the rank of the terms within it.
    """
    own = factors_in(mask)
    index = layout.index[~layout.is_centre][:, own]
    filled = np.unique(index, axis=0)
    if len(filled) == math.prod(layout.sizes[i] for i in own):
        return width_of(layout, mask)
    margin = LevelRuns(tuple(layout.factors[i] for i in own), filled)
    below = terms_up_to(len(own))[:-1]
    return len(filled) - model_matrix(margin, below).rank


def chosen_terms(
    layout: LevelRuns, terms: Sequence[str] | None, order: int | None
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Masks of the model's terms, and where their choice breaks the hierarchy.

    Raises
    ------
    DoeError
        If a term names no factor or the order does not fit.
    """
    keys = layout.keys
    if terms is not None:
        masks = [parse_term(text, keys) for text in terms]
        return tuple(masks), broken_hierarchy(masks, keys)
    if order is None:
        return default_terms(layout), ()
    return tuple(terms_up_to(len(keys), model_order(order, len(keys)))), ()


def broken_hierarchy(masks: Sequence[int], keys: Sequence[str]) -> tuple[str, ...]:
    """A sentence for each interaction whose parts are not all in the model.

    Without them its test depends on how levels are coded (Nelder 1977).
    """
    sentences = []
    for mask in sorted(set(masks), key=by_order):
        absent = sorted(part for part in parts_of(mask) if part not in masks)
        if absent:
            names = ", ".join(term_name(part, keys) for part in absent)
            sentences.append(
                f"{term_name(mask, keys)} is in the model without {names}: the hierarchy is broken,"
                " and its test depends on how the levels are coded."
            )
    return tuple(sentences)


def parts_of(mask: int) -> list[int]:
    """The terms that a term contains: all products of some of its factors."""
    parts, part = [], (mask - 1) & mask
    while part:
        parts.append(part)
        part = (part - 1) & mask
    return parts


def empty_cells(layout: LevelRuns, most: int) -> tuple[int, tuple[int, ...]]:
    """How many cells of the full factorial have no run, and the first of them."""
    filled = set(layout.cells[~layout.is_centre].tolist())
    every = math.prod(layout.sizes)
    count = every - len(filled)
    first = islice((cell for cell in range(every) if cell not in filled), min(most, count))
    return count, tuple(first)
