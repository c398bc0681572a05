"""Tables of numbers drawn at random, as a search of hyperparameters leaves them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from doe.analysis.analyze import Analysis, analyze
from doe.analysis.tables import TableOptions, table_dataset, table_runs
from doe.views.headlines import headlines
from doe.views.tables import response_tables


@pytest.fixture(scope="module")
def searched() -> Analysis:
    """40 draws; acc has its maximum of 0.8 at lr = 0.001, and adam is 0.02 better."""
    rng = np.random.default_rng(3)
    lr, drop = 10 ** rng.uniform(-5, -1, 40), rng.uniform(0, 0.5, 40)
    opt = rng.choice(["adam", "sgd"], 40)
    acc = 0.8 - 0.03 * (np.log10(lr) + 3) ** 2 + 0.02 * (opt == "adam")
    frame = pd.DataFrame({"lr": lr, "drop": drop, "opt": opt, "acc": acc + rng.normal(0, 0.02, 40)})
    options = TableOptions(factors=("lr", "drop", "opt"), goal="max", scale={"lr": "log"})
    frame = frame.astype(str)
    return analyze(table_dataset(frame, table_runs(frame, options), "acc", options))


def test_no_row_is_taken_for_a_centre_run(searched: Analysis) -> None:
    assert searched.curvature is None
    assert searched.n == 40
    assert not any("centre" in warning for warning in searched.warnings)


def test_a_number_is_told_by_its_line_and_its_curve(searched: Analysis) -> None:
    line = headlines(searched).effects[0]
    assert line.startswith("lr changes acc by +0.0")
    assert " from end to end of its log scale; its middle differs from the mean of the " in line
    assert line.endswith(").")
    bend = next(p for p in searched.parts if (p.factor, p.part) == ("lr", "quadratic"))
    assert bend.ci_low is not None
    assert bend.ci_low < 0.12 < bend.ci_high  # 0.03 * 2²
    assert {d.factor for d in searched.differences} == {"opt"}
    (means,) = (t for t in response_tables(searched) if t.name.startswith("levels"))
    assert {row.values[0] for row in means.rows} == {"opt"}


def test_the_model_is_not_asked_for_points_far_from_all_runs(searched: Analysis) -> None:
    best = searched.best
    assert best is not None
    assert best.reduced.best.ci_low is not None, "a configuration that ran"
    assert 1e-4 < float(best.reduced.best.config.split(" · ")[0]) < 1e-2


def test_a_slope_that_is_not_clear_raises_nothing() -> None:
    """The bend of x is sure and its slope is not: an interval that holds zero has no direction."""
    rng = np.random.default_rng(5)
    x, z = rng.uniform(-1, 1, 40), rng.uniform(0, 1, 40)
    y = 3 - 2 * x**2 + rng.normal(0, 0.2, 40)
    frame = pd.DataFrame({"x": x, "z": z, "y": y}).astype(str)
    options = TableOptions(factors=("x", "z"), goal="max")
    found = analyze(table_dataset(frame, table_runs(frame, options), "y", options))
    slope = next(p for p in found.parts if (p.factor, p.part) == ("x", "linear"))
    assert slope.ci_low is not None
    assert slope.ci_low < 0 < (slope.ci_high or 0)
    line = headlines(found).effects[0]
    assert line.startswith("x changes y by ")
    assert f"CI {'−' * (slope.ci_low < 0)}" in line


def test_values_that_cross_nowhere_are_partly_confounded() -> None:
    rng = np.random.default_rng(1)
    frame = pd.DataFrame(rng.uniform(0, 1, (40, 4)), columns=list("abcd"))
    frame["y"] = frame["a"] + rng.normal(0, 0.1, 40)
    options = TableOptions(factors=("a", "b", "c", "d"))
    data = table_dataset(frame.astype(str), table_runs(frame.astype(str), options), "y", options)
    told = [w for w in analyze(data).warnings if "confounded" in w]
    assert len(told) == 1, "one sentence for all terms"
    assert told[0].startswith("Partly confounded with terms that are left out: a, b, c, d, ")
