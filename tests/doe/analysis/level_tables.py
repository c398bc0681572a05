"""Layouts and observations for tests of factors with levels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from doe.analysis.dataset import OFF, Dataset, FactorColumn, Runs
from doe.analysis.fit import Fit, fit
from doe.analysis.model import chosen_terms, make_model

ANSWERS = json.loads((Path(__file__).parent / "r" / "levels.json").read_text(encoding="utf-8"))
"""What r/levels.R printed."""


def factor(
    key: str, levels: Sequence[Any], scale: str | None = None, name: str = ""
) -> FactorColumn:
    """A factor; numeric where a scale is given."""
    return FactorColumn(key, name or key, tuple(levels), scale is not None, scale or "linear")


def words(sizes: Sequence[int]) -> tuple[FactorColumn, ...]:
    """Factors A, B, ... with levels a1, a2, ..."""
    keys = "ABCDEFGH"[: len(sizes)]
    return tuple(
        factor(key, [f"{key.lower()}{i + 1}" for i in range(size)])
        for key, size in zip(keys, sizes, strict=True)
    )


def full(sizes: Sequence[int], replicates: int = 1) -> np.ndarray:
    """Level numbers of a full factorial, the first factor fastest."""
    cells = [line[::-1] for line in product(*(range(size) for size in reversed(sizes)))]
    return np.array(cells * replicates, np.int64)


def seen(
    factors: Sequence[FactorColumn],
    index: np.ndarray,
    y: Sequence[float],
    block: Sequence[int] | None = None,
    goal: str | None = "min",
) -> Dataset:
    """A response y of runs; those with a level number of -1 lie at the middle of that factor."""
    blocks = None if block is None else np.asarray(block, np.int64)
    numbers = np.asarray(index, np.int64)
    position = np.zeros(numbers.shape) if (numbers == OFF).any() else None
    runs = Runs(tuple(factors), numbers, position, blocks, "day")
    return Dataset(runs, "y", np.asarray(y, dtype=float), goal=goal)


def fitted(
    data: Dataset,
    terms: Sequence[str] | None = None,
    order: int | None = None,
    *,
    pooled: bool = False,
) -> Fit:
    """The fit of a model of the runs with a value."""
    runs = data.runs.only(data.observed)
    model = make_model(runs, chosen_terms(runs, terms, order), curved=not pooled)
    return fit(data.y[data.observed], model, data.observed, pooled=pooled, name="y")


def case_of_r(name: str) -> tuple[dict[str, Any], Dataset]:
    """A case of R with its answers."""
    case = ANSWERS[name]
    if "levels" in case:
        factors = [
            factor(key, [float(v) for v in levels], "log") if key == "lr" else factor(key, levels)
            for key, levels in case["levels"].items()
        ]
    else:
        factors = [factor(key, [-1, 1], "linear") for key in case["keys"]]
    observed = seen(factors, case["index"], case["y"], case.get("block"))
    return case, observed
