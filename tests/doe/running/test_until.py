"""`doe run --until decided`: stops by its rule, however often it is killed."""

import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from benchmarks.stopping import replay
from doe.cli import app
from doe.results.decision import decision
from doe.store.files import StudyDir
from doe.store.plan import augment_plan, load_plan, write_plan
from doe.study.values import Factor, Responses, Study

invoke = CliRunner().invoke
TERMS = "A,B,C,AB"


def noisy(directory, seconds=0.0, replicates=1, matters=1.0):
    """Plan a study of three factors of which A alone does something."""
    study = Study(
        name="noisy",
        backend="tiny_backends:noisy",
        factors=tuple(Factor(key=key, levels=(False, True)) for key in "ABC"),
        responses=Responses(metrics=("y",), matters={"y": matters} if matters else {}),
        replicates=replicates,
        seeds=tuple(range(1, replicates + 1)),
        settings={"seconds": seconds},
    )
    return write_plan(study, directory)[0]


def words(directory):
    stop = ["--until", "decided", "--decide", TERMS, "--max-replicates", "8"]
    return ["run", "--study", str(directory), "--cpu", "2", *stop]


def start(directory):
    code = "from doe.cli import main; main()"
    call = [sys.executable, "-c", code, *words(directory)]
    return subprocess.Popen(
        call, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )


def reached_in(directory):
    plan = load_plan(directory)
    return decision(plan.study, plan.scan())


def outcome(directory):
    """The study's own files and every run's metrics."""
    files = StudyDir(directory)
    statuses = load_plan(directory).scan()
    metrics = {s.run.run_id: (s.state, s.result and s.result.metrics) for s in statuses}
    return files.study.read_text(), files.design.read_text(), metrics


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """The study left alone; no test changes it."""
    directory = noisy(tmp_path_factory.mktemp("until") / "alone", seconds=0.05).directory
    result = invoke(app, words(directory))
    assert result.exit_code == 0, result.output
    assert "no further replicate is run" in result.output
    return directory


def test_it_stops_when_all_is_decided_and_starts_no_more(alone):
    plan = load_plan(alone)
    reached = reached_in(alone)
    assert reached.is_final
    assert not reached.open
    assert 2 < reached.replicates < 8
    assert len(plan.design.runs) == 8 * reached.replicates
    verdicts = {term.term: term.state.verdict for term in reached.terms}
    assert verdicts == {"A": "effect", "B": "negligible", "C": "negligible", "AB": "negligible"}
    before = outcome(alone)
    again = invoke(app, ["run", "--study", str(alone), "--cpu", "2"])
    assert again.exit_code == 0
    assert outcome(alone) == before


def test_killed_five_times_it_ends_as_if_left_alone(tmp_path, alone):
    directory = noisy(tmp_path / "killed", seconds=0.05).directory
    done = 0
    for _ in range(5):
        process = start(directory)
        deadline = time.monotonic() + 60.0
        while process.poll() is None and time.monotonic() < deadline:
            ended = len(list(directory.glob("*/result.json")))
            if ended > done + 3:
                break
            time.sleep(0.01)
        assert process.poll() is None, process.communicate()[0]
        done = ended
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
    process = start(directory)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output
    assert outcome(directory)[1:] == outcome(alone)[1:]
    text, other = (outcome(d)[0].replace("killed", "alone") for d in (directory, alone))
    assert text == other


def test_two_schedulers_agree(tmp_path, alone):
    directory = noisy(tmp_path / "both", seconds=0.05).directory
    processes = [start(directory) for _ in range(2)]
    outputs = [process.communicate(timeout=120)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert outcome(directory) == outcome(alone)


def test_another_rule_is_refused_once_one_is_declared(alone):
    result = invoke(app, [*words(alone)[:-1], "6"])
    assert result.exit_code == 1
    assert "a rule that changes on the way is none" in str(result.exception or result.output)


def test_what_is_open_at_the_last_replicate_stays_open(tmp_path):
    directory = noisy(tmp_path / "open", replicates=3, matters=None).directory
    result = invoke(app, ["run", "--study", str(directory), "--cpu", "2", "--until", "decided"])
    assert result.exit_code == 0, result.output
    reached = reached_in(directory)
    assert reached.replicates == reached.rule.max_replicates == 3
    assert "The last replicate is complete" in result.output


def test_planned_replicates_that_are_not_needed_stay_pending(tmp_path):
    directory = noisy(tmp_path / "early", replicates=6, matters=3.0).directory
    asked = ["run", "--study", str(directory), "--cpu", "2", "--until", "decided"]
    assert invoke(app, [*asked, "--decide", "A"]).exit_code == 0
    reached = reached_in(directory)
    assert reached.replicates < 6
    status = invoke(app, ["status", "--study", str(directory)]).output
    assert "pending" in status
    assert "no further replicate is run" in status
    report = invoke(app, ["analyze", "--study", str(directory), "-r", "y"]).output
    assert "know the looks" in report.replace("\n", " ").replace("  ", " ")


def test_detaching_is_refused(tmp_path):
    directory = noisy(tmp_path / "far").directory
    result = invoke(app, [*words(directory), "--detach"])
    assert result.exit_code == 1


def test_p_values_know_the_looks_and_an_undeclared_look_is_warned_of(tmp_path):
    import doe

    plain = noisy(tmp_path / "plain", replicates=3).directory
    declared = noisy(tmp_path / "declared", replicates=3).directory
    asked = ["run", "--cpu", "2", "--study"]
    assert invoke(app, [*asked, str(plain), "--replicate", "1"]).exit_code == 0
    assert invoke(app, [*asked, str(plain), "--replicate", "2"]).exit_code == 0
    early = doe.analyze(plain, "y").analysis
    assert any("did not declare" in warning for warning in early.warnings)
    assert invoke(app, [*asked, str(plain)]).exit_code == 0
    whole = doe.analyze(plain, "y").analysis
    assert not any("declare" in warning for warning in whole.warnings)
    stop = ["--until", "decided", "--decide", "ABC"]
    assert invoke(app, [*asked, str(declared), *stop]).exit_code == 0
    looked = doe.analyze(declared, "y").analysis
    assert any("know the looks" in warning for warning in looked.warnings)
    for a, b in zip(looked.effects, whole.effects, strict=True):
        assert a.effect == pytest.approx(b.effect)
        assert a.p >= b.p or a.p > 0.05  # an earlier look may have seen more
        assert a.ci_high - a.ci_low > b.ci_high - b.ci_low
    augment_plan(plain, "1")
    assert invoke(app, [*asked, str(plain)]).exit_code == 0
    assert any(
        "were added to the first plan" in w for w in doe.analyze(plain, "y").analysis.warnings
    )


def test_a_replay_of_all_runs_stops_where_the_study_would_have(tmp_path):
    stopped = noisy(tmp_path / "stopped", replicates=6, matters=2.0).directory
    whole = noisy(tmp_path / "whole", replicates=6, matters=2.0).directory
    asked = ["run", "--cpu", "2", "--study"]
    assert invoke(app, [*asked, str(stopped), "--until", "decided"]).exit_code == 0
    assert invoke(app, [*asked, str(whole)]).exit_code == 0
    reached = reached_in(stopped)
    assert 2 < reached.replicates < 6
    told = replay(whole, ["y"], 2.0)
    assert told.runs == 8 * reached.replicates
    assert told.terms == told.decided[reached.replicates] == 6
    assert told.decided[reached.replicates - 1] < 6
    effects = tuple(t.term for t in reached.terms if t.state.verdict == "effect")
    assert told.effects == effects == ("A",)
    assert (told.open, told.lacking, told.denied) == ((), (), ())
    strict = replay(whole, ["y"], 1e-9)
    assert (strict.runs, strict.effects, len(strict.open)) == (48, ("A",), 5)
