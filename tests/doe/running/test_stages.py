"""Stages: executed once for what they depend on, before the runs that need them, as runs are."""

import io
import json
import shutil
import sys

import msgspec
import pytest
from rich.console import Console

from doe.design.runs import stage_needs
from doe.errors import DoeError
from doe.running.execute import EngineChoice, execute
from doe.running.scheduler import RunOptions
from doe.store.files import StudyDir
from doe.store.plan import augment_plan, load_plan, write_plan
from doe.store.stages import content_digest
from doe.store.verdicts import Policy, read_verdict
from doe.study.values import Factor, Responses, Stage, Study
from doe.views.live import PlainDisplay
from tests.command_line import doe

STAGE = Stage(function="stage_backends:prepare", factors=("A",))


def study(backend="train", replicates=2, name="staged", stages=None, factors="AC", **further):
    return Study(
        name=name,
        backend=f"stage_backends:{backend}",
        factors=tuple(Factor(key=key, levels=(False, True)) for key in factors),
        responses=Responses(metrics=("y",)),
        replicates=replicates,
        seeds=tuple(range(1, replicates + 1)),
        stages={"data": STAGE} if stages is None else stages,
        **further,
    )


def with_settings(**settings):
    return {"data": msgspec.structs.replace(STAGE, settings=settings)}


@pytest.fixture
def planned(tmp_path):
    def plan(**further):
        asked = study(**further)
        return write_plan(asked, tmp_path / "runs" / asked.name)[0]

    return plan


def result(plan, run_id):
    return read_verdict(plan.files.run(run_id)).result


def calls(plan, run_id):
    path = plan.directory / run_id / "calls.txt"
    return len(path.read_text().split()) if path.exists() else 0


def test_a_stage_is_executed_once_for_each_level_and_replicate(planned, go):
    plan = planned()
    counts, _ = go(plan, options=RunOptions(keep_stages=True), cpu=2)
    assert counts["done"] == 8
    assert len(plan.stages) == 4
    assert [calls(plan, stage.run_id) for stage in plan.stages] == [1, 1, 1, 1]
    for run in plan.design.runs:
        (stage,) = stage_needs(plan.study, run).values()
        expected = run.levels["A"] + run.seed / 7 + 10 * run.levels["C"]
        assert result(plan, run.run_id).metrics == {"y": pytest.approx(expected)}
        used = result(plan, run.run_id).provenance["stages"]
        digest = content_digest(plan.files.run(stage).out)
        assert used == {"data": {"execution": stage, "digest": digest}}
        assert result(plan, stage).provenance["digest"] == digest


def test_runs_of_a_stage_follow_it_before_the_next_stage(planned, go):
    _, lines = go(planned(), cpu=1)
    kinds = [
        "stage" if "stage-" in line else "run" for line in lines.splitlines() if "done" in line
    ]
    assert kinds == (["stage"] + ["run"] * 2) * 4


def test_what_a_stage_left_is_removed_after_its_last_run_unless_kept(planned, go):
    plan = planned(replicates=1)
    first, second = (stage.run_id for stage in plan.stages)
    go(plan, options=RunOptions(limit=3))
    assert not plan.files.run(first).out.exists()
    assert plan.files.run(second).out.exists()
    counts, lines = go(plan)
    assert counts["done"] == 4
    assert any("removed" in line and second in line for line in lines.splitlines())
    assert not plan.files.run(second).out.exists()
    assert result(plan, second).state == "done"
    shown = doe("status", "--study", plan.directory).stdout
    assert (
        "stage data: 2 executions: 2 done; 2 removed, because no run needs their output any more"
        in " ".join(shown.split())
    )


def test_a_failed_stage_fails_its_runs_with_its_reason_and_no_others(planned, go):
    plan = planned(replicates=1, stages=with_settings(fails=True))
    counts, lines = go(plan, cpu=2)
    assert counts["done"] == counts["failed"] == 2
    bad = next(stage.run_id for stage in plan.stages if stage.levels["A"])
    for run in plan.design.runs:
        if run.levels["A"]:
            reason = result(plan, run.run_id).error.reason
            assert reason == f"{bad} failed: ValueError: no data today"
            assert calls(plan, run.run_id) == 0
    assert calls(plan, bad) == 1
    assert not any("closed" in line for line in lines.splitlines())


def test_failed_stages_and_their_runs_are_run_again_when_asked(planned, go):
    plan = planned(replicates=1, stages=with_settings(fails=True))
    go(plan)
    again, _ = go(plan, options=RunOptions(retry_failed=True))
    assert again["failed"] == 2
    bad = next(stage.run_id for stage in plan.stages if stage.levels["A"])
    good = next(stage.run_id for stage in plan.stages if not stage.levels["A"])
    assert (calls(plan, bad), calls(plan, good)) == (2, 1)
    counts, _ = go(plan)
    assert counts["failed"] == 2
    assert calls(plan, bad) == 2


def test_a_stage_that_leaves_nothing_has_failed(planned, go):
    plan = planned(replicates=1, stages=with_settings(leaves="nothing"))
    counts, _ = go(plan)
    assert counts["failed"] == 4
    reasons = {result(plan, run.run_id).error.reason for run in plan.design.runs}
    assert all("the stage data wrote nothing to request.run_dir" in reason for reason in reasons)


def test_a_stage_that_was_killed_is_tried_again(planned, go):
    plan = planned(replicates=1, stages=with_settings(once=True))
    counts, lines = go(plan)
    assert counts["done"] == 4
    assert [calls(plan, stage.run_id) for stage in plan.stages] == [2, 2]
    assert sum("will be retried" in line for line in lines.splitlines()) == 2


def test_a_time_limit_of_runs_is_none_of_stages(planned, go):
    hanging = msgspec.structs.replace(STAGE, settings={"seconds": 30.0}, timeout=0.5)
    plan = planned(replicates=1, stages={"data": hanging})
    counts, _ = go(plan, options=RunOptions(policy=Policy(retries=0), timeout=600.0))
    assert counts["failed"] == 4
    assert "took longer than 0.5 s" in result(plan, plan.design.runs[0].run_id).error.reason


def test_stages_before_stages(planned, go):
    first = Stage(function="stage_backends:prepare", factors=("B",))
    later = msgspec.structs.replace(STAGE, needs=("raw",))
    plan = planned(factors="ABC", stages={"data": later, "raw": first})
    counts, _ = go(plan, options=RunOptions(keep_stages=True), cpu=2)
    assert counts["done"] == 16
    assert {stage.stage: 0 for stage in plan.stages} == {"raw": 0, "data": 0}
    assert len(plan.stages) == 2 * 2 + 4 * 2
    assert all(calls(plan, stage.run_id) == 1 for stage in plan.stages)
    for stage in plan.stages:
        if stage.stage == "data":
            (raw,) = result(plan, stage.run_id).provenance["stages"].values()
            assert raw["digest"] == result(plan, raw["execution"]).provenance["digest"]


def test_a_limit_begins_no_stage_for_runs_that_do_not_start(planned, go):
    plan = planned()
    counts, _ = go(plan, options=RunOptions(limit=2), cpu=2)
    assert counts["done"] == 2
    assert sum(calls(plan, stage.run_id) for stage in plan.stages) == 1


def test_only_stages_of_the_chosen_runs_are_executed(planned, go):
    plan = planned()
    go(plan, options=RunOptions(only=("A1C0",), keep_stages=True))
    executed = [stage.levels["A"] for stage in plan.stages if calls(plan, stage.run_id)]
    assert executed == [True, True]


def test_a_stage_that_was_removed_is_executed_again_for_further_runs(planned, go):
    once = msgspec.structs.replace(STAGE, seed="none")
    plan = planned(replicates=1, stages={"data": once})
    go(plan)
    assert [calls(plan, stage.run_id) for stage in plan.stages] == [1, 1]
    longer = augment_plan(plan.directory, "1")
    counts, _ = go(longer)
    assert counts["done"] == 8
    assert longer.stages == plan.stages
    assert [calls(plan, stage.run_id) for stage in plan.stages] == [2, 2]


def test_a_product_that_vanishes_is_made_again(planned, go):
    plan = planned(replicates=1)
    go(plan, options=RunOptions(limit=1, keep_stages=True))
    stage = next(stage for stage in plan.stages if calls(plan, stage.run_id))
    shutil.rmtree(plan.files.run(stage.run_id).out)
    counts, _ = go(plan)
    assert counts["done"] == 4
    assert calls(plan, stage.run_id) == 2


class Overtaken(PlainDisplay):
    """A display during whose first picture another scheduler does all the rest."""

    def __init__(self, overtake):
        super().__init__(Console(file=io.StringIO()))
        self.overtake = overtake

    def show(self, snapshot):
        overtake, self.overtake = self.overtake, lambda: None
        overtake()


def test_a_scheduler_that_was_overtaken_executes_no_stage_again(planned, go):
    plan = planned(replicates=1)
    display = Overtaken(lambda: go(plan))
    done = execute(plan, RunOptions(), EngineChoice("local", {"cpu": 1}), display)
    assert done.counts["done"] == 4
    assert [calls(plan, stage.run_id) for stage in plan.stages] == [1, 1]
    assert not any(plan.files.run(stage.run_id).out.exists() for stage in plan.stages)


def test_another_study_takes_a_stage_over(planned, go):
    reused = {"data": msgspec.structs.replace(STAGE, reuse=True)}
    first = planned(name="first", replicates=1, stages=reused)
    go(first)
    assert all(first.files.run(stage.run_id).out.exists() for stage in first.stages)
    second = planned(name="second", replicates=1, stages=reused)
    counts, _ = go(second)
    assert counts["done"] == 4
    for stage in second.stages:
        assert calls(second, stage.run_id) == 0
        facts = result(second, stage.run_id).provenance
        assert facts["reused"] == f"first/{stage.run_id}"
        assert facts["digest"] == result(first, stage.run_id).provenance["digest"]
    status = doe("status", "--study", second.directory).stdout
    assert "2 taken over, as from first/stage-data-" in " ".join(status.split())
    changed = {"data": msgspec.structs.replace(reused["data"], settings={"x": 1})}
    other = planned(name="third", replicates=1, stages=changed)
    go(other)
    assert all(calls(other, stage.run_id) == 1 for stage in other.stages)


def test_a_stage_with_a_link_is_taken_over_with_the_link(planned, go, tmp_path):
    data = tmp_path / "data"
    data.mkdir()
    (data / "large.bin").write_text("of everybody")
    settings = {"linked": str(data)}
    reused = {"data": msgspec.structs.replace(STAGE, reuse=True, settings=settings)}
    go(planned(name="first", stages=reused, replicates=1))
    second = planned(name="second", stages=reused, replicates=1)
    go(second)
    for stage in second.stages:
        assert calls(second, stage.run_id) == 0
        assert (second.files.run(stage.run_id).out / "data").readlink() == data


def test_a_stage_that_was_tampered_with_is_not_taken_over(planned, go):
    reused = {"data": msgspec.structs.replace(STAGE, reuse=True)}
    first = planned(name="first", stages=reused, replicates=1)
    go(first)
    for stage in first.stages:
        (first.files.run(stage.run_id).out / "value.txt").write_text("99")
    second = planned(name="second", stages=reused, replicates=1)
    go(second)
    assert all(calls(second, stage.run_id) == 1 for stage in second.stages)


def test_a_backend_that_never_looks_at_its_stage_is_told(planned, go):
    plan = planned(backend="blind", replicates=1)
    _, lines = go(plan)
    assert any(
        "the backend never read stage.data in its first run" in line for line in lines.splitlines()
    )
    assert not any("never read A" in line for line in lines.splitlines())


def test_a_stage_that_was_changed_is_not_mixed_with_what_was_done(planned, go):
    plan = planned(replicates=1)
    go(plan, options=RunOptions(limit=1))
    with pytest.raises(DoeError) as refused:
        planned(replicates=1, stages=with_settings(seconds=0.1))
    assert "of which 2 of 6 runs and executions of stages have begun" in str(refused.value)


def test_stages_may_change_before_anything_has_begun(planned):
    planned(replicates=1)
    plan = planned(replicates=1, stages={})
    assert load_plan(plan.directory).stages == ()


COMMANDS = """
name = "commands"
backend = "command"
command = "python train.py {stage.tokens} {lr} {run_dir}"
replicates = 2
[factors.vocab]
levels = [10, 20]
[factors.lr]
low = 0.1
high = 1.0
[responses]
metrics = ["loss"]
[stages.tokens]
command = "python prepare.py {vocab} {seed} {scale} {stage_dir}"
factors = ["vocab"]
[stages.tokens.settings]
scale = 2
"""
PREPARE = """
import pathlib, sys
vocab, seed, scale, out = sys.argv[1:]
print("preparing", vocab)
pathlib.Path(out, "tokens.txt").write_text(str(int(vocab) * int(scale) + int(seed)))
"""
TRAIN = """
import json, pathlib, sys
tokens, lr, out = sys.argv[1:]
number = float(pathlib.Path(tokens, "tokens.txt").read_text())
pathlib.Path(out, "metrics.json").write_text(json.dumps({"loss": number + float(lr)}))
"""


@pytest.fixture
def commands(tmp_path):
    text = COMMANDS.replace('"python ', f'"{sys.executable} ')
    (tmp_path / "study.toml").write_text(text)
    (tmp_path / "prepare.py").write_text(PREPARE)
    (tmp_path / "train.py").write_text(TRAIN)
    return tmp_path


def test_commands_from_plan_to_results(commands):
    said = " ".join(doe("plan", cwd=commands).stdout.split())
    assert (
        "Stage tokens, for each level of vocab: 4 executions for 8 runs; without sharing 8." in said
    )
    doe("run", "--cpu", "2", "--keep-stages", cwd=commands)
    plan = load_plan(commands / "runs" / "commands")
    for run in plan.design.runs:
        expected = 2 * run.levels["vocab"] + run.seed + run.levels["lr"]
        assert result(plan, run.run_id).metrics == {"loss": pytest.approx(expected)}
    stage = plan.stages[0]
    assert "prepare.py" in result(plan, stage.run_id).provenance["files"]
    assert "preparing" in doe("logs", stage.run_id, cwd=commands).stdout
    told = doe("plan", "study.toml", cwd=commands).stdout
    assert "each:" in told
    state = json.loads(doe("status", "--json", cwd=commands).stdout)["stages"]
    assert [(s["name"], s["executions"], s["runs"], s["removed"]) for s in state] == [
        ("tokens", 4, 8, 0)
    ]


def test_a_trial_runs_the_stage_first(commands):
    said = doe("try", cwd=commands).stdout
    assert said.index("preparing") < said.index("Metrics found")
    flat = " ".join(said.split())
    assert "for 4 executions," in flat
    assert "without sharing." in flat
    assert not (commands / "runs").exists()


def test_a_trial_whose_stage_leaves_nothing_says_so(commands):
    (commands / "prepare.py").write_text("print('nothing')")
    said = doe("try", cwd=commands, code=3).stdout
    assert "Failed: stage tokens: it wrote nothing." in said


def test_a_study_with_stages_is_moved_and_goes_on(planned, go, tmp_path):
    plan = planned(replicates=1)
    go(plan, options=RunOptions(limit=2, keep_stages=True))
    moved = tmp_path / "elsewhere"
    plan.directory.rename(moved)
    counts, _ = go(load_plan(moved))
    assert counts["done"] == 4
    assert all(calls(load_plan(moved), s.run_id) == 1 for s in plan.stages)
    assert StudyDir(moved).study.exists()
