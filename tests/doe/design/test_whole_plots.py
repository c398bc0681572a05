"""Factors that are hard to change: whole plots, their order and their columns."""

from __future__ import annotations

from collections import Counter
from itertools import groupby

import pytest

from doe.design.runs import make_design
from doe.design.table import design_csv, read_design
from doe.errors import SpecError
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
        (b"hard = true", b"random = true", 'it is for role = "condition"'),
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
