"""Unlike machines: no factor is confounded with a kind of GPU."""

import random
import stat
import sys

import pytest

from doe.design.runs import make_design
from doe.running.transitions import Placed, pick, unbalanced
from doe.study.values import Factor, Responses, Study

STUDY = Study(
    name="s",
    backend="m:f",
    factors=(
        *(Factor(key=key, levels=(False, True)) for key in "ABC"),
        Factor(key="D", levels=("x", "y", "z")),
    ),
    responses=Responses(("y",)),
    replicates=2,
    seeds=(1, 2),
)


def spread(balanced, seed, fast=2):
    """Runs as GPUs of two speeds take them, in a random order."""
    rng, placed = random.Random(seed), []
    for replicate in (1, 2):
        waiting = [run for run in make_design(STUDY).runs if run.replicate == replicate]
        rng.shuffle(waiting)
        while waiting:
            kind = "new" if rng.random() < fast / (fast + 1) else "old"
            run = pick(waiting, kind, placed) if balanced else waiting[0]
            waiting.remove(run)
            placed.append(Placed(run, kind))
    return placed


@pytest.mark.parametrize("fast", [1, 2, 5])
def test_levels_are_spread_over_kinds_of_machines(fast):
    trials = [spread(True, seed, fast) for seed in range(40)]
    assert not any(map(unbalanced, trials))
    assert sum(bool(unbalanced(spread(False, seed, fast))) for seed in range(40)) > 20


def test_what_could_not_be_balanced_is_named():
    runs = [run for run in make_design(STUDY).runs if run.replicate == 1]
    placed = [Placed(run, "new" if run.levels["A"] else "old") for run in runs]
    assert sorted(unbalanced(placed)) == [
        "A = false in 12 of 12 runs on old, and in 0 of 12 elsewhere",
        "A = true in 12 of 12 runs on new, and in 0 of 12 elsewhere",
    ]


def test_of_equals_the_first_is_taken():
    runs = make_design(STUDY).runs
    assert pick(runs, "new", []) == runs[0]


def test_two_unlike_gpus_share_the_levels_of_each_factor(planned, go, tmp_path, monkeypatch):
    program = tmp_path / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nprint('0, NVIDIA A100, 550\\n1, NVIDIA V100, 550', flush=True)\n"
    )
    program.chmod(program.stat().st_mode | stat.S_IEXEC)
    monkeypatch.setenv("PATH", f"{program.parent}:/usr/bin:/bin")
    plan = planned("noop", factors="ABCD")
    number, said = go(plan, asked={"gpus": "0,1"})
    assert number["done"] == 16
    assert "could not be balanced" not in said
    statuses = plan.scan()
    placed = [Placed(status.run, status.provenance["hardware"]) for status in statuses]
    assert {p.kind for p in placed} == {"NVIDIA A100", "NVIDIA V100"}
    assert unbalanced(placed) == []
