"""Dispersion effects: which factors change the spread between replicates."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import special, stats

from doe.analysis.adjust import holm
from doe.analysis.contrasts import Floats, Ints, estimable, names_of
from doe.analysis.fit import estimator, without_blocks
from doe.analysis.lenth import lenth
from doe.analysis.values import Dispersion, DispersionEffect


def dispersion(
    y: Floats,
    cells: Ints,
    block: Ints | None,
    keys: Sequence[str],
    order: int,
    alpha: float,
    label: Callable[[int], str],
) -> Dispersion | None:
    """Effects on ln s² of the cells, after blocks; None without replicates.

    For normal data ``Var(ln s²) = ψ'(ν / 2)`` with ν = replicates - 1, which gives each contrast
    a known standard error; Lenth's method beside it needs no normality. A cell whose replicates
    are all equal has no ln s² and is named.
    """
    adjusted = _steadied(without_blocks(y, cells, block), cells, block)
    unique, place, counts = np.unique(cells, return_inverse=True, return_counts=True)
    means = np.bincount(place, weights=adjusted) / counts
    squares = np.bincount(place, weights=(adjusted - means[place]) ** 2)
    floor = 1e-24 * max(float((adjusted**2).mean()), 1e-300)
    usable = (counts >= 2) & (squares > floor)
    if usable.sum() < 2 or (counts >= 2).sum() < 2:
        return None
    used, nu = unique[usable], counts[usable] - 1
    log_variance = np.log(squares[usable] / nu)
    model = estimable(used, len(keys), order, None)
    if not model.masks:
        return None
    maps = estimator(used, None, model)
    effect = 2.0 * maps @ log_variance
    se = 2.0 * np.sqrt(maps**2 @ special.polygamma(1, nu / 2.0))
    z = effect / se
    p = 2.0 * stats.norm.sf(np.abs(z))
    names = names_of(model.masks, keys)
    columns = (effect, np.exp(effect), z, p, holm(p))
    effects = tuple(
        DispersionEffect(*line)
        for line in zip(names, *(column.tolist() for column in columns), strict=True)
    )
    return Dispersion(
        effects=effects,
        replicates=int(counts[usable].min()),
        lenth=lenth(effect, names, alpha),
        skipped=tuple(label(int(cell)) for cell in unique[~usable]),
        sentence=_sentence(effects, alpha),
    )


def _steadied(y: Floats, cells: Ints, block: Ints | None) -> Floats:
    """Take the median deviation of each block out as well.

    Least-squares block effects carry the noise of unstable cells into the stable ones, which
    would hide the very difference that is looked for; medians over cells do not.
    """
    if block is None:
        return y
    place = np.unique(cells, return_inverse=True)[1]
    within = y - (np.bincount(place, weights=y) / np.bincount(place))[place]
    shift = np.array([np.median(within[block == b]) for b in range(int(block.max()) + 1)])
    return np.asarray(y - shift[block])


def _sentence(effects: Sequence[DispersionEffect], alpha: float) -> str:
    found = sorted((e for e in effects if e.p_holm < alpha), key=lambda e: e.p)[:4]
    if not found:
        return "No term changes the spread between replicates beyond chance."
    parts = [
        f"{e.term} at high {'multiplies' if e.effect > 0 else 'divides'} the variance "
        f"by {max(e.ratio, 1 / e.ratio):.3g}"
        for e in found
    ]
    return "; ".join(parts) + "."
