"""Designs that fit a budget: sizes, times, what they see, and planning one of them."""

import io
import json
import re
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from msgspec import structs
from rich.console import Console

from benchmarks.looks import batch_looks, in_parts, judged
from doe.design.power import DesignSize, power
from doe.errors import DoeError
from doe.results.budget import (
    Budget,
    Known,
    known_of,
    offers,
    read_budget,
    suggestion,
    time_model,
    two_levels,
)
from doe.store.plan import Plan, load_plan, write_plan
from doe.store.scan import RunStatus, scan
from doe.store.verdicts import Result
from doe.study.file import dump_study, load_study
from doe.study.values import Factor, Responses, Study
from doe.views.plan_tables import budget_tables
from doe.views.terminal import render_table
from tests.command_line import doe

NOTHING = Known(None, {}, "")
ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize(
    ("text", "budget"),
    [
        ("40h", Budget(144000.0, None)),
        ("90 min", Budget(5400.0, None)),
        ("1.5d", Budget(129600.0, None)),
        ("40 days", Budget(3456000.0, None)),
        ("200", Budget(None, 200)),
        ("200 runs", Budget(None, 200)),
    ],
)
def test_a_budget_is_time_or_runs(text, budget):
    assert read_budget(text) == budget


@pytest.mark.parametrize("text", ["", "0", "-4h", "h", "0h", "40 weeks", "1e3h"])
def test_what_is_no_budget_is_refused(text):
    with pytest.raises(DoeError, match="expected a time such as 40h"):
        read_budget(text)


def test_more_runs_than_a_study_has_are_refused():
    with pytest.raises(DoeError, match="at most 131072 runs"):
        read_budget("1000000")


def test_designs_fit_and_the_clearest_comes_first():
    found = offers(two_levels(5), Budget(None, 64), NOTHING)
    assert found[0].design.startswith("full factorial, 2 replicates")
    assert all(offer.runs <= 64 for offer in found)
    assert {offer.runs for offer in found} >= {64}
    tiers = [min(o.resolution, 5) for o in found]
    assert tiers == sorted(tiers, reverse=True)
    clear = [o.detectable[0] for o in found if o.resolution >= 5]
    assert clear == sorted(clear)
    sequential = [o for o in found if o.study.stopping]
    assert [o.study.stopping.max_replicates for o in sequential] == [2]
    half = next(o for o in found if o.design.startswith("1/2"))
    assert half.study.replicates == 4
    assert "resolution V" in half.confounded


def test_power_of_the_table_is_that_of_simulated_studies():
    """80 and 90 % within 2 points, by 20 000 simulated tests of one effect."""
    offer = offers(two_levels(4), Budget(None, 48), NOTHING)[0]
    rng = np.random.default_rng(1)
    size = DesignSize(16, 3, 1, 10)
    assert offer.runs == size.runs
    from scipy import stats

    for effect, aimed in zip(offer.detectable, (0.8, 0.9), strict=True):
        z = effect + 2 / np.sqrt(48) * rng.standard_normal(20_000)
        se = 2 * np.sqrt(rng.chisquare(size.df_error, 20_000) / size.df_error / 48)
        seen = (np.abs(z / se) > stats.t.isf(0.025, size.df_error)).mean()
        assert seen == pytest.approx(aimed, abs=0.02)
        assert power(effect, 1.0, size) == pytest.approx(aimed, abs=1e-6)


@pytest.mark.parametrize(("factors", "budget"), [(3, 48), (4, 48)])
def test_what_looks_detect_is_what_simulated_studies_call(factors, budget):
    """Of a design that may stop: one effect beside inert terms, over all looks."""
    found = offers(two_levels(factors), Budget(None, budget), NOTHING)
    (offer,) = (o for o in found if o.study.stopping)
    plan = in_parts(factors, offer.study.replicates)
    cell, rng = plan.runs[0], np.random.default_rng(1)
    for effect, aimed in zip(offer.detectable, (0.8, 0.9), strict=True):
        y = rng.standard_normal((len(cell), 4000)) + effect * (cell & 1)[:, None]
        called = judged(plan, batch_looks(plan, y), len(plan.masks), (len(plan.masks), 4000))
        assert (called.effect[0] > 0).mean() == pytest.approx(aimed, abs=0.03)


@pytest.mark.parametrize("words", [("200", "runs"), ("200runs",), ("200 runs",), ("200",)])
def test_a_budget_may_be_two_words(tmp_path, words):
    (tmp_path / "timed.toml").write_text(dump_study(timed_study()))
    for call in (("plan", "timed.toml"), ("suggest", "--factors", "3")):
        told = json.loads(doe(*call, "--budget", *words, "--json", cwd=tmp_path).stdout)
        assert max(design["runs"] for design in told["designs"]) == 200


def test_eleven_factors_fit_into_twelve_runs():
    (found,) = offers(two_levels(11), Budget(None, 12), NOTHING)
    assert (found.design, found.runs) == ("Plackett–Burman, 1 replicate", 12)
    assert found.confounded == "main effects partly with interactions"
    assert "Lenth" in suggestion([found])[1]
    assert 'kind = "screening"' in doe("suggest", "--factors", "11", "--budget", "12").stdout


def test_seven_factors_in_24_runs_is_a_fraction_of_resolution_four():
    found = offers(two_levels(7), Budget(None, 24), NOTHING)
    number, reason = suggestion(found)
    assert found[number].runs == 16
    assert "resolution IV" in reason
    assert reason.endswith("It leaves 8 runs to follow up what is confounded.")
    output = doe("suggest", "--factors", "7", "--budget", "24").stdout
    assert 'fraction = "' in output
    assert "Suggested:" in output


def test_one_factor_is_compared_with_nothing_but_itself():
    found = offers(two_levels(1), Budget(None, 12), NOTHING)
    assert {offer.runs for offer in found} == {12}


def test_the_design_that_a_study_names_comes_first():
    """A surface beside the factorials that would take its place."""
    ranges = tuple(Factor(key=key, levels=(0.0, 1.0)) for key in "ABC")
    surface = structs.replace(timed_study(), factors=ranges, design={"kind": "surface"})
    own, *others = offers(surface, Budget(None, 60), NOTHING)
    assert (own.design, own.study.design) == ("as in the study, 3 replicates", {"kind": "surface"})
    assert own.runs == 54
    assert others[0].study.design == {}


def test_what_each_response_shows_is_a_table_of_its_own():
    """Wide enough to read at 80 columns; of logarithms it is a share."""
    found = offers(two_levels(3), Budget(None, 48), NOTHING)
    known = Known(None, {"acc": 0.5, "loss": 0.1}, "", 1, frozenset(["loss"]))
    designs, sizes = budget_tables(found, known)
    text = cell_lines(render_table(designs, 80))
    assert "main effects with" in text
    one = found[0].detectable
    rows = {row.values[:2]: row.values[2] for row in sizes.rows}
    assert rows["acc", "80 %"] == pytest.approx(0.5 * one[0])
    assert rows["loss, %", "90 %"] == pytest.approx(100 * (np.exp(0.1 * one[1]) - 1))
    assert budget_tables(found, NOTHING) == (designs,)


def cell_lines(drawn):
    screen = Console(width=80, file=io.StringIO())
    screen.print(drawn)
    return screen.file.getvalue()


def test_the_spread_of_what_is_analysed_as_a_logarithm_is_that_of_the_logarithm(
    tmp_path, monkeypatch
):
    answers = Responses(metrics=("y",), scale="log")
    study = structs.replace(timed_study(), responses=answers, replicates=20, seeds=(*range(1, 21),))
    plan = write_plan(study, tmp_path / "log")[0]
    rng = np.random.default_rng(1)
    done = [
        RunStatus(run, "done", Result("done", {"y": np.exp(0.3 * rng.standard_normal())}))
        for run in plan.design.runs
    ]
    monkeypatch.setattr(Plan, "scan", lambda self: done)
    known = known_of(plan.directory, study, "1s", None, 1)
    assert known.sigmas["y"] == pytest.approx(0.3, abs=0.05)
    assert known.logarithms == {"y"}


def timed_study(seconds=0.0):
    return Study(
        name="timed",
        backend="tiny_backends:noisy",
        factors=tuple(Factor(key=key, levels=(False, True)) for key in "ABC"),
        responses=Responses(metrics=("y",)),
        replicates=2,
        seeds=(1, 2),
        settings={"seconds": seconds},
    )


def test_time_and_spread_come_from_finished_runs(tmp_path, monkeypatch):
    """Also where a study was run in part and is asked again; line N is then planned."""
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "timed.toml"
    file.write_text(dump_study(timed_study()))
    assert "the time of a run is not known" in doe("plan", file, "--budget", "1h", code=1).stderr
    write_plan(timed_study(), tmp_path / "runs" / "timed")
    doe("run", "--study", "runs/timed", "--cpu", "1", "--limit", "13")
    again = json.loads(doe("plan", file, "--budget", "1h", "--json").stdout)
    assert "time from 13 finished runs" in again["known"]
    assert again["sigma"]["y"] == pytest.approx(0.5, abs=0.35)
    hours = [design["hours"] for design in again["designs"]]
    assert all(0 < each <= 1 for each in hours)
    choose = ("plan", file, "--budget", "1h", "--choose", again["designs"][-1]["number"])
    assert "runs have begun" in " ".join(doe(*choose, code=1).stderr.split())
    doe(*choose, "--out", "runs/whole")  # the time is that of the pilot
    assert len(load_plan(tmp_path / "runs" / "whole").design.runs) == again["designs"][-1]["runs"]
    doe("run", "--study", "runs/timed", "--cpu", "1")
    whole = load_plan(tmp_path / "runs" / "timed")
    assert all(status.state == "done" for status in whole.scan())


def test_a_line_of_the_table_is_planned(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "timed.toml"
    file.write_text(dump_study(timed_study()))
    table = json.loads(doe("plan", file, "--budget", "40 runs", "--json").stdout)
    line = next(d for d in table["designs"] if d["design"].startswith("1/2"))
    doe("plan", file, "--budget", "40 runs", "--choose", str(line["number"]))
    plan = load_plan(tmp_path / "runs" / "timed")
    assert len(plan.design.runs) == line["runs"] == 40
    assert plan.study.fraction == line["fraction"]
    assert (
        "expected one of 1 "
        in doe("plan", file, "--budget", "40runs", "--choose", "99", code=1).stderr
    )


def test_factors_that_change_the_time_are_counted(tmp_path):
    """A run of A takes 3 s and any other 1 s: half of each is 2 s on average."""

    class Timed:
        def __init__(self, run, seconds):
            self.run, self.seconds, self.provenance = run, seconds, {}

    runs = load_plan(write_plan(timed_study(), tmp_path / "t")[0].directory).design.runs
    model = time_model([Timed(run, 1.0 + 2.0 * run.levels["A"]) for run in runs[:7]])
    assert [model(run) for run in runs] == pytest.approx([1.0 + 2.0 * r.levels["A"] for r in runs])


@pytest.mark.parametrize("study", ["examples/readings", "examples/tokens", "runs/pit-small"])
def test_hours_planned_from_sixteen_runs_are_those_that_the_whole_took(study):
    """Within 15 % of the clock, of three studies that have run; one has a stage."""
    directory = next((ROOT / study).rglob("design.csv")).parent
    plan = load_plan(directory)
    timed, stages = plan.scan(), scan(plan.files, plan.stages)
    ends = [
        [datetime.fromisoformat(s.provenance[k]) for k in ("start", "end")] for s in timed + stages
    ]
    took = (max(end for _, end in ends) - min(start for start, _ in ends)).total_seconds()
    timed.sort(key=lambda status: status.provenance["end"])
    seconds = time_model(timed[:16])
    stage = sum(status.seconds for status in stages[:3]) / 3
    planned = sum(map(seconds, plan.design.runs)) + stage * len(stages)
    places = len({status.provenance["slot"] for status in timed})
    assert planned / places == pytest.approx(took, rel=0.15)


def test_a_declared_time_says_what_fits():
    known = known_of(None, two_levels(4), "90s", 0.3, 2)
    found = offers(two_levels(4), read_budget("2h"), known)
    assert all(offer.hours <= 2.0 for offer in found)
    full = next(o for o in found if o.design.startswith("full"))
    assert full.runs == 160
    assert full.hours == pytest.approx(160 * 90 / 3600 / 2)
    assert re.search(r"σ = 0\.3 as declared", known.words)


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--budget", "3"), "the smallest takes 4 runs"),
        (("--budget", "8", "--run-time", "soon"), "expected it as in 90s or 2h"),
        (("--budget", "8", "--sigma", "0"), "expected a positive standard deviation"),
        (("--budget", "8", "--replicates", "2"), "remove those options"),
        (("--slots", "2"), "need budget"),
    ],
)
def test_what_cannot_be_planned_is_refused_in_a_sentence(tmp_path, words, sentence):
    (tmp_path / "timed.toml").write_text(dump_study(timed_study()))
    told = doe("plan", "timed.toml", *words, cwd=tmp_path, code=1).stderr
    assert sentence in " ".join(told.split())
    assert told.count("error:") == 1


def test_a_design_that_may_stop_is_looked_at_no_more_often_than_was_simulated():
    found = offers(two_levels(2), Budget(None, 200), NOTHING)
    fixed, stopping = (o for o in found if o.design.startswith("full"))
    assert (fixed.study.replicates, stopping.study.replicates) == (50, 20)
    assert stopping.runs == 80
    assert stopping.detectable[0] > fixed.detectable[0]


STAGED = """
name = "staged"
backend = "tiny_backends:noisy"
replicates = 2
seeds = [1, 2]
[factors.A]
low = false
high = true
[factors.B]
low = false
high = true
[factors.C]
low = false
high = true
[responses]
metrics = ["y"]
[settings]
seconds = 0.5
[stages.data]
function = "tiny_backends:slow_stage"
factors = ["B"]
[stages.once]
function = "tiny_backends:slow_stage"
seed = "none"
"""


def test_a_stage_counts_once_however_many_runs_share_it(tmp_path):
    """Runs of 30 s, stages of 60 s: one once, one for each level of B and each replicate."""
    (tmp_path / "staged.toml").write_text(STAGED)
    study = load_study(tmp_path / "staged.toml")
    known = Known(lambda run: 60.0 if run.stage else 30.0, {}, "")
    full = next(
        o for o in offers(study, Budget(3600.0, None), known) if o.design.startswith("full")
    )
    assert full.study.replicates == 9  # the tenth would take 3660 s
    assert full.hours * 3600 == pytest.approx(60 + 9 * (8 * 30 + 2 * 60))
    told = doe("plan", "staged.toml", "--budget", "1h", "--run-time", "1s", cwd=tmp_path, code=1)
    assert "the time of stage once is not known" in " ".join(told.stderr.split())


def test_the_time_of_a_stage_is_that_of_its_executions(tmp_path):
    (tmp_path / "staged.toml").write_text(STAGED.replace("seconds = 0.5", "seconds = 0.0"))
    doe("plan", "staged.toml", cwd=tmp_path)
    doe("run", "--cpu", "2", "--replicate", "1", cwd=tmp_path)
    study = load_study(tmp_path / "staged.toml")
    known = known_of(tmp_path / "runs" / "staged", study, "10s", None, 1)
    plan = load_plan(tmp_path / "runs" / "staged")
    made = [s.seconds for s in scan(plan.files, plan.stages) if s.seconds and s.run.stage == "data"]
    assert [known.seconds(run) for run in plan.stages if run.stage == "data"] == pytest.approx(
        [sum(made) / len(made)] * 4
    )


def test_terms_of_stages_are_seen_by_their_own_error(tmp_path):
    (tmp_path / "staged.toml").write_text(STAGED)
    study = load_study(tmp_path / "staged.toml")
    few, many = (offers(study, Budget(None, n), NOTHING)[0] for n in (8, 64))
    assert few.detectable == (None, None)
    plain = offers(timed_study(), Budget(None, 64), NOTHING)[0]
    assert many.detectable[0] > plain.detectable[0]


def test_common_seeds_save_what_replicates_vary(tmp_path, monkeypatch):
    """Replicates that differ with variance 3 beside an error of 1: 3 of 4 runs."""
    from doe.results import designs

    study = structs.replace(timed_study(), replicates=40, seeds=tuple(range(1, 41)))
    plan = write_plan(study, tmp_path / "seeds")[0]
    assert designs.common_seed_savings(plan) == {}  # nothing has run
    rng = np.random.default_rng(1)
    shift = np.sqrt(3.0) * rng.standard_normal(41)
    done = [
        RunStatus(run, "done", Result("done", {"y": shift[run.replicate] + rng.standard_normal()}))
        for run in plan.design.runs
    ]
    monkeypatch.setattr(Plan, "scan", lambda self: done)
    assert designs.common_seed_savings(plan)["y"] == pytest.approx(0.75, abs=0.08)
