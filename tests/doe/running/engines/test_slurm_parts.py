"""The parts of the Slurm engine that need no Slurm: settings, scripts, commands, judgements."""

import os
import subprocess
import time

import msgspec
import pytest

from doe.errors import DoeError
from doe.running.engines import Job, open_engine, read_settings, slurm, stage_settings
from doe.running.engines.slurm import Settings
from doe.running.engines.slurm import calls as slurm_calls
from doe.running.engines.slurm.calls import AwayError, QueueRow
from doe.running.engines.slurm.engine import JobRun, SlurmEngine, batch_script, explain, judge
from doe.running.engines.slurm.job import Entry, Submission, SubmissionFiles, new_name, submissions
from doe.running.worker import ExitCode, WorkerOptions
from doe.store.files import RunDir, StudyDir
from doe.store.leases import Watch, acquire, new_owner
from doe.store.verdicts import Result, commit
from doe.study.presets import preset_study
from doe.study.values import Stage

# Settings -----------------------------------------------------------------------------------------


def test_the_command_line_is_stronger_than_the_study():
    table = {"partition": "slow", "time": 90, "gres": "gpu:a100:1", "extra": ["--exclusive"]}
    settings = read_settings(slurm, "slurm", table, {"partition": "fast", "cpus": 4})
    assert settings.options() == [
        "--partition=fast",
        "--time=90",
        "--gres=gpu:a100:1",
        "--cpus-per-task=4",
        "--exclusive",
    ]


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"partiton": "a"}, "did you mean 'partition'"),
        ({"time": "soon"}, "slurm.time = 'soon': expected minutes"),
        ({"time": 0}, "expected minutes"),
        ({"gres": "gpu 1"}, "gpu:1"),
        ({"cpus": 0}, "at least 1"),
        ({"cpus": "many"}, "slurm.cpus"),
        ({"mem": "16 gigabytes"}, "K, M, G or T"),
        ({"extra": ["--array=1-3"]}, "--array is set by the engine itself"),
        ({"extra": ["constraint=a100"]}, "not an option of sbatch"),
        ({"extra": ["--comment=a\n--array=0"]}, "not an option of sbatch"),
        ({"setup": ["module load a\nrm b"]}, "one command per line"),
        ({"partition": "two words"}, "one word"),
        ({"runs_per_job": 0, "jobs": -1}, "0 for no limit"),
        ({"stop_before": -1}, "expected seconds"),
    ],
)
def test_mistakes_in_the_slurm_table_are_named(table, said):
    with pytest.raises(DoeError) as caught:
        read_settings(slurm, "slurm", table, {})
    assert said in str(caught.value)


def study_with_stage(table, engine="slurm"):
    stage = Stage(function="a:b", engines={engine: table})
    return msgspec.structs.replace(preset_study("demo"), stages={"data": stage})


def test_a_stage_asks_for_what_runs_do_but_for_its_own_table():
    runs = Settings(partition="gpu", gres="gpu:1", time=60, runs_per_job=4)
    table = {"gres": "", "time": 5}
    stages = stage_settings("slurm", study_with_stage(table), runs, runs_per_job=1)
    assert stages == {"data": Settings(partition="gpu", gres="", time=5)}


def test_mistakes_in_the_table_of_a_stage_are_named(tmp_path):
    with pytest.raises(DoeError, match=r"stages\.data\.slurm\.tme: unknown key"):
        stage_settings("slurm", study_with_stage({"tme": 5}), Settings())
    with pytest.raises(DoeError, match=r"stages\.data\.local: the local engine"):
        open_engine("local", study_with_stage({"cpu": 2}, "local"), tmp_path, {})


def test_all_mistakes_are_told_at_once():
    with pytest.raises(DoeError) as caught:
        read_settings(slurm, "slurm", {"tme": 1, "cpus": 0}, {"mem": "x"})
    assert all(word in str(caught.value) for word in ("slurm.tme", "slurm.cpus", " mem = 'x'"))


@pytest.mark.parametrize(
    ("given", "gpu", "shared"),
    [
        ({}, False, False),
        ({"gres": "gpu:1"}, True, False),
        ({"gres": "shard:1"}, True, True),
        ({"gres": "nvme,gpu:a100:2"}, True, False),
        ({"extra": ("--gpus=1",)}, True, False),
        ({"gres": "license:1"}, False, False),
    ],
)
def test_whether_a_job_has_a_gpu(given, gpu, shared):
    settings = Settings(**given)
    assert (settings.gpu, settings.shared) == (gpu, shared)


def test_a_share_becomes_a_whole_gpu():
    assert Settings(gres="nvme:1,shard:2").alone().gres == "nvme:1,gpu:1"
    assert Settings(gres="mps:a100:50").alone().gres == "gpu:1"


def test_options_of_another_engine_are_refused(tmp_path):
    with pytest.raises(DoeError, match="gres applies to the engine slurm, not to local"):
        open_engine("local", None, tmp_path, {"gres": "gpu:1"})
    with pytest.raises(DoeError, match="cpu applies to the engine local"):
        open_engine("slurm", None, tmp_path, {"cpu": 2})
    with pytest.raises(DoeError, match="did you mean 'slurm'"):
        open_engine("slrm", None, tmp_path, {})


# Scripts and commands -----------------------------------------------------------------------------


def test_a_script_quotes_what_it_must(tmp_path):
    study = tmp_path / "a 'quoted' $HOME %j"
    files = SubmissionFiles(study / "slurm", "doe-x-1")
    files.folder.mkdir(parents=True)
    settings = Settings(setup=("echo setting up",))
    script = batch_script(study, files, settings).replace("\nexec '/", "\n: '/")
    lines = script.splitlines()
    lines[-1] = "printf '%s\\n' " + lines[-1].removeprefix("exec ")
    subprocess.run(
        ["bash", "-c", "\n".join(lines)],
        check=True,
        env=os.environ | {"SLURM_ARRAY_TASK_ID": "7"},
    )
    said = files.output(7).read_text().splitlines()
    assert said[0] == "setting up"
    assert said[-3:] == [str(study), "doe-x-1", "7"]


@pytest.fixture
def commands(tmp_path, monkeypatch):
    """Slurm's commands, saying what a test wants them to."""

    def make(name, text, code=0, error=""):
        program = tmp_path / "bin" / name
        program.parent.mkdir(exist_ok=True)
        said, complaint = tmp_path / f"{name}.out", tmp_path / f"{name}.err"
        said.write_text(text)
        complaint.write_text(error)
        program.write_text(f"#!/bin/sh\ncat '{said}'\ncat '{complaint}' >&2\nexit {code}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")

    return make


def squeue_line(name, task, state, code, reason="None", number=7):
    cells = zip((name, task, state, code, reason, number), slurm_calls.WIDTHS.values(), strict=True)
    return "".join(str(cell).ljust(width) for cell, width in cells) + "\n"


def test_the_queue_is_read(commands):
    lines = [
        squeue_line("doe-a-1", 0, "RUNNING", 0),
        squeue_line("doe-a-1", 1, "FAILED", 3 << 8, "NonZeroExitCode"),
        squeue_line("doe-a-1", 2, "FAILED", 11),
        squeue_line("doe-a-12", 0, "RUNNING", 0),
        squeue_line("doe-a-1", "N/A", "PENDING", 0),
    ]
    commands("squeue", "".join(lines))
    rows = slurm_calls.queue(["doe-a-1"])
    assert [(row.task, row.state, row.code) for row in rows] == [
        (0, "RUNNING", 0),
        (1, "FAILED", 3),
        (2, "FAILED", -11),
    ]
    assert [row.live for row in rows] == [True, False, False]
    assert {row.number for row in rows} == {"7"}


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ("sbatch: error: Unable to contact slurm controller (connect failure)", AwayError),
        ("slurm_load_jobs error: Socket timed out on send/recv operation", AwayError),
        ("sbatch: error: Zero Bytes were transmitted or received", AwayError),
        ("slurm_load_jobs error: Unexpected missing socket error", AwayError),
        ("sbatch: error: Batch job submission failed: Invalid account", DoeError),
        ("sbatch: error: QOSMaxSubmitJobPerUserLimit", DoeError),
    ],
)
def test_no_answer_is_told_from_a_refusal(commands, error, kind):
    commands("sbatch", "", 1, error)
    with pytest.raises(kind):
        slurm_calls.submit("doe-a-1", "#!/bin/bash\n", [], 3, 2)


def test_without_slurm_the_message_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(DoeError, match="there is no squeue on this machine"):
        slurm_calls.queue(["doe-a-1"])


# Submissions --------------------------------------------------------------------------------------


def test_a_submission_is_kept_until_it_is_removed(tmp_path):
    study = StudyDir(tmp_path)
    files = SubmissionFiles(study.engine("slurm"), new_name("my study: a/b"))
    submission = Submission(files.name, ((Entry("000-r1", WorkerOptions(job="j")),),))
    files.write(submission)
    files.output(0).write_text("one\ntwo\n")
    assert [found.name for found in submissions(study)] == [files.name]
    assert submissions(study)[0].read() == submission
    assert files.tail(0) == "one\ntwo"
    assert str(tmp_path) not in files.content.read_text()
    files.remove()
    assert not study.engine("slurm").exists()
    assert files.read() is None
    assert len({new_name("a") for _ in range(50)}) == 50


# Judgements ---------------------------------------------------------------------------------------


def runs(tmp_path, number):
    """Runs of one job; the runs in `begin` take their lease."""
    job_runs = []
    for i in range(number):
        run = RunDir(tmp_path / f"00{i}-r1")
        run.path.mkdir()
        job_runs.append(JobRun(Entry(f"00{i}-r1", WorkerOptions(job=f"job{i}")), run))
    return job_runs


def begin(job_run):
    acquire(job_run.directory, new_owner(job_run.entry.options.job), Watch())


def end(state, code=0):
    return explain(QueueRow("doe-a-1", 0, state, code, ""), "", True)


@pytest.mark.parametrize("state", ["CANCELLED", "PREEMPTED", "NODE_FAIL", "BOOT_FAIL"])
def test_some_ends_are_nobodys_fault(tmp_path, state):
    (job_run,) = runs(tmp_path, 1)
    begin(job_run)
    (ended,) = judge(end(state), [job_run])
    assert ended.interrupted


@pytest.mark.parametrize(
    ("state", "code"), [("FAILED", -9), ("FAILED", 1), ("OUT_OF_MEMORY", -125)]
)
def test_others_are_crashes(tmp_path, state, code):
    (job_run,) = runs(tmp_path, 1)
    begin(job_run)
    (ended,) = judge(end(state, code), [job_run])
    assert not ended.interrupted
    assert state in ended.message


def test_exit_codes_of_the_worker_are_passed_on(tmp_path):
    (job_run,) = runs(tmp_path, 1)
    begin(job_run)
    assert judge(end("FAILED", ExitCode.UNWRITABLE), [job_run])[0].code == ExitCode.UNWRITABLE
    assert judge(end("FAILED", ExitCode.BUSY), [job_run])[0].code == ExitCode.BUSY
    assert judge(end("FAILED", ExitCode.INTERRUPTED), [job_run])[0].interrupted


def test_a_time_limit_is_a_failure_only_without_progress(tmp_path):
    (job_run,) = runs(tmp_path, 1)
    begin(job_run)
    (stuck,) = judge(end("TIMEOUT"), [job_run])
    assert (stuck.timeout, stuck.interrupted) == (True, False)
    job_run.directory.progress.write_text('{"step": 3, "total": 9, "metrics": {}}\n')
    (steady,) = judge(end("TIMEOUT"), [job_run])
    assert (steady.timeout, steady.interrupted) == (False, True)
    later = job_run._replace(entry=Entry("000-r1", job_run.entry.options, step=3))
    assert judge(end("TIMEOUT"), [later])[0].timeout


def test_of_a_packed_job_only_the_run_under_way_is_blamed(tmp_path):
    job_runs = runs(tmp_path, 3)
    begin(job_runs[1])
    ended = judge(end("FAILED", -9), job_runs)
    assert [one.interrupted for one in ended] == [True, False, True]


def test_a_job_that_began_no_run_is_held_against_its_first(tmp_path):
    job_runs = runs(tmp_path, 3)
    ended = judge(end("FAILED", 127), job_runs)
    assert [one.interrupted for one in ended] == [False, True, True]


def test_a_forgotten_job_is_a_crash_only_if_it_began_and_got_nowhere(tmp_path):
    (job_run,) = runs(tmp_path, 1)
    assert judge(explain(None, "", script_began=False), [job_run])[0].interrupted
    failed = judge(explain(None, "python: not found", script_began=True), [job_run])[0]
    assert not failed.interrupted
    assert "python: not found" in failed.message
    begin(job_run)
    assert judge(explain(None, "", script_began=True), [job_run])[0].interrupted


# The engine on made-up answers --------------------------------------------------------------------


def submitted(plan):
    """An engine, the first run of a study, and its submission as job j1."""
    engine = SlurmEngine(plan.study, plan.directory, Settings())
    run_id = plan.design.runs[0].run_id
    run = StudyDir(plan.directory).run(run_id)
    run.path.mkdir()
    files = SubmissionFiles(StudyDir(plan.directory.resolve()).engine("slurm"), "doe-tiny-1")
    files.write(Submission(files.name, ((Entry(run_id, WorkerOptions(job="j1")),),)))
    return engine, run, files


def test_a_run_that_is_done_counts_whatever_slurm_says(monkeypatch, planned):
    plan = planned("quick")
    engine, run, files = submitted(plan)
    states = iter(["RUNNING", "TIMEOUT"])
    monkeypatch.setattr(
        slurm_calls,
        "queue",
        lambda names: [QueueRow(names[0], 0, next(states), 0, "")] if names else [],
    )
    assert engine.adopt() == [(plan.design.runs[0].run_id, "j1", "slurm")]
    commit(run, Result("done", {"y": 1.0}), "n")
    (ended,) = engine.wait(1.0)
    assert (ended.code, ended.interrupted, ended.timeout) == (0, False, False)
    assert not files.folder.exists()


def test_a_verdict_that_is_late_to_be_seen_is_waited_for(monkeypatch, planned):
    engine, _, _ = submitted(planned("quick"))
    states = iter(["RUNNING", *["COMPLETED"] * 100])
    monkeypatch.setattr(
        slurm_calls, "queue", lambda names: [QueueRow(names[0], 0, next(states), 0, "")]
    )
    engine.adopt()
    assert not engine.wait(1.2)
    monkeypatch.setattr("doe.running.engines.slurm.engine.VERDICT_VISIBLE_SECONDS", 0.0)
    time.sleep(0.6)
    (ended,) = engine.wait(3.0)
    assert not ended.interrupted


def test_a_detached_submission_is_repeated_until_the_controller_takes_it(monkeypatch, planned):
    plan = planned("quick")
    engine = SlurmEngine(plan.study, plan.directory, Settings())
    answers = iter([AwayError("no answer"), AwayError("no answer"), "12", "13"])
    asked = []

    def submit(_name, _script, options, *_):
        asked.append(options)
        if isinstance(answer := next(answers), AwayError):
            raise answer
        return answer

    monkeypatch.setattr(slurm_calls, "submit", submit)
    monkeypatch.setattr(slurm_calls, "queue", lambda _names: [])
    monkeypatch.setattr(slurm_calls, "most_tasks", lambda: 100)
    first, second = (run.run_id for run in plan.design.runs[:2])
    stage, run = WorkerOptions(job="j1", wait=True), WorkerOptions(job="j2", wait=True)
    engine.start(
        [
            Job(first, plan.directory / first, engine.slots[0], stage),
            Job(second, plan.directory / second, engine.slots[0], run, after=("j1",)),
        ]
    )
    assert [any("--dependency" in word for word in words) for words in asked] == [False] * 3 + [
        True
    ]
    assert "--dependency=afterany:12_0" in asked[-1]


def test_a_run_is_asked_to_stop_before_the_time_limit_of_its_job():
    assert "--signal=B:TERM@120" in Settings(time="1:00:00", stop_before=120).options()
    assert not any("--signal" in option for option in Settings(time="1:00:00").options())
