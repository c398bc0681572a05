"""Whole plots on the way from a study or a table to its analysis, plan and power."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import doe
from doe.analysis.analyze import analyze
from doe.analysis.dataset import Dataset, FactorColumn, RandomGroup, Runs
from doe.analysis.model import make_model
from doe.analysis.strata import random_groups
from doe.cli import app
from doe.design.runs import make_design
from doe.errors import DoeError
from doe.results.dataset import planned_runs
from doe.study.file import parse_study
from doe.views.charts.effects import groups_data, half_normal_data
from doe.views.headlines import headlines

STUDY = """
name = "plots"
backend = "m:f"
replicates = {replicates}
[factors.vocab]
levels = ["8k", "16k"]
{vocab}
[factors.lr]
low = 0.01
high = 0.1
[factors.aug]
low = false
high = true
[responses]
metrics = ["loss"]
{further}
"""


def frame(replicates: int = 3) -> pd.DataFrame:
    """Runs of two whole plots in each block."""
    rng = np.random.default_rng(5)
    rows = []
    for day in range(replicates):
        for vocab in ("8k", "16k"):
            plot = rng.normal()
            rows += [
                (day, f"{day}{vocab}", vocab, lr, aug, 10 + plot + lr * 10 + rng.normal(scale=0.2))
                for lr in (0.01, 0.1)
                for aug in ("off", "on")
            ]
    return pd.DataFrame(rows, columns=["day", "tray", "vocab", "lr", "aug", "loss"])


@pytest.mark.parametrize("named", ["vocab", "tray"])
def test_a_table_names_whole_plots_by_a_column_or_by_factors(named: str) -> None:
    table = frame()
    found = doe.analyze(
        table, "loss", factors=["vocab", "lr", "aug"], block="day", whole_plot=[named]
    ).analysis
    tests = {test.term: test for test in found.tests}
    assert (tests["vocab"].stratum, tests["vocab"].df_error) == ("whole plot", 2.0)
    assert (tests["lr"].stratum, tests["lr"].df_error) == ("run", 12.0)
    means = table.groupby(["day", "vocab"]).loss.mean().unstack()
    difference = means["8k"] - means["16k"]
    t = difference.mean() / (difference.std() / np.sqrt(3))
    assert tests["vocab"].f == pytest.approx(t**2, rel=1e-9)


def test_replicates_that_share_whole_plots_do_not_tell_who_beats_whom() -> None:
    table = pd.concat([frame(2)] * 2, ignore_index=True)
    table["loss"] += np.random.default_rng(1).normal(scale=0.2, size=len(table))
    asked = [("8k · 0.01 · off", other) for other in ("16k · 0.01 · off", "8k · 0.1 · off")]
    found = doe.analyze(
        table,
        "loss",
        factors=["vocab", "lr", "aug"],
        whole_plot=["tray"],
        goal="min",
        beats=asked,
    )
    between, within = found.analysis.beats
    assert (between.basis, between.probability) == ("nothing", None)
    assert within.probability is not None
    assert "is not known: replicates share whole plots" in headlines(found.analysis).best
    advice = [f.advice for f in found.analysis.diagnostics.findings]
    assert not any("confounded with the tray" in text for text in advice)


def test_the_command_to_try_names_the_whole_plots(tmp_path: Path) -> None:
    table = frame(4)
    table["loss"] = np.exp(2 * table["loss"])
    table.to_csv(tmp_path / "t.csv", index=False)
    words = ["analyze", "--table", str(tmp_path / "t.csv"), "--factors", "vocab,lr,aug"]
    words += ["--block", "day", "--whole-plot", "vocab", "--goal", "min", "-r", "loss"]
    shown = " ".join(CliRunner().invoke(app, words).output.split())
    assert "--block day --whole-plot vocab --goal min --response loss --transform" in shown
    assert "Left out, for runs that share an error" in shown
    assert "dispersion table" not in shown


def test_every_analysis_that_is_left_out_is_named() -> None:
    table = pd.concat([frame(), frame().assign(lr=0.055)], ignore_index=True)
    table["acc"] = (table["loss"] / 20).clip(0, 1)
    found = doe.analyze(
        table,
        "acc",
        factors=["vocab", "lr"],
        whole_plot=["tray"],
        scale={"acc": "logit"},
        of={"acc": 1000},
        terms=["vocab", "lr", "lr^2"],
    ).analysis
    (sentence,) = (w for w in found.warnings if "Left out" in w)
    named = "Box and Meyer's probabilities, the quasi-binomial model and the surface and its"
    assert named in sentence
    assert found.surface is None
    assert {*found.estimates.values()} == {None}


def test_there_is_no_surface_where_runs_share_an_error() -> None:
    with pytest.raises(DoeError, match="it assumes independent runs, and these share whole plots"):
        doe.analyze(frame(), "loss", factors=["vocab", "lr"], whole_plot=["vocab"], optimize=True)


@pytest.mark.parametrize(
    ("named", "message"),
    [
        (["vocab", "lr", "aug"], "name every factor"),
        (["loss"], "24 whole plots of 24 runs"),
        (["nothing"], "nothing"),
    ],
)
def test_whole_plots_that_cannot_be_are_said(named: list[str], message: str) -> None:
    with pytest.raises(DoeError, match=message):
        doe.analyze(frame(), "loss", factors=["vocab", "lr", "aug"], whole_plot=named)


def groups_of(text: str) -> dict[str, int]:
    study = parse_study(text.encode())
    runs = planned_runs(study, make_design(study).runs)
    model = make_model(runs, [1, 2, 4, 3])
    return {group.name: int(group.of.max()) + 1 for group in random_groups(model)}


def test_a_study_has_its_whole_plots_and_its_random_conditions() -> None:
    hard = STUDY.format(replicates=3, vocab="hard = true", further="")
    assert groups_of(hard) == {"whole plot": 6}
    condition = 'role = "condition"\nrandom = true'
    random = STUDY.format(replicates=3, vocab=condition, further="")
    assert groups_of(random) == {"vocab": 2, "vocab × lr": 4, "vocab × aug": 4}


def test_a_plan_says_what_has_no_error_and_how_many_would_do(tmp_path: Path) -> None:
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(replicates=1, vocab="hard = true", further=""), "utf-8")
    shown = CliRunner().invoke(app, ["plan", str(file), "--out", str(tmp_path / "out")])
    text = " ".join(shown.output.split())
    assert "No error for vocab: 2 whole plots leave no degrees of freedom for it" in text
    assert "the error between runs does not apply. 2 replicates would leave 1" in text


def test_replicates_that_share_the_executions_of_a_stage_are_no_remedy(tmp_path: Path) -> None:
    stage = '[stages.tokens]\nfunction = "m:f"\nfactors = ["vocab"]\nseed = "none"'
    file = tmp_path / "study.toml"
    file.write_text(STUDY.format(replicates=2, vocab="", further=stage), "utf-8")
    shown = CliRunner().invoke(app, ["plan", str(file), "--out", str(tmp_path / "out")])
    text = " ".join(shown.output.split())
    assert "No error for vocab: 2 tokens executions leave no degrees of freedom for it" in text
    assert 'All replicates use the same executions; seed = "replicate" would add some.' in text


def test_power_is_told_for_each_stratum(tmp_path: Path) -> None:
    file, out = tmp_path / "study.toml", str(tmp_path / "out")
    file.write_text(STUDY.format(replicates=3, vocab="hard = true", further=""), "utf-8")
    runner = CliRunner()
    assert runner.invoke(app, ["plan", str(file), "--out", out]).exit_code == 0
    shown = runner.invoke(app, ["power", "--study", out, "--replicates", "3", "--json"])
    lines = {(r["replicates"], r["stratum"]): r for r in json.loads(shown.output)["designs"]}
    assert lines[1, "whole plot"]["df_error"] is None
    assert lines[3, "whole plot"]["df_error"] == pytest.approx(2.0)
    assert lines[3, "run"]["df_error"] == pytest.approx(12.0)
    assert lines[3, "whole plot"]["detectable"] > 2 * lines[3, "run"]["detectable"]


def test_each_stratum_of_a_saturated_design_has_a_line_of_lenth(tmp_path: Path) -> None:
    rng = np.random.default_rng(6)
    codes = np.array(list(np.ndindex(2, 2, 2, 2)))
    table = pd.DataFrame(codes, columns=list("ABCD"))
    table["y"] = rng.normal(size=8)[np.arange(16) // 2] + rng.normal(size=16) + 20 * table["A"]
    table.to_csv(tmp_path / "plots.csv", index=False)
    words = ["--factors", "A,B,C,D", "--whole-plot", "A,B,C", "--response", "y", "--full"]
    shown = CliRunner().invoke(app, ["analyze", "--table", str(tmp_path / "plots.csv"), *words])
    assert "Lenth's method on 7 and 8 effects" in shown.output
    whole = [line for line in shown.output.splitlines() if line.startswith("whole plots")]
    assert len(whole) == 2
    assert all(line.split()[-1] == "A" for line in whole[:1])


def test_each_stratum_with_enough_contrasts_has_a_half_normal_plot() -> None:
    rng = np.random.default_rng(9)
    codes = np.array(list(np.ndindex(2, 2, 2, 2, 2)))
    runs = np.arange(32)
    y = rng.normal(size=4)[runs // 8] + rng.normal(size=8)[runs // 4] + rng.normal(size=32)
    groups = (RandomGroup("lot", runs // 8), RandomGroup("tray", runs // 4))
    factors = tuple(FactorColumn(key, key, (0, 1)) for key in "ABCDE")
    data = Dataset(Runs(factors, codes, groups=groups), "y", y)
    found = analyze(data)
    words = [groups_data(found, n) for n in range(3)]
    assert [part and part.words["magnitude"] for part in words] == [
        "|effect| on y between lots",
        "|effect| on y between trays",
        None,
    ]
    assert half_normal_data(found).words["magnitude"] == "|effect| on y between runs"
