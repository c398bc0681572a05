"""What `doe run` says of its first run and at its end, and whom it tells."""

import json
import pickle

import pytest

from doe.results.decision import Decision
from doe.results.status import overview
from doe.results.summary import Summary, summarise
from doe.running.backend import Noted
from doe.store.files import StudyDir
from doe.store.scan import STATES
from doe.store.verdicts import UNREAD, Result, commit, read_verdict
from doe.study.values import Stopping
from doe.views.status_tables import next_command
from tests.command_line import doe


@pytest.mark.parametrize(
    "read",
    [
        lambda factors: [factors["A"], factors["B"]],
        lambda factors: [factors.get("A"), factors.get("B")],
        lambda factors: dict(factors),
        lambda factors: {**factors},
        lambda factors: factors | {},
        lambda factors: list(factors.values()),
        lambda factors: list(factors.items()),
        lambda factors: (lambda **levels: levels)(**factors),
        lambda factors: factors.copy(),
        json.dumps,
        pickle.dumps,
    ],
)
def test_every_way_to_read_the_factors_counts(read):
    factors = Noted({"A": 1, "B": 2})
    list(factors)
    assert "A" in factors
    assert factors.unread == ("A", "B")
    read(factors)
    assert factors.unread == ()


def test_a_factor_that_is_never_read_is_warned_about_once(planned, go, tmp_path, monkeypatch):
    (tmp_path / "forgetful.py").write_text("def run(request): return {'y': request.factors['A']}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    plan = planned("forgetful:run", factors="ABC")
    _, said = go(plan)
    assert said.count("the backend never read B, C in its first run") == 1
    verdict = read_verdict(StudyDir(plan.directory).run(plan.design.runs[0].run_id))
    assert verdict.result.provenance[UNREAD] == ["B", "C"]
    assert any("has read B, C in no run" in line for line in overview(plan.directory).warnings)


def test_all_factors_read_is_no_warning(planned, go):
    plan = planned("noop", factors="AB")
    _, said = go(plan)
    assert "never read" not in said
    assert not any("in no run" in line for line in overview(plan.directory).warnings)


# The end -----------------------------------------------------------------------------------------


def test_the_end_says_what_happened_and_what_comes_next(planned, tmp_path):
    plan = planned("noop", factors="AB", replicates=2)
    told = tmp_path / "told"
    command = f'env | grep ^DOE_ > {told}; echo "$DOE_SUMMARY" > {told}.summary'
    done = doe("run", "--study", plan.directory, "--cpu", "2", "--notify", command)
    assert "8 done; finished after " in done.stdout
    assert "smallest y: 0.214 with A0B0 (mean of 2 runs)" in done.stdout
    assert done.stdout.splitlines()[-1] == f"next: doe report --study {plan.directory}"
    text = told.read_text()
    for line in ("DOE_STUDY=tiny", "DOE_ENDING=finished", "DOE_DONE=8", "DOE_FAILED=0"):
        assert f"{line}\n" in text
    assert "smallest y: " in (tmp_path / "told.summary").read_text()


def test_configurations_that_share_the_best_mean_are_counted(planned):
    plan = planned("noop", factors="AB", replicates=2)
    for run in plan.design.runs:
        place = StudyDir(plan.directory).run(run.run_id)
        place.path.mkdir()
        commit(place, Result("done", {"y": float(run.row == 3)}), "n")
    assert summarise(plan, "finished", 1.0).best[0].ties == 2


def test_failures_are_what_to_look_at_next(planned, tmp_path):
    plan = planned("ending", factors="AB", kind="exception")
    done = doe(
        *("run", "--study", plan.directory, "--cpu", "1"), "--notify", "echo told; exit 5", code=3
    )
    assert "2 done, 2 failed; finished" in done.stdout
    assert "--retry-failed" in done.stdout
    assert f"next: doe status --study {plan.directory}" in done.stdout
    assert "told" in done.stdout
    assert "warning: --notify ended with exit code 5" in done.stderr


def test_a_study_that_is_given_up_is_told_as_well(planned, tmp_path):
    plan = planned("always_wrong", factors="AB")
    words = ("run", "--study", plan.directory, "--cpu", "1")
    done = doe(*words, "--notify", 'echo "$DOE_ENDING: $DOE_FAILED"', code=1)
    assert "broken off: 2" in done.stdout
    assert done.stderr.startswith("error: the first runs all failed")


def test_part_of_a_study_goes_on_with_the_rest(planned):
    plan = planned("noop", factors="AB")
    done = doe("run", "--study", plan.directory, "--cpu", "1", "--limit", "1")
    assert "1 done, 3 pending; finished" in done.stdout
    assert f"next: doe run --study {plan.directory}" in done.stdout


@pytest.mark.parametrize(
    ("states", "over", "command"),
    [
        ({"done": 4}, False, "doe report"),
        ({"done": 3, "failed": 1}, False, "doe status"),
        ({"done": 3, "pending": 1}, False, "doe run"),
        ({"done": 3, "running": 1}, False, "doe run"),
        ({"done": 3, "pending": 1}, True, "doe report"),
    ],
)
def test_the_next_command_follows_from_the_state(states, over, command):
    counts = dict.fromkeys(STATES, 0) | states
    reached = Decision(Stopping(4), 2, (), 2.0, 2) if over else None  # no term is open
    assert next_command(Summary("s", "finished", counts, 1.0, (), "", reached)) == command


def test_a_message_needs_somebody_who_stays(planned):
    plan = planned("noop")
    done = doe(*("run", "--study", plan.directory, "--detach", "--notify", "true"), code=1)
    assert "remove --detach" in done.stderr
