"""Factors that are hard to change: whole plots, their order and their columns."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import numpy as np
import pytest

from doe.design.model import model_matrix
from doe.design.runs import make_design
from doe.design.table import design_csv, read_design
from doe.errors import DoeError, SpecError
from doe.study.file import dump_study, parse_study
from doe.study.values import Study

STUDY = b"""
name = "plots"
backend = "module:function"
replicates = 3
[factors.A]
low = 1
high = 2
hard = true
[factors.B]
levels = ["x", "y", "z"]
[factors.C]
low = false
high = true
[responses]
metrics = ["loss"]
"""


def study(text: bytes = STUDY) -> Study:
    return parse_study(text)


def test_runs_of_a_whole_plot_follow_each_other_in_random_order() -> None:
    design = make_design(study())
    plots = [run.whole_plot for run in design.runs]
    assert [plot for plot, _ in groupby(plots)] == [1, 2, 3, 4, 5, 6]
    assert set(Counter(plots).values()) == {6}
    shared = {
        plot: {(run.replicate, run.levels["A"]) for run in design.runs if run.whole_plot == plot}
        for plot in plots
    }
    assert all(len(levels) == 1 for levels in shared.values())
    orders = {
        tuple(run.config[2:] for run in design.runs if run.whole_plot == plot) for plot in shared
    }
    assert len(orders) > 3
    seeded = (STUDY.replace(b"replicates", b"order_seed = %d\nreplicates" % i) for i in range(8))
    plots_first = {
        tuple(run.levels["A"] for run in make_design(study(text)).runs[::6]) for text in seeded
    }
    assert len(plots_first) > 1


def test_the_design_file_has_the_whole_plots() -> None:
    asked = study()
    design = make_design(asked)
    text = design_csv(design)
    assert text.splitlines()[0].split(",")[7] == "whole_plot"
    assert read_design(text, asked) == design
    assert parse_study(dump_study(asked).encode()) == asked


def test_without_hard_factors_nothing_is_added() -> None:
    easy = make_design(study(STUDY.replace(b"hard = true", b"")))
    assert "whole_plot" not in design_csv(easy)
    assert {run.whole_plot for run in easy.runs} == {0}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (b"hard = true", b"random = true", 'only allowed with role = "condition"'),
        (b'"z"]', b'"z"]\nhard = true\n[factors.D]\nlow = 1\nhigh = 2', None),
        (b"metrics", b'metrics = ["loss"]\n[stopping]\nmax_replicates = 5\n#', "A is hard"),
        (b"[factors.B]", b"[factors.B]\nhard = 3", "factors.B.hard"),
    ],
)
def test_what_cannot_be_is_said(old: bytes, new: bytes, message: str | None) -> None:
    text = STUDY.replace(old, new)
    if message is None:
        assert parse_study(text).whole_plot_factors == ("A", "B")
        return
    with pytest.raises(SpecError, match=message):
        parse_study(text)


OPTIMAL = STUDY.replace(b"replicates = 3", b"replicates = 1").replace(
    b"[factors.A]",
    b'[design]\nkind = "optimal"\nruns = 16\nwhole_plots = 8\nmodel = "linear"\n[factors.A]',
)


def test_an_optimal_split_plot_has_the_whole_plots_asked_for() -> None:
    design = make_design(study(OPTIMAL))
    plots: dict[int, set[object]] = {}
    for run in design.runs:
        plots.setdefault(run.whole_plot, set()).add(run.levels["A"])
    assert len(plots) == 8
    assert all(len(levels) == 1 for levels in plots.values())
    assert sorted(Counter(min(map(str, levels)) for levels in plots.values()).values()) == [4, 4]


def test_an_exchange_in_both_strata_beats_random_whole_plots() -> None:
    asked = study(OPTIMAL)
    runs = make_design(asked).runs
    found = information_of(
        asked, [run.level_values for run in runs], [run.whole_plot for run in runs]
    )
    chance = np.random.default_rng(1)
    levels = [factor.levels for factor in asked.factors]
    others = []
    for _ in range(50):
        hard = chance.integers(2, size=8).repeat(2)
        points = [
            (levels[0][h], levels[1][chance.integers(3)], levels[2][chance.integers(2)])
            for h in hard.tolist()
        ]
        others.append(information_of(asked, points, np.arange(8).repeat(2).tolist()))
    assert found > max(others)


def information_of(asked: Study, points: list[tuple[object, ...]], plots: list[int]) -> float:
    """Log determinant of the generalised information, by the inverse of V itself."""
    X = model_matrix(asked.factors, points, [1, 2, 4])
    Z = np.equal.outer(plots, sorted(set(plots))).astype(float)
    inverse = np.linalg.inv(np.eye(len(X)) + Z @ Z.T)
    return float(np.linalg.slogdet(X.T @ inverse @ X)[1])


@pytest.mark.parametrize("number", [0, 1, 16])
def test_a_number_of_whole_plots_that_cannot_be_is_said(number: int) -> None:
    text = OPTIMAL.replace(b"whole_plots = 8", b"whole_plots = %d" % number)
    with pytest.raises(DoeError, match=r"design.whole_plots"):
        make_design(study(text))
