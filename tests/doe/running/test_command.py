"""Commands: what they are given, what they leave, how far they are."""

import contextlib
import json
import math
import sys
import textwrap

import msgspec
import pytest

from doe.design.runs import make_design
from doe.errors import DoeError, SpecError
from doe.running.command import run_program, substitute
from doe.store.files import RunDir
from doe.store.plan import write_plan
from doe.store.progress import read_progress
from doe.store.requests import RunRequest, request_bytes
from doe.store.verdicts import read_verdict
from doe.study.file import dump_study, parse_study
from doe.study.values import MetricsSection, ProgressSection


def study_text(command, sections="", factors="[factors.lr]\nlow = 0.1\nhigh = 0.2\n"):
    return (
        f'name = "own"\nbackend = "command"\ncommand = {json.dumps(command)}\n'
        f'{factors}[responses]\nmetrics = ["acc", "loss"]\n{sections}'
    )


# Words -------------------------------------------------------------------------------------------

VALUES = {"lr": 0.001, "aug": True, "off": False, "opt": "a b; rm", "n": 3, "run_dir": "/tmp/x"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("python t.py --lr {lr} --n={n}", ["python", "t.py", "--lr", "0.001", "--n=3"]),
        ("t {aug:--aug} {off:--off}", ["t", "--aug"]),
        ("t {aug:--mode fast} x", ["t", "--mode", "fast", "x"]),
        ("t --mode={aug:fast}{off:slow}", ["t", "--mode=fast"]),
        ("t --opt {opt} '{opt} $HOME *'", ["t", "--opt", "a b; rm", "a b; rm $HOME *"]),
        ('t --set "a = {{{n}}}" {aug}', ["t", "--set", "a = {3}", "true"]),
        (["t", "{lr}", "a b"], ["t", "0.001", "a b"]),
    ],
)
def test_values_stand_where_their_placeholders_are(text, words):
    problems = []
    from doe.study.command import split_command

    command = split_command(text, problems.append) if isinstance(text, str) else text
    assert substitute(command, VALUES) == words
    assert not problems


def test_a_command_is_one_string_or_a_list_and_both_are_the_same_study():
    line = parse_study(study_text("python t.py --lr {lr} '{seed}'").encode())
    words = parse_study(study_text(["python", "t.py", "--lr", "{lr}", "{seed}"]).encode())
    assert line == words
    assert parse_study(dump_study(line).encode()) == line


def test_the_sections_are_part_of_the_request_only_where_they_say_something():
    for sections, there in [("", False), ("[metrics]\nfile = 'x.json'\n", True)]:
        study = parse_study(study_text("t {lr}", sections).encode())
        request = json.loads(request_bytes(study, make_design(study).runs[0]))
        assert ("source" in request) is there
        assert "progress" not in request


def test_settings_are_placeholders_too():
    sections = "[settings]\nepochs = 3\nfast = true\n[settings.model]\nwidth = 64\n"
    study = parse_study(
        study_text("t {lr} {epochs} {model.width} {fast:--fast}", sections).encode()
    )
    assert study.command[2:] == ("{epochs}", "{model.width}", "{fast:--fast}")


SECTIONS = '[metrics]\nfile = "stdout"\nkeys = {{ acc = "{}", loss = "loss (\\\\S+)" }}\n'
MISTAKES = [
    ("t {lrr}", "", ["{lrr}", "did you mean 'lr'"]),
    ("t", "", ["does not use lr", "have no effect"]),
    ("t {lr:--lr}", "", ["switch", "true or false", "0.1 and 0.2"]),
    ("t '{lr}", "", ["quotation", "close the quote"]),
    ("t {lr} {", "", ["brace"]),
    ("t {lr!r}", "", ["expected placeholders such as"]),
    ("t {lr} {seed}", "[settings]\nseed = 3\n", ["settings.seed", "rename"]),
    ("", "", ["command: missing"]),
    ("t {lr}", "[metrics]\nfiel = 'x'\n", ["metrics.fiel", "did you mean 'file'"]),
    ("t {lr}", "[metrics]\nkeys = { ac = 'x' }\n", ["metrics.keys.ac", "'acc'"]),
    ("t {lr}", "[metrics]\nfile = '/etc/x.json'\n", ["inside the run's directory"]),
    ("t {lr}", "[metrics]\nfile = '../x.json'\n", ["inside the run's directory"]),
    ("t {lr}", SECTIONS.format("acc ("), ["metrics.keys.acc", "not a valid regular expression"]),
    ("t {lr}", SECTIONS.format("(a)(b)"), ["metrics.keys.acc", "2 groups", "or one group"]),
    ("t {lr}", "[progress]\npattern = 'x'\ntotal = 3\n", ["(?P<step>"]),
    ("t {lr}", "[progress]\npattern = '(?P<step>.)'\n", ["progress.total", "missing"]),
    ("t {lr}", "[progress]\nfile = 'a.csv'\ntotal = 'epoch'\n", ["neither a factor nor"]),
    ("t {lr}", "[progress]\nfile = 'a.csv'\npattern = '(?P<step>.)'\ntotal=1\n", ["one of them"]),
    ("t {lr}", "[progress]\ntotal = 3\n", ["expected a pattern"]),
]


@pytest.mark.parametrize(("command", "sections", "said"), MISTAKES)
def test_each_mistake_of_a_command_is_one_sentence(command, sections, said):
    with pytest.raises(SpecError) as refused:
        parse_study(study_text(command, sections).encode())
    (problem,) = refused.value.problems
    for part in said:
        assert part in problem


def test_sections_of_a_command_need_a_command():
    text = study_text("t {lr}", '[metrics]\nfile = "x.csv"\n').replace('"command"', '"m:f"', 1)
    with pytest.raises(SpecError, match="metrics: only allowed with backend"):
        parse_study(text.replace('command = "t {lr}"\n', "").encode())


# Metrics ------------------------------------------------------------------------------------------


@pytest.fixture
def execute(tmp_path):
    """Run Python code as a study's command; return its metrics and reports."""

    def go(code, progress=None, metrics=("acc", "loss"), further=(), values=None, **section):
        request = RunRequest(
            study="own",
            run_id="000-r1",
            config="",
            row=0,
            replicate=1,
            seed=1,
            backend="command",
            command=(),
            factors={},
            settings={},
            metrics=metrics,
            further=further,
            source=MetricsSection(**section),
            progress=progress or ProgressSection(),
        )
        reports = []
        body = "import json, os, sys, time\nos.chdir(sys.argv[1])\n" + textwrap.dedent(code)
        reply = run_program(
            [sys.executable, "-c", body.replace("{", "{{").replace("}", "}}"), "{run_dir}"],
            values or {},
            request,
            tmp_path,
            lambda step, total, **metrics: reports.append((step, total, metrics)),
        )
        return reply, reports

    return go


def left(file, text):
    folder = f"os.makedirs(os.path.dirname({file!r}) or '.', exist_ok=True)"
    return f"{folder}; open({file!r}, 'w').write({text!r})"


KEYS = {"acc": "eval/accuracy", "loss": "final.loss"}
GOOD = [
    ({}, left("metrics.json", '{"acc": 0.5, "loss": 2, "name": "x", "other": 1}')),
    (
        {"file": "results.json", "keys": KEYS},
        left("results.json", '{"eval/accuracy": 0.5, "final": {"loss": "2.0", "list": []}}'),
    ),
    (
        {"file": "out/*.json", "keys": {"acc": "runs.-1.a.b", "loss": "runs.0.l"}},
        left("out/r1.json", '{"runs": [{"l": 2}, {"a.b": 0.5}]}'),
    ),
    ({"file": "log.csv"}, left("log.csv", "epoch,acc,loss\n0,0.1,9\n1,0.5,2\n")),
    (
        {"file": "v/*/metrics.csv", "keys": {"acc": "val_acc"}},  # Lightning leaves cells empty
        left("v/version_0/metrics.csv", "epoch,val_acc,loss\n0,,3\n0,0.5,\n1,,2\n"),
    ),
    ({"file": "log.csv"}, left("log.csv", "acc;loss\n0.5;2\n")),
    ({"file": "log.jsonl"}, left("log.jsonl", '{"acc": 0.1}\n{"acc": 0.5}\n{"loss": 2}\n')),
    (
        {"file": "stdout", "keys": {"acc": r"acc[:=] (\S+)", "loss": r"loss (\d+)"}},
        "print('acc: 0.1 loss 7'); print('acc= 0.5'); sys.stderr.write('loss 2')",
    ),
]


@pytest.mark.parametrize(("section", "code"), GOOD)
def test_metrics_are_found_where_the_section_says(execute, section, code):
    reply, _ = execute(code, **section)
    assert reply["acc"] == 0.5
    assert reply["loss"] == 2.0
    assert set(reply) <= {"acc", "loss", "other"}


def test_events_of_tensorboard(execute):
    pytest.importorskip("tensorboard")
    code = """
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.summary import Writer
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    torch, tensorflow = EventFileWriter("tb"), Writer("tb")  # they write scalars and tensors
    for i, (acc, loss) in enumerate([(0.1, 7), (0.5, 2)]):
        value = Summary.Value(tag="val/acc", simple_value=acc)
        torch.add_event(Event(step=i, summary=Summary(value=[value])))
        tensorflow.add_scalar("loss", loss, i)
    torch.close(), tensorflow.close()
    """
    reply, _ = execute(code, file="tb/events.out.tfevents.*", keys={"acc": "val/acc"})
    assert reply == {"acc": 0.5, "loss": 2.0}


@pytest.mark.parametrize("value", ["NaN", "Infinity", "-Infinity", "null", '"nan"'])
def test_what_is_not_finite_is_no_failure(execute, value):
    reply, _ = execute(left("metrics.json", f'{{"acc": {value}, "loss": 1}}'))
    assert not math.isfinite(reply["acc"])


def test_further_metrics_may_be_missing(execute):
    code = left("metrics.json", '{"acc": 1, "t": 3}')
    assert execute(code, metrics=("acc",), further=("t", "u"))[0] == {"acc": 1.0, "t": 3.0}


MISSING = [
    ({}, "pass", ["no metrics.json", "does it use {run_dir}"]),
    (
        {"file": "r.json"},
        left("result.jsn", "{}"),
        ["no r.json", "which contains result.jsn; choose one with file"],
    ),
    ({}, left("metrics.json", '{"ac": 1, "loss": 2}'), ["no 'acc'", "did you mean 'ac'", "loss"]),
    (
        {"keys": KEYS},
        left("metrics.json", '{"final": {"los": 1}, "eval/acc": 2}'),
        ["no 'eval/accuracy', 'final.loss'", "it has final.los, eval/acc"],
    ),
    ({}, left("metrics.json", '{"acc": [[1]], "loss": 2}'), ["'acc' is [1]", "expected a number"]),
    ({}, left("metrics.json", '{"acc": true, "loss": 2}'), ["'acc' is true"]),
    ({}, left("metrics.json", "[1]"), ["not a JSON object"]),
    ({}, left("metrics.json", '{"acc": '), ["metrics.json is not JSON"]),
    (
        {"file": "a.csv"},
        left("a.csv", "epoch,acc\n1,2\n"),
        ["no 'loss'", "it has epoch, acc: name it in keys of [metrics]"],
    ),
    ({"file": "a.csv"}, left("a.csv", ""), ["no 'acc', 'loss'", "nothing"]),
    (
        {"file": "stdout", "keys": {"acc": r"acc (\S+)", "loss": r"loss (\S+)"}},
        "print('loss 3'); print('accuracy 4')",
        ["no 'acc'", "loss 3 | accuracy 4"],
    ),
    (
        {"file": "stdout", "keys": {"acc": r"acc (\S+)", "loss": r"loss (\S+)"}},
        "print('acc high loss 3')",
        ['is "high"', "expected a number"],
    ),
    ({}, "sys.exit(3)", ["exit code 3"]),
]


@pytest.mark.parametrize(("section", "code", "said"), MISSING)
def test_what_is_missing_is_named_with_what_is_there(execute, section, code, said):
    with pytest.raises(DoeError) as failed:
        execute(code, **section)
    for part in said:
        assert part in str(failed.value)
    assert "\n" not in str(failed.value)


def test_the_file_of_an_earlier_attempt_does_not_count(execute, tmp_path):
    (tmp_path / "metrics.json").write_text('{"acc": 1, "loss": 2}')
    with pytest.raises(DoeError, match="from an earlier attempt"):
        execute("pass")
    assert execute(left("metrics.json", '{"acc": 3, "loss": 2}'))[0]["acc"] == 3.0


def test_a_program_that_is_not_there_is_named(tmp_path):
    with pytest.raises(DoeError, match=r"cannot start 'no-such-program'"):
        plan_and_run(tmp_path, "no-such-program {lr}")


def plan_and_run(tmp_path, command):
    from doe.running.backend import call, resolve

    study = parse_study(study_text(command).encode())
    plan, _ = write_plan(study, tmp_path / "runs")
    from doe.store.requests import prepare, read_request

    place = RunDir(tmp_path / "run")
    prepare(place, study, plan.design.runs[0])
    backend, (request, _) = resolve("command", study.command), read_request(place)
    return call(backend, request, place.path, "cpu", lambda *a, **k: None).metrics


# Progress -----------------------------------------------------------------------------------------

PATTERN = r"epoch (?P<step>\d+)/(?P<total>\d+) loss (?P<loss>\S+)"


def test_progress_is_read_from_the_output(execute, capfd):
    code = (
        "for i, end in (1, '\\n'), (2, '\\r'), (3, '\\n'):\n"
        "    print(f'epoch {i}/3 loss {1 / i:.2f}', end=end)\n"
        + left("metrics.json", '{"acc": 1, "loss": 2}')
    )
    _, reports = execute(code, ProgressSection(pattern=PATTERN))
    assert reports == [(1, 3, {"loss": 1.0}), (2, 3, {"loss": 0.5}), (3, 3, {"loss": 0.33})]
    assert "epoch 3/3" in capfd.readouterr().out  # and it still goes to the log


def test_progress_is_read_from_a_csv_while_it_grows(execute, monkeypatch):
    monkeypatch.setattr("doe.running.program.COMMAND_POLL_SECONDS", 0.05)
    code = """
    with open("log.csv", "w", buffering=1) as file:
        print("epoch,loss,note", file=file)
        for i in range(3):
            print(f"{i},{1 / (i + 1):.2f},x", file=file); time.sleep(0.3)
    json.dump({"acc": 1, "loss": 2}, open("metrics.json", "w"))
    """
    section = ProgressSection(file="log.csv", total="epochs")
    _, reports = execute(code, section, values={"epochs": 3})
    assert reports == [(0, 3, {"loss": 1.0}), (1, 3, {"loss": 0.5}), (2, 3, {"loss": 0.33})]


def test_rows_of_one_step_are_told_together(execute, monkeypatch):
    monkeypatch.setattr("doe.running.program.COMMAND_POLL_SECONDS", 0.05)
    code = """
    with open("log.csv", "w", buffering=1) as file:
        print("epoch,step,loss,acc", file=file)
        for i in range(2):
            print(f"{i},{10 * i},{1 / (i + 1)},", file=file); time.sleep(0.3)
            print(f"{i},{10 * i},,{i / 2}", file=file); time.sleep(0.3)
    json.dump({"acc": 1, "loss": 2}, open("metrics.json", "w"))
    """
    section = ProgressSection(file="log.csv", step="epoch", total=2)
    _, reports = execute(code, section)
    assert reports[-1] == (1, 2, {"loss": 0.5, "acc": 0.5})
    assert (0, 2, {"loss": 1.0, "acc": 0.0}) in reports


def test_half_a_line_that_is_being_written_is_read_at_the_next_look(execute, monkeypatch):
    monkeypatch.setattr("doe.running.program.COMMAND_POLL_SECONDS", 0.05)
    code = """
    with open("log.jsonl", "w") as file:
        for half in ('{"step": 1, "loss"', ': 0.5}\\n'):
            print(half, end="", file=file, flush=True); time.sleep(0.3)
    json.dump({"acc": 1, "loss": 2}, open("metrics.json", "w"))
    """
    _, reports = execute(code, ProgressSection(file="log.jsonl", total=1))
    assert reports == [(1, 1, {"loss": 0.5})]


def test_a_csv_that_is_gone_again_fails_no_run(execute, monkeypatch):
    monkeypatch.setattr("doe.running.program.COMMAND_POLL_SECONDS", 0.05)
    code = """
    open("log.csv", "w").write("step,loss\\n1,0.5\\n"); time.sleep(0.3)
    os.remove("log.csv"); time.sleep(0.3)
    json.dump({"acc": 1, "loss": 2}, open("metrics.json", "w"))
    """
    reply, reports = execute(code, ProgressSection(file="log.csv", total=1))
    assert (reply["acc"], reports) == (1.0, [(1, 1, {"loss": 0.5})])


def test_a_child_that_outlives_the_command_does_not_hold_it_up(execute):
    code = "import subprocess; subprocess.Popen(['sleep', '60']); " + left(
        "metrics.json", '{"acc": 1, "loss": 2}'
    )
    reply, _ = execute(code, ProgressSection(pattern=PATTERN))
    assert reply["acc"] == 1.0


def test_a_study_runs_with_progress_and_metrics_from_the_output(tmp_path, go):
    script = tmp_path / "train.py"
    script.write_text(
        "import sys, time\n"
        "lr = float(sys.argv[1])\n"
        "for i in range(1, 4): print(f'epoch {i}/3 loss {lr / i}'); time.sleep(0.15)\n"
        "print('accuracy', 'nan' if lr > 0.15 else lr)\n"
    )
    sections = (
        f"[progress]\npattern = '{PATTERN}'\n"
        "[metrics]\nfile = 'stdout'\nkeys = { acc = 'accuracy (\\S+)', loss = 'loss (\\S+)' }\n"
    )
    study = parse_study(study_text([sys.executable, str(script), "{lr}"], sections).encode())
    plan, _ = write_plan(study, tmp_path / "runs" / "own")
    with contextlib.suppress(DoeError):
        number, _ = go(plan, cpu=1)
    assert (number["done"], number["diverged"]) == (1, 1)
    run_dir = RunDir(plan.directory / "000-r1")
    assert read_verdict(run_dir).result.metrics == {"acc": 0.1, "loss": pytest.approx(0.1 / 3)}
    progress = read_progress(run_dir)
    assert (progress.step, progress.total, progress.metric) == (3, 3, "loss")
    assert "accuracy 0.1" in run_dir.log.read_text()


# Levels that are tables --------------------------------------------------------------------------

SIZES = """
[factors.size.levels]
base = { width = 64, depth = 2, wide = false }
large = { width = 256, depth = 8, wide = true }
"""


def test_a_level_puts_several_values_in_place():
    text = study_text("t --width {width} --depth={depth} {wide:--wide} {run_dir}", factors=SIZES)
    study = parse_study(text.encode())
    assert study.factors[0].levels == ("base", "large")
    assert parse_study(dump_study(study).encode()) == study
    run = next(run for run in make_design(study).runs if run.levels["size"] == "large")
    request = msgspec.json.decode(request_bytes(study, run), type=RunRequest)
    assert request.factors == {"size": "large"}
    assert request.settings == {"width": 256, "depth": 8, "wide": True}
    words = substitute(study.command, {**request.settings, "run_dir": "x"})
    assert words == ["t", "--width", "256", "--depth=8", "--wide", "x"]


@pytest.mark.parametrize(
    ("factors", "command", "said"),
    [
        (SIZES, "t {width} {wide}", "it does not use depth, which the levels of size set"),
        (SIZES, "t {run_dir}", "it does not use size"),
        (SIZES, "t {depth:-d} {width} {wide}", "depth must be true or false; got 2 and 8"),
        (
            SIZES.replace("depth = 8, ", ""),
            "t {width}",
            "expected every level to set the same names",
        ),
        (SIZES.replace("{ width = 64, depth = 2, wide = false }", "3"), "t", "a table of values"),
        (SIZES.replace("width", "seed"), "t {seed}", "'seed' is also used for something else"),
        (SIZES + "[settings]\ndepth = 1\n", "t {width}", "'depth' is also used for something else"),
        ("[factors.size]\nlow = 1\nhigh = 2\nsets = {}\n", "t {size}", "sets"),
    ],
)
def test_each_mistake_in_a_table_of_levels_is_one_sentence(factors, command, said):
    with pytest.raises(SpecError) as refused:
        parse_study(study_text(command, factors=factors).encode())
    assert said in str(refused.value)
