"""Naming every term changes nothing: one JSON, key for key and digit for digit, of every design."""

from __future__ import annotations

import json
from itertools import combinations, product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import doe
from doe.views.json import to_plain


def crossed(*levels: tuple[Any, ...], replicates: int = 1) -> pd.DataFrame:
    """Return every combination of levels, in replicates."""
    rows = [(r, *cell) for r in range(replicates) for cell in product(*levels)]
    return pd.DataFrame(rows, columns=["rep", *"ABCDE"[: len(levels)]])


def fraction() -> pd.DataFrame:
    table = crossed(*[(0, 1)] * 4)
    return table.assign(E=table[list("ABCD")].sum(axis=1) % 2)


def with_centre() -> pd.DataFrame:
    centre = pd.DataFrame({"rep": [0, 0, 1, 1], "A": 15.0, "B": 15.0, "C": 15.0})
    return pd.concat([crossed(*[(10.0, 20.0)] * 3, replicates=2), centre], ignore_index=True)


def surface() -> pd.DataFrame:
    star = [(-1.414, 0.0), (1.414, 0.0), (0.0, -1.414), (0.0, 1.414), *[(0.0, 0.0)] * 4]
    corners = crossed((-1.0, 1.0), (-1.0, 1.0))
    return pd.concat([corners, pd.DataFrame(star, columns=["A", "B"])], ignore_index=True)


TWO = crossed(*[(0, 1)] * 3, replicates=3)
THREE = crossed(("p", "q", "r"), (0, 1), (0, 1), replicates=2)
BLOCKS = {"block": "rep"}
PLOTS = {"block": "rep", "whole_plot": ["A"]}
DESIGNS: dict[str, tuple[pd.DataFrame, dict[str, Any]]] = {
    "two levels": (TWO, BLOCKS),
    "lost runs": (TWO.drop(index=[2, 9, 17]), BLOCKS),
    "3 x 2 x 2": (THREE, BLOCKS),
    "3 x 2 x 2, lost runs": (THREE.drop(index=[1, 13, 14]), BLOCKS),
    "fraction": (fraction(), {}),
    "centre runs": (with_centre(), {}),
    "surface": (surface(), {}),
    "split plot": (TWO, PLOTS),
    "split plot, lost runs": (TWO.drop(index=[3, 5, 20]), PLOTS),
}


def analysed(design: str, **options: Any) -> dict[str, Any]:
    """Return the JSON of a response with two effects and an interaction."""
    table, columns = DESIGNS[design]
    keys = [key for key in "ABCDE" if key in table]
    codes = table[keys].apply(lambda column: pd.factorize(column)[0]).to_numpy(float)
    noise = np.random.default_rng(3).normal(scale=0.4, size=len(table))
    y = 10.0 + codes[:, 0] + 0.5 * codes[:, 1] + codes[:, 0] * codes[:, 1] + noise
    found = doe.analyze(table.assign(y=y), "y", factors=keys, goal="max", **columns, **options)
    return to_plain(found.analysis)


@pytest.mark.parametrize("design", DESIGNS)
def test_naming_every_term_changes_nothing(design: str) -> None:
    found = analysed(design)
    keys = found["factors"]
    products = [c for size in range(1, len(keys) + 1) for c in combinations(keys, size)]
    every = ["A", "B", "AB", "A^2", "B^2"] if design == "surface" else list(map("".join, products))
    assert len(found["effects"]) <= len(every)
    assert json.dumps(analysed(design, terms=every)) == json.dumps(found)


def test_every_design_has_the_same_keys() -> None:
    found = list(map(analysed, DESIGNS))
    assert len({tuple(plain) for plain in found}) == 1
    assert len({tuple(plain["diagnostics"]) for plain in found}) == 1
