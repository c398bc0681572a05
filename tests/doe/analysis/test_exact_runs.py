"""Runs that agree to the last digit: nothing to test, and no rounding among the results."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest
from factorial_tables import study, table

from doe.analysis.estimators.box_meyer import BoxMeyer
from doe.analysis.estimators.robust import Robust
from doe.views.headlines import headlines
from doe.views.json import to_plain


def numbers(value: Any, path: str = "") -> Iterator[tuple[str, float]]:
    """Every number of a nested value that is no p value, with where it is."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, float) and not str(key).startswith("p"):
            yield f"{path}.{key}", item
        elif isinstance(item, (dict, list, tuple)):
            yield from numbers(item, f"{path}.{key}")


@pytest.mark.parametrize("sizes", [(2, 2, 2), (3, 3), (4, 2, 2)], ids=str)
@pytest.mark.parametrize("replicates", [1, 3])
@pytest.mark.parametrize("base", [0.1, 1 / 3, 1000.1])
@pytest.mark.parametrize("lost", [False, True], ids=["whole", "lost"])
@pytest.mark.parametrize("more", [{}, {"order": 1}, {"block": "rep"}], ids=str)
def test_rounding_is_no_result(
    sizes: tuple[int, ...], replicates: int, base: float, more: dict[str, Any], lost: bool
) -> None:
    cells = list(product(*map(range, sizes)))
    keys = "ABC"[: len(sizes)]
    frame = pd.DataFrame(cells * replicates, columns=list(keys))
    frame["rep"] = np.repeat(np.arange(replicates), len(cells))
    frame["y"] = base + 0.2 * frame["A"] + 0.3 * frame["B"] * frame["A"]
    frame["y"] *= 1 + 1e-16 * (frame.index % 3)
    if lost:
        frame.loc[2, "y"] = np.nan
    found = to_plain(study(frame, keys, robust=True, permutations=19, **more))
    wrong = [at for at in numbers(found) if at[1] != 0 and not 1e-11 < abs(at[1]) < 1e9]
    assert not wrong


def test_a_bound_that_cancels_has_no_sign() -> None:
    """0.1 + 0.2 - 0.3 is not above 0."""
    frame = table("AB", [0.1, 0.1, 0.3, 0.3, 0.1, 0.1, 0.3, np.nan])
    lost = study(frame, "AB").missing
    assert lost is not None
    assert [bound.sign for bound in lost.in_range] == ["?", "+", "?"]


def test_copies_are_compared_exactly_and_not_tested() -> None:
    found = study(table("ABC", [1.0, 2.0, 4.0, 6.0, 1.0, 2.0, 4.0, 6.0] * 2), "ABC", robust=True)
    assert found.exact
    assert found.lenth is None
    assert found.get(Robust) is None
    assert found.get(BoxMeyer) is None
    assert {test.p for test in found.tests} == {None}
    assert {effect.term: effect.effect for effect in found.effects} == {
        **{"A": 1.5, "B": 3.5, "AB": 0.5},
        **dict.fromkeys(("C", "AC", "BC", "ABC"), 0.0),
    }
    said = headlines(found)
    assert said.effects[:2] == ("B raises y by 3.5.", "A raises y by 1.5.")
    assert said.effects[-1] == "None of 7 terms can be tested: there is no error to test against."
    assert "Differences are exact for these runs" in said.fragile[-1]
    assert "chance" not in " ".join((*said.effects, *said.fragile))


def test_replicates_that_differ_by_their_blocks_alone_are_no_copies() -> None:
    frame = table("AB", [1.0, 3.0, 2.0, 7.0, 1.5, 3.5, 2.5, 7.5])
    assert (
        study(frame, "AB", block="day")
        .warnings[-1]
        .startswith("Replicates agree to the last digit, but for their blocks: there is no error")
    )


def test_an_effect_of_nothing_at_one_level_is_said_as_such() -> None:
    found = study(table("AB", [1.0, 3.0, 2.0, 2.0] * 2), "AB")
    assert "A raises y by 2 without B and has no effect with it." in headlines(found).effects


def test_a_model_that_fits_every_run_is_not_tested_by_what_is_left() -> None:
    found = study(table("ABC", [1.0, 2.0, 4.0, 5.0, 1.0, 2.0, 4.0, 5.0]), "ABC", order=1)
    assert found.exact
    assert found.best is not None
    assert found.best.reduced.terms == ("A", "B")
    assert "The model fits every run to the last digit" in found.warnings[-1]
