"""Layouts and observations for tests of factors with levels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from doe.analysis.levels.layout import FactorColumn, LevelObservations, LevelRuns

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
    centre: Sequence[bool] | None = None,
    goal: str | None = "min",
) -> LevelObservations:
    """Observations of a response y."""
    blocks = None if block is None else np.asarray(block, np.int64)
    centres = None if centre is None else np.asarray(centre, dtype=bool)
    layout = LevelRuns(tuple(factors), np.asarray(index, np.int64), blocks, "day", centres)
    return LevelObservations(layout, "y", np.asarray(y, dtype=float), "", goal)


def case_of_r(name: str) -> tuple[dict[str, Any], LevelObservations]:
    """A case of R with its answers."""
    case = ANSWERS[name]
    if "levels" in case:
        factors = [
            factor(key, [float(v) for v in levels], "log") if key == "lr" else factor(key, levels)
            for key, levels in case["levels"].items()
        ]
    else:
        factors = [factor(key, [-1, 1], "linear") for key in case["keys"]]
    observed = seen(factors, case["index"], case["y"], case.get("block"), case.get("centre"))
    return case, observed
