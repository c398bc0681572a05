"""Random groups against R: lme4's variances, pbkrtest's tests, and aov with Error."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from doe.analysis.reml import Reml, reml

CASES = json.loads((Path(__file__).parent / "r" / "strata.json").read_text(encoding="utf-8"))
"""What r/strata.R printed."""


def columns_of(case: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    """The columns of a case's terms, which sum to zero over levels, and the term of each."""
    n = len(case["y"])
    parts, terms = [np.ones((n, 1))], ["I"]
    for term in case["terms"]:
        columns = np.ones((n, 1))
        for key in term.split(":"):
            levels = np.eye(max(case[key]) + 1)[case[key]]
            own = levels[:, :-1] - levels[:, -1:]
            columns = (columns[:, :, None] * own[:, None, :]).reshape(n, -1)
        parts.append(columns)
        terms += [term] * columns.shape[1]
    return np.column_stack(parts), np.array(terms)


def fitted(case: dict[str, Any]) -> tuple[Reml, np.ndarray]:
    X, terms = columns_of(case)
    return reml(X, np.array(case["y"]), [np.array(g) for g in case["groups"].values()]), terms


@pytest.mark.parametrize("name", CASES)
def test_variances_and_tests_are_those_of_lme4_and_pbkrtest(name: str) -> None:
    case = CASES[name]
    found, terms = fitted(case)
    expected = [case["lmer"]["variances"][g] for g in (*case["groups"], "Residual")]
    assert found.variances == pytest.approx(expected, rel=1e-5, abs=1e-6 * max(expected))
    for line in case["lmer"]["tests"]:
        test = found.test(np.eye(len(terms))[terms == line["term"]])
        assert test.df == line["df"]
        assert test.f == pytest.approx(line["f"], rel=1e-5)
        assert test.df_error == pytest.approx(line["df_error"], rel=1e-6)
        assert test.p == pytest.approx(line["p"], rel=1e-4)


@pytest.mark.parametrize("name", [name for name in CASES if "aov" in CASES[name]])
def test_balanced_strata_are_those_of_aov(name: str) -> None:
    case = CASES[name]
    found, terms = fitted(case)
    strata = {}
    for line in case["aov"]:
        strata.setdefault(line["stratum"], []).append(line)
    for lines in strata.values():
        error = next(line for line in lines if line["source"] == "Residuals")
        for line in lines:
            if line["source"] == "Residuals":
                continue
            test = found.test(np.eye(len(terms))[terms == line["source"]])
            assert test.df_error == pytest.approx(error["df"], rel=1e-6)
            assert test.f == pytest.approx(line["f"], rel=1e-6)


def test_a_group_that_adds_nothing_has_no_variance() -> None:
    found, _ = fitted(CASES["nothing"])
    assert found.variances[0] == 0.0
    assert found.error > 0.0


@pytest.mark.parametrize("df", [2, 4, 6])
@pytest.mark.parametrize("seed", range(5))
def test_whole_plots_that_add_nothing_leave_their_degrees_of_freedom(df: int, seed: int) -> None:
    # F has no mean on 2 degrees of freedom and no variance on 4.
    plot, run = np.repeat(np.arange(df + 2), 6), np.tile(np.arange(6), df + 2)
    A = np.where(plot % 2, 1.0, -1.0)
    y = np.random.default_rng(seed).normal(size=len(plot))
    y += A / 10 - (np.bincount(plot, y) / 6)[plot]
    found = reml(np.column_stack([np.ones(len(y)), A, run - 2.5]), y, [plot])
    test = found.test(np.eye(3)[[1]])
    assert found.variances[0] == 0.0
    assert test.df_error == pytest.approx(df)
    assert test.f == pytest.approx(len(y) / 100 / found.error)
