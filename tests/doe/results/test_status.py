"""What status, logs, the live view and the responses table say."""

import hashlib
import importlib.metadata
import io
import json
import math
import os
import re
import subprocess
import sys
import time

import pandas as pd
import pytest
from rich.console import Console
from rich.live import Live

from doe import load
from doe.design.table import design_csv
from doe.numbers import duration_text
from doe.results.status import Running, foresee, overview, time_left
from doe.running.scheduler import RunOptions, Scheduler
from doe.store.files import StudyDir, write_atomic
from doe.store.plan import load_plan, write_plan
from doe.store.progress import Progress, read_progress
from doe.store.scan import RunStatus
from doe.store.verdicts import Result, commit
from doe.study.file import parse_study
from doe.views.live import LiveDisplay, picture, sparkline
from doe.views.status_tables import running_table, what_varies
from tests.command_line import doe


@pytest.fixture
def mixed(planned, go):
    """A study with done, failed and pending runs."""
    plan = planned("ending", factors="ABC", replicates=2, kind="exception")
    go(plan, options=RunOptions(limit=10))
    return plan


def test_the_table_has_a_row_per_planned_run_and_keeps_reasons(mixed):
    table = load(mixed.directory)
    assert table["run_id"].tolist() == [run.run_id for run in mixed.design.runs]
    assert list(table.columns[:7]) == [
        *("run_id", "run_order", "row", "replicate", "block", "seed", "config")
    ]
    assert list(table.columns[7:21]) == [
        *("A", "B", "C", "A_coded", "B_coded", "C_coded"),
        *("state", "reason", "slot", "host", "started", "ended", "seconds", "imported"),
    ]
    done, failed = table[table.state == "done"], table[table.state == "failed"]
    assert len(done) + len(failed) == 10
    assert done["y"].notna().all()
    assert done["slot"].str.startswith("cpu").all()
    assert failed["y"].isna().all()
    assert set(failed["reason"]) == {"KeyError: 'nothing'"}
    assert (table["B_coded"] == table["B"].map({True: 1, False: -1})).all()


def test_status_tells_counts_reasons_balance_and_what_is_missing(mixed):
    state = json.loads(doe("status", "--study", mixed.directory, "--json").stdout)
    number = state["counts"]
    assert number["done"] + number["failed"] == 10
    assert number["pending"] == 6
    (group,) = state["failures"]
    assert group["reason"] == "failed: KeyError: 'nothing'"
    assert group["count"] == number["failed"]
    assert len(state["missing"]) == 16 - number["done"]
    assert sum(state["balance"].values()) == 8
    text = doe("status", "--study", mixed.directory).stdout
    assert "KeyError: 'nothing'" in text
    assert f"{number['done']} done" in text


def test_status_can_be_watched_until_all_is_done(planned, go):
    plan = planned("noop", factors="AB")
    go(plan, options=RunOptions(limit=2))
    words = ["-c", "from doe.cli import main; main()", "status", "--watch", "--study"]
    watching = subprocess.Popen(
        [sys.executable, *words, str(plan.directory)], stdout=subprocess.PIPE, text=True
    )
    with pytest.raises(subprocess.TimeoutExpired):
        watching.wait(4)
    go(plan)
    said, _ = watching.communicate(timeout=60)
    assert watching.returncode == 0
    assert "tiny: 4 runs: 4 done\n" + "█" * 40 in said


def test_status_exports_the_responses_table(mixed):
    text = doe("export", "--study", mixed.directory).stdout
    exported = pd.read_csv(io.StringIO(text))
    table = load(mixed.directory)
    assert list(exported.columns) == list(table.columns)
    assert exported["y"].isna().tolist() == table["y"].isna().tolist()
    assert exported["y"].dropna().tolist() == table["y"].dropna().tolist()


def test_a_change_of_code_or_study_is_reported(planned, go):
    plan = planned("noop")
    go(plan, options=RunOptions(limit=2), cpu=1)
    files = StudyDir(plan.directory)
    open_runs = [s.run for s in overview(plan.directory).statuses if s.state == "pending"]
    for run, dirty in zip(open_runs, (False, True), strict=True):
        files.run(run.run_id).path.mkdir(exist_ok=True)
        facts = {"commit": "0123456789abcdef", "dirty": dirty, "request": "of another study"}
        commit(files.run(run.run_id), Result("done", {"y": 1.0}, None, facts), "n")
    warnings = "\n".join(overview(plan.directory).warnings)
    assert "The study file was changed after 2 runs" in warnings
    assert "The code changed between runs" in warnings
    assert "0123456789 (2 runs)" in warnings
    assert "uncommitted changes" in warnings


def test_provenance_says_where_a_result_comes_from(planned, go):
    plan = planned("noop", factors="A")
    go(plan)
    told = json.loads((plan.directory / "001-r1" / "result.json").read_text())["provenance"]
    for key in (
        *("commit", "dirty", "versions", "host", "hardware", "driver", "slot", "seed"),
        *("attempt", "start", "end", "request"),
    ):
        assert key in told
    assert len(told["commit"]) == 40
    assert told["versions"]["python"] == ".".join(map(str, sys.version_info[:3]))


def test_provenance_of_a_command_is_that_of_its_program(tmp_path, go):
    """Not that of the interpreter and packages of `doe`, which it does not use."""
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 2.7.18 || sh "$@"\n')
    fake.chmod(0o755)
    script = tmp_path / "train.sh"
    script.write_text("echo y $1\n")
    text = (
        f'name = "own"\nbackend = "command"\ncommand = "{fake} {script} {{a}} {{seed}}"\n'
        "metrics = { file = 'stdout' }\nfactors = { a = { low = 1, high = 2 } }\n"
        'responses = { metrics = ["y"] }\n'
    )
    plan, _ = write_plan(parse_study(text.encode()), tmp_path / "runs")
    go(plan, options=RunOptions(limit=1))
    before = script.read_bytes()
    script.write_text("echo y -$1\n")
    go(plan)
    told = [
        json.loads(path.read_text())["provenance"]
        for path in sorted(plan.directory.glob("*/result.json"))
    ]
    version = importlib.metadata.version("pit-doe")
    assert [one["versions"] for one in told] == 2 * [{"pit-doe": version, "python": "2.7.18"}]
    digests = {hashlib.sha256(data).hexdigest() for data in (before, script.read_bytes())}
    assert {one["files"]["train.sh"] for one in told} == digests
    warnings = "\n".join(overview(plan.directory).warnings)
    assert "Files of the command changed between runs: train.sh." in warnings


def test_logs_are_printed_and_followed_to_the_end(planned, mixed):
    failed = load(mixed.directory).query("state == 'failed'")["run_id"].iloc[0]
    done = doe("logs", failed, "--study", mixed.directory)
    assert "about to end: exception" in done.stdout
    assert "KeyError" in done.stderr
    assert doe("logs", failed, "--follow", "--study", mixed.directory).stdout == done.stdout
    wrong = doe("logs", "000-r9", "--study", mixed.directory, code=1)
    assert "did you mean '000-r" in wrong.stderr


def test_some_runs_failed_is_exit_code_3(planned):
    plan = planned("ending", kind="exception")
    doe("run", "--study", plan.directory, "--cpu", "1", code=3)
    doe("run", "--study", plan.directory, "--cpu", "--limit", "1", code=3)
    wrong = doe("run", "--study", plan.directory, "--only", "A1B9", code=1)
    assert "no configuration 'A1B9' is planned (did you mean 'A1B" in wrong.stderr


def test_only_and_replicate_and_limit_choose_runs(planned, go):
    plan = planned("noop", replicates=2)
    go(plan, options=RunOptions(only=("A1B0",), replicates=(2,)))
    assert [p.parent.name for p in plan.directory.glob("*/result.json")] == ["001-r2"]
    go(plan, options=RunOptions(limit=3))
    assert len(list(plan.directory.glob("*/result.json"))) == 4


def test_runs_start_in_the_planned_order(planned, go):
    plan = planned("noop", factors="ABC", replicates=2)
    go(plan, cpu=1)
    table = load(plan.directory)
    starts = [
        json.loads((plan.directory / run_id / "lease.json").read_text())["since"]
        for run_id in table["run_id"]
    ]
    assert starts == sorted(starts)


# Time left and the picture ------------------------------------------------------------------------


def seen(run, state, seconds=None):
    result = Result("done", {"y": 1.0}, None, {"seconds": seconds}) if seconds else None
    return RunStatus(run, state, result)


def test_time_left_counts_running_runs_as_censored(planned):
    runs = planned(replicates=2).design.runs
    assert time_left([seen(run, "pending") for run in runs], {}, 2) is None
    views = [seen(runs[0], "done", 10.0), *(seen(run, "pending") for run in runs[1:])]
    assert time_left(views, {}, 1) == pytest.approx(70)
    assert time_left(views, {}, 2) == pytest.approx(35)
    running = [views[0], seen(runs[1], "running"), *views[2:]]
    assert time_left(running, {runs[1].run_id: 4.0}, 1) == pytest.approx(66)
    # One that is older than the mean raises it, to (10 + 30) / 1 where there is no other mean.
    old = time_left(running, {runs[1].run_id: 30.0}, 1)
    same = [run for run in runs[1:] if run.config == runs[0].config]
    # The running one is past the old mean but not past the new one: 40 - 30 are left of it.
    assert old == pytest.approx(40 * (6 - len(same)) + 10 * len(same) + 10)


def test_time_left_is_foreseen_from_steps_before_any_run_has_finished(planned, tmp_path):
    runs = planned(replicates=1).design.runs
    views = [seen(runs[0], "running"), *(seen(run, "pending") for run in runs[1:])]
    assert time_left(views, {runs[0].run_id: 30.0}, 1, [100.0]) == pytest.approx(370)
    assert time_left([seen(runs[0], "done", 10.0), *views[1:]], {}, 1, [100.0]) == pytest.approx(30)

    run = StudyDir(tmp_path).run("000-r1")
    run.path.mkdir()
    assert foresee(run, 60.0) is None
    run.progress.write_text('{"step": 2, "total": 8}\n')
    last = time.time() - 20
    os.utime(run.progress, (last, last))
    assert foresee(run, 60.0) == pytest.approx(160, rel=0.05)  # two steps of eight in 40 s
    run.lease(2).touch()  # started again, with steps that it did not make
    assert foresee(run, 60.0) is None


def test_progress_is_read_up_to_a_torn_line(tmp_path):
    run = StudyDir(tmp_path).run("000-r1")
    run.path.mkdir()
    assert read_progress(run) is None
    lines = [json.dumps({"step": i, "total": 9, "metrics": {"B": 1 / i}}) for i in range(1, 5)]
    run.progress.write_text("\n".join(lines) + '\n{"step": 5, "to')
    assert read_progress(run) == Progress(4, 9, "B", (1.0, 1 / 2, 1 / 3, 1 / 4))


def test_a_sparkline_rises_and_falls():
    assert sparkline([0, 1, 2, 3, 4, 5, 6, 7]) == "▁▂▃▄▅▆▇█"
    assert sparkline([math.nan, 3.0, 3.0]) == "▁▁"
    assert sparkline([]) == ""
    assert [duration_text(s) for s in (None, 12.4, 200, 18420)] == [
        *("unknown", "12 s", "3 min 20 s", "5 h 07 min")
    ]


class IdleEngine:
    """Takes runs and never ends them."""

    def __init__(self, slots):
        self.slots = slots
        self.jobs = []

    def adopt(self):
        return ()

    def start(self, jobs):
        self.jobs += jobs


def test_the_live_view_shows_slots_progress_and_counts(planned, go):
    from doe.running.engines.local import cpu_slots

    plan = planned("traced", factors="ABC")
    go(plan, options=RunOptions(limit=2))
    out = io.StringIO()
    console = Console(file=out, width=100, force_terminal=True, color_system=None)
    display = LiveDisplay(console, Live(console=console, auto_refresh=False))
    engine = IdleEngine(cpu_slots(1, 2))
    scheduler = Scheduler(plan, engine, RunOptions(), display)
    scheduler.hand_over()
    job = engine.jobs[0]
    report = {"step": 2, "total": 4, "metrics": {"y": 1.5}}
    (job.run_dir / "progress.jsonl").write_text(json.dumps(report) + "\n")
    display.note("failed", "007-r1 on cpu0: it broke")
    display.show(scheduler.snapshot())
    page = Console(file=(text := io.StringIO()), width=100)
    page.print(picture(scheduler.snapshot()))
    drawn = text.getvalue()
    assert "2/8" in drawn
    assert "█ 2 done  ▒ 2 running  · 4 pending" in drawn
    assert "█" * 10 + "▒" * 10 + "·" * 20 in drawn
    assert job.run_id in drawn
    assert "2/4" in drawn
    assert "y 1.5" in drawn
    assert "time left" in drawn
    assert "it broke" in out.getvalue()


WORDS = ("learning_rate", "data_augmentation", "label_smoothing", "weight_decay")


def test_eighty_columns_are_enough_for_words_as_keys(planned):
    from doe.running.engines.local import cpu_slots
    from doe.views.live import PlainDisplay

    plan = planned("traced", factors=WORDS)
    engine = IdleEngine(cpu_slots(1, 2))
    screen = PlainDisplay(Console(file=io.StringIO()))
    scheduler = Scheduler(plan, engine, RunOptions(), screen)
    scheduler.hand_over()
    for job in engine.jobs:
        steps = [{"step": k, "total": 120, "metrics": {"loss": 1 / k}} for k in range(1, 101)]
        (job.run_dir / "progress.jsonl").write_text("\n".join(map(json.dumps, steps)) + "\n")
    page = Console(file=(text := io.StringIO()), width=80)
    page.print(picture(scheduler.snapshot()))
    lines = text.getvalue().splitlines()
    assert max(map(len, lines)) <= 80
    runs = [plan.design.runs[0], plan.design.runs[1]]
    for run in runs:
        (line,) = [line for line in lines if run.run_id in line]
        for part in ("cpu", run.run_id, "100/120", "loss 0.01000", "▁"):
            assert part in line, part
        assert re.search(r" \d+ s ", line), "for how long"
        varying = [k for k in WORDS if len({other.levels[k] for other in runs}) > 1]
        told = " · ".join(str(run.levels[k]).lower() for k in varying)
        row = text.getvalue().partition(run.run_id)[2].partition("cpu")[0]
        assert " ".join(row.split()).endswith(told), "on two lines rather than cut"
    head = text.getvalue().partition("cpu")[0]
    for key in WORDS:
        assert (key in head) == (key in varying), "what is the same is not told"


def test_what_sets_runs_apart_stands_under_the_names_of_its_factors(planned):
    runs = planned("traced", factors=WORDS).design.runs
    shown = what_varies(WORDS, runs)
    assert shown.header == " · ".join(WORDS)
    assert shown.labels == {run.run_id: run.config for run in runs}
    assert len({run.config for run in runs}) == 16
    alone = what_varies(WORDS, runs[:1])
    assert alone == (" · ".join(WORDS), {runs[0].run_id: runs[0].config})
    letters = planned("noop", factors="ABC").design.runs
    pair = [next(r for r in letters if r.config == config) for config in ("A1B0C1", "A0B0C0")]
    assert what_varies("ABC", pair).labels == dict(
        zip([run.run_id for run in pair], ["A1C1", "A0C0"], strict=True)
    )


def test_no_failure_is_no_reason_for_red(planned, go):
    from doe.running.scheduler import Snapshot

    plan = planned("noop", factors="A")
    statuses = {s.run.run_id: s for s in overview(plan.directory).statuses}
    snapshot = Snapshot("tiny", StudyDir(plan.directory), statuses, (), (), {}, 1)
    out = io.StringIO()
    Console(file=out, width=80, force_terminal=True, color_system="standard").print(
        picture(snapshot)
    )
    assert "2 pending" in out.getvalue()
    assert "failed" not in out.getvalue()
    assert "\x1b[31m" not in out.getvalue()


def test_steps_and_metrics_of_running_runs_are_told(planned):
    state = overview(planned("noop").directory)
    run = Running("01-r1", "A1B0", "here", "cpu0", 12.0, 3, 20, "loss", 0.25)
    under_way = state._replace(running=[run], left=90.0)
    (row,) = running_table(under_way).rows
    assert "loss 0.2500" in row.values


def test_status_loads_nothing_heavy(planned):
    plan = planned("noop")
    code = (
        "import sys; from doe.cli import app\n"
        f"try: app(['status', '--study', {str(plan.directory)!r}])\n"
        "except SystemExit: pass\n"
        "print({'pandas', 'numpy', 'scipy', 'torch', 'psutil'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "set()"


def test_reading_a_planned_study_checks_its_lines(planned):
    plan = planned(replicates=2)
    assert load_plan(plan.directory) == plan
    text = design_csv(plan.design).replace("A1B0", "A1B1", 1)
    write_atomic(StudyDir(plan.directory).design, text)
    wrong = doe("status", "--study", plan.directory, code=1)
    assert "does not match study.toml" in wrong.stderr


def test_markup_in_reasons_and_metrics_is_drawn_as_it_stands(planned, go):
    from doe.running.scheduler import Snapshot

    plan = planned("noop", factors="A")
    snapshot = Snapshot("tiny", StudyDir(plan.directory), {}, (), (), {"[/a]": "[/data/x.png]"}, 1)
    out = io.StringIO()
    Console(file=out, width=100).print(picture(snapshot))
    assert "[/data/x.png]" in out.getvalue()


@pytest.mark.parametrize(("words", "results"), [(["status"], 0), (["run", "--cpu", "1"], 2)])
def test_a_full_standard_output_is_one_message_and_stops_no_run(planned, words, results):
    plan = planned("noop", factors="A")
    code = "from doe.cli import main; main()"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [sys.executable, "-c", code, *words, "--study", str(plan.directory)],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    assert done.returncode == 1
    assert done.stderr == "error: No space left on device: standard output\n"
    assert len(list(plan.directory.glob("*/result.json"))) == results


@pytest.mark.parametrize(("words", "results"), [(["status"], 0), (["run", "--cpu", "1"], 4)])
@pytest.mark.parametrize("lines", [0, 1, 5])
def test_a_reader_that_leaves_as_head_does_stops_no_run(planned, words, results, lines):
    plan = planned("noop")
    call = [sys.executable, "-c", "from doe.cli import main; main()", *words]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen([*call, "--study", str(plan.directory)], **pipes) as command:
        for _ in range(lines):
            command.stdout.readline()
        command.stdout.close()
        assert command.stderr.read() == ""
        assert command.wait(60) == 0
    assert len(list(plan.directory.glob("*/result.json"))) == results


MIXED = ("done", "failed", "diverged", "running")


def test_status_has_a_bar_and_the_replicates_by_state(planned):
    from doe.views.status_tables import legend, replicates_table, state_bar

    state = overview(planned("noop", replicates=3).directory)
    mixed = [
        status._replace(state=name)
        for status, name in zip(state.statuses, [*MIXED, *["pending"] * 99], strict=False)
    ]
    counts = {name: sum(s.state == name for s in mixed) for name in state.counts}
    table = replicates_table(state._replace(statuses=mixed, counts=counts))
    assert [column.title for column in table.columns][1:] == [*counts]
    assert [sum(row.values[k + 1] for row in table.rows) for k in range(5)] == [*counts.values()]
    bar = state_bar(counts).plain
    assert len(bar) == 40
    assert set(bar) == set("█×≈▒·"), "each state has a sign of its own"
    assert "× failed" in legend(counts).plain
