"""Learning curves: from epochs.csv, from what a function reports, from what a command says."""

import textwrap

from doe.results.curves import epoch_lines, learning_curves
from doe.results.dataset import scan_study
from doe.store.files import StudyDir
from doe.store.plan import write_plan
from doe.store.progress import BURST, ProgressLine, Reporter, read_steps
from doe.study.file import parse_study


def curves(directory):
    study, statuses = scan_study(directory)
    return learning_curves(study, statuses, epoch_lines(StudyDir(directory), statuses))


def test_what_a_function_reports_is_a_curve(planned, go):
    plan = planned("traced", factors="AB", replicates=2)
    go(plan)
    drawn = curves(plan.directory)["y"]["A1B0"]
    values = (1 + 1 / 7, 1 + 2 / 7)  # of the two replicates
    assert drawn == [(step, sum(v / step for v in values) / 2) for step in (1.0, 2.0, 3.0, 4.0)]


def test_steps_that_come_too_fast_for_long_are_thinned_and_the_last_is_kept(tmp_path):
    run = StudyDir(tmp_path).run("x")
    run.path.mkdir()
    report = Reporter(run)
    for step in range(1, 1001):
        report(step, 1000, y=step)
    steps = [line.step for line in read_steps(run)]
    assert steps[:BURST] == list(range(1, BURST + 1))
    assert steps[-1] == 1000
    assert len(steps) < 2 * BURST


def test_epochs_on_disk_come_first(planned, go):
    plan = planned("traced", factors="AB")
    go(plan)
    run = StudyDir(plan.directory).run(plan.design.runs[0].run_id)
    run.epochs.write_text("epoch,y\n1,5\n2,4\n")
    assert curves(plan.directory)["y"][plan.design.runs[0].config] == [(1.0, 5.0), (2.0, 4.0)]


STUDY = """
name = "own"
backend = "command"
command = "python train.py {{lr}} {{run_dir}}"
[factors.lr]
low = 0.1
high = 0.2
[responses]
metrics = ["acc", "loss"]
[responses.averages]
both = ["acc", "loss"]
[metrics]
file = "log.csv"
keys = {{ acc = "val/acc" }}
[progress]
{progress}
"""
SCRIPT = """
    import sys, time
    with open(f"{sys.argv[2]}/log.csv", "w") as file:
        print("epoch,loss,val/acc", file=file, flush=True)
        for epoch in (1, 2, 3):
            print(f"{epoch},{1 / epoch},{epoch}", file=file, flush=True)
            print(f"epoch {epoch}/3 loss {1 / epoch}")
            time.sleep(0.15)
"""


def of_command(tmp_path, monkeypatch, go, progress):
    (tmp_path / "train.py").write_text(textwrap.dedent(SCRIPT))
    monkeypatch.chdir(tmp_path)
    study = parse_study(STUDY.format(progress=progress).encode())
    plan, _ = write_plan(study, tmp_path / "runs" / "own")
    go(plan)
    return curves(plan.directory)


def test_the_csv_of_a_command_is_a_curve_by_the_keys_of_its_metrics(tmp_path, monkeypatch, go):
    drawn = of_command(tmp_path, monkeypatch, go, 'file = "log.csv"\ntotal = 3')
    assert drawn["loss"]["0.1"][-1] == (3.0, 1 / 3)
    assert drawn["acc"]["0.2"] == [(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    assert drawn["both"]["0.1"][-1] == (3.0, (3 + 1 / 3) / 2)


def test_the_output_of_a_command_is_a_curve(tmp_path, monkeypatch, go):
    pattern = r"pattern = 'epoch (?P<step>\d+)/(?P<total>\d+) loss (?P<loss>\S+)'"
    drawn = of_command(tmp_path, monkeypatch, go, pattern)
    assert drawn["loss"]["0.1"] == [(1.0, 1.0), (2.0, 0.5), (3.0, 1 / 3)]
    assert "acc" not in drawn


def test_a_step_that_was_done_again_counts_once(tmp_path):
    run = StudyDir(tmp_path).run("x")
    run.path.mkdir()
    run.progress.write_bytes(
        b'{"step":2,"total":3,"metrics":{"y":9}}\n{"step":1,"total":3,"metrics":{"y":1}}\n'
        b'{"step":2,"total":3,"metrics":{"y":2}}\n{"st'
    )
    assert read_steps(run) == [ProgressLine(1, 3, {"y": 1.0}), ProgressLine(2, 3, {"y": 2.0})]
