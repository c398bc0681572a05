"""`doe run --until decided`: stops by its rule, however often it is killed."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest
from typer.testing import CliRunner

from benchmarks.stopping import replay
from doe.cli import app
from doe.design.runs import portion
from doe.results.decision import decision, declare
from doe.store.files import StudyDir
from doe.store.plan import augment_plan, declare_plan, load_plan, write_plan
from doe.study.file import dump_study
from doe.study.values import Factor, Responses, Stopping, Study

invoke = CliRunner().invoke
TERMS = "A,B,C,AB"


def noisy_study(seconds=0.0, replicates=1, matters=1.0):
    """A study of three factors of which A alone does something."""
    return Study(
        name="noisy",
        backend="tiny_backends:noisy",
        factors=tuple(Factor(key=key, levels=(False, True)) for key in "ABC"),
        responses=Responses(metrics=("y",), matters={"y": matters} if matters else {}),
        replicates=replicates,
        seeds=tuple(range(1, replicates + 1)),
        settings={"seconds": seconds},
    )


def noisy(directory, seconds=0.0, replicates=1, matters=1.0):
    """Plan it."""
    return write_plan(noisy_study(seconds, replicates, matters), directory)[0]


def words(directory, until="decided"):
    stop = ["--until", until, *(["--decide", TERMS] if until == "decided" else [])]
    stop = [*stop, "--max-replicates", "8"] if until else []
    return ["run", "--study", str(directory), "--cpu", "2", *stop]


def start(directory, until="decided"):
    code = "from doe.cli import main; main()"
    call = [sys.executable, "-c", code, *words(directory, until)]
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
    ran = [status for status in plan.scan() if status.state == "done"]
    assert len(ran) == 8 * reached.replicates
    halves = {sum(s.run.coded[i] > 0 for i in range(3)) % 2 for s in ran[32:]}
    assert reached.replicates % 1 or len(halves) == 2
    verdicts = {term.term: term.state.verdict for term in reached.terms}
    assert verdicts == {"A": "effect", "B": "negligible", "C": "negligible", "AB": "negligible"}
    before = outcome(alone)
    again = invoke(app, ["run", "--study", str(alone), "--cpu", "2"])
    assert again.exit_code == 0
    assert outcome(alone) == before


def killed(directory, times, until="decided"):
    """Kill a study so often, three verdicts or more apart, and let it end."""
    done = 0
    for _ in range(times):
        process = start(directory, until)
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
    process = start(directory, until)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 0, output


def test_killed_and_resumed_a_study_stops_within_the_same_distance_of_the_best(tmp_path):
    directories = [noisy(tmp_path / name, seconds=0.05).directory for name in ("alone", "killed")]
    result = invoke(app, words(directories[0], "within:2"))
    assert result.exit_code == 0, result.output
    assert "from the best of y" in result.output
    killed(directories[1], 2, "within:2")
    assert outcome(directories[0])[1:] == outcome(directories[1])[1:]
    reached = reached_in(directories[0])
    assert reached.is_final
    assert reached.replicates < 8
    (close,) = reached.close
    assert close.is_known
    assert close.gap <= 2.0
    assert close.config.startswith("A0")  # less is better, and A adds
    assert "within 2 of the best" in str(invoke(app, words(directories[0])).exception)
    status = invoke(app, ["status", "--study", str(directories[0])]).output
    assert "from the best of y" in status.replace("\n", " ")
    report = invoke(app, ["analyze", "--study", str(directories[0]), "-r", "y"])
    assert report.exit_code == 0, report.output


def test_killed_and_resumed_a_design_chosen_by_its_budget_stops_by_the_same_rule(tmp_path):
    """The table is there meanwhile, with the time and the spread of what has run."""
    file = tmp_path / "noisy.toml"
    file.write_text(dump_study(noisy_study(seconds=0.05)))
    ask = ["plan", str(file), "--budget", "64 runs", "--json"]
    table = json.loads(invoke(app, [*ask, "--out", str(tmp_path / "none")]).output)
    line = next(d["number"] for d in table["designs"] if "until decided" in d["design"])
    directories = [tmp_path / name for name in ("alone", "killed")]
    for directory in directories:
        chosen = invoke(app, [*ask[:-1], "--choose", str(line), "--out", str(directory)])
        assert chosen.exit_code == 0, chosen.output
    assert invoke(app, words(directories[0], None)).exit_code == 0
    killed(directories[1], 2, None)
    again = json.loads(invoke(app, [*ask, "--out", str(directories[1])]).output)
    assert "finished runs" in again["known"]
    assert outcome(directories[0])[1:] == outcome(directories[1])[1:]
    reached = reached_in(directories[1])
    assert reached.is_final
    assert reached.rule == load_plan(directories[0]).study.stopping


@pytest.mark.parametrize("until", ["within:", "within:-1", "within:x", "decide"])
def test_an_aim_that_is_none_is_refused(tmp_path, until):
    directory = noisy(tmp_path / "none").directory
    assert "expected decided, or within:0.5" in str(
        invoke(app, ["run", "--study", str(directory), "--until", until]).exception
    )


def test_killed_five_times_it_ends_as_if_left_alone(tmp_path, alone):
    directory = noisy(tmp_path / "killed", seconds=0.05).directory
    killed(directory, 5)
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
    assert "a rule must not change during a study" in str(result.exception or result.output)


def test_what_is_open_at_the_last_replicate_stays_open(tmp_path):
    directory = noisy(tmp_path / "open", replicates=3, matters=None).directory
    rule = Stopping(3, futility=0.0)
    declare_plan(directory, lambda study: rule)
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
    assert "adjusted for the interim looks" in report.replace("\n", " ").replace("  ", " ")


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
    assert any("adjusted for the interim looks" in warning for warning in looked.warnings)
    for a, b in zip(looked.effects, whole.effects, strict=True):
        assert a.effect == pytest.approx(b.effect)
        assert a.p >= b.p or a.p > 0.05  # an earlier look may have seen more
        assert a.ci_high - a.ci_low > b.ci_high - b.ci_low
    augment_plan(plain, "1")
    assert invoke(app, [*asked, str(plain)]).exit_code == 0
    assert any("beyond the first plan" in w for w in doe.analyze(plain, "y").analysis.warnings)


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
    assert told.decided[reached.replicates - 0.5] < 6
    effects = tuple(t.term for t in reached.terms if t.state.verdict == "effect")
    assert told.effects == effects == ("A",)
    assert (told.open, told.lacking, told.denied) == ((), (), ())
    strict = replay(whole, ["y"], 1e-9)
    assert (strict.runs, strict.effects, len(strict.open)) == (48, ("A",), 5)


def test_a_plan_that_does_not_say_how_it_is_looked_at_keeps_the_first_rule(tmp_path):
    """Whole replicates from the second on, as when it was declared."""
    plan = noisy(tmp_path / "former", replicates=3)
    declare(plan.directory, (), None)
    files = StudyDir(plan.directory)
    declared = load_plan(plan.directory).study.stopping
    assert (declared.rule, declared.spending) == (2, "quadratic")
    lines = files.study.read_text().splitlines(keepends=True)
    former = [line for line in lines if not line.startswith(("rule", "futility", "within"))]
    files.study.write_text("".join(former).replace('"quadratic"', '"obrien-fleming"'))
    rule = load_plan(plan.directory).study.stopping
    assert (rule.rule, rule.futility, rule.spending) == (1, 0.0, "obrien-fleming")
    result = invoke(app, ["run", "--study", str(plan.directory), "--cpu", "2"])
    assert result.exit_code == 0, result.output
    reached = reached_in(plan.directory)
    assert reached.first == 2
    assert {term.state.decided_at for term in reached.terms} <= {None, 2, 3}


def test_hopeless_terms_end_a_study_and_it_may_go_on(tmp_path):
    """An effect that just matters can be called neither; what was asked for by name still runs."""
    directory = noisy(tmp_path / "hopeless", replicates=5, matters=0.05).directory
    asked = ["run", "--cpu", "2", "--study", str(directory)]
    result = invoke(app, [*asked, "--until", "decided"])
    assert result.exit_code == 0, result.output
    reached = reached_in(directory)
    assert reached.futile
    assert reached.replicates < 5
    assert "cannot be decided with 5 replicates" in result.output.replace("\n", " ")
    assert invoke(app, [*asked, "--replicate", "3"]).exit_code == 0
    assert reached_in(directory).replicates >= reached.replicates


def test_terms_that_the_first_half_confounds_are_open(tmp_path):
    directory = noisy(tmp_path / "half").directory
    declare(directory, tuple(TERMS.split(",")), 8)
    assert (
        invoke(app, ["run", "--study", str(directory), "--cpu", "2", "--limit", "8"]).exit_code == 0
    )
    plan = load_plan(directory)
    half = [
        status if portion(plan.study, status.run) == 1 else status._replace(state="pending")
        for status in plan.scan()
    ]
    reached = decision(plan.study, half)
    assert reached.replicates == 0.5
    assert {term.term for term in reached.open} == {"A", "B", "C", "AB"}
