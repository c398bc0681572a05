"""Numbers in the files of other tools, and which of several counts."""

import json
import math
import sqlite3
import struct

import msgspec
import pytest

from doe.design.runs import make_design
from doe.errors import DoeError, SpecError
from doe.running.metrics import Output, read_metrics
from doe.running.trial import findings
from doe.store.requests import RunRequest, request_bytes
from doe.study.file import dump_study, parse_study
from doe.study.values import MetricsSection


def reading(root, file, keys=None, **reduce):
    """What is recorded of the metrics of a file."""
    keys = keys or {"ret": "ret"}
    section = MetricsSection(file=file, keys=keys, reduce=reduce)
    return read_metrics(section, list(keys), (), root, {}, Output(section, keys))


CSV = "step,ret,acc\n" + "".join(f"{10 * i},{i},{0.5 - abs(i - 6) / 10}\n" for i in range(10))


@pytest.mark.parametrize(
    ("how", "value"),
    [
        ("last", 9.0),
        ("max", 9.0),
        ("min", 0.0),
        ("mean 4", 7.5),
        ("mean 100", 4.5),
        ("at 50", 5.0),
        ("at 59", 5.0),
        ("at 0", 0.0),
    ],
)
def test_one_value_of_many(tmp_path, how, value):
    (tmp_path / "log.csv").write_text(CSV)
    assert reading(tmp_path, "log.csv", ret=how) == {"ret": value}


def test_a_step_that_was_not_reached_is_named(tmp_path):
    (tmp_path / "log.csv").write_text(CSV)
    with pytest.raises(DoeError, match="'ret' has no value at step 1000, its steps are 0 to 90"):
        reading(tmp_path, "log.csv", ret="at 1000")


@pytest.mark.parametrize("how", ["last", "max", "mean 3"])
def test_a_last_value_that_is_not_finite_is_a_divergence(tmp_path, how):
    (tmp_path / "log.csv").write_text("step,ret\n0,1\n1,2\n2,nan\n")
    assert math.isnan(reading(tmp_path, "log.csv", ret=how)["ret"])


def test_the_best_is_that_of_the_goal_and_a_former_nan_is_passed_over(tmp_path):
    text = """
name = "s"
backend = "command"
command = "t {a} {seed}"
factors = { a = { low = 1, high = 2 } }
responses = { metrics = ["ret", "loss"], goal = "max", goals = { loss = "min" } }
[metrics]
file = "log.csv"
reduce = { ret = "best", loss = "best" }
"""
    study = parse_study(text.encode())
    assert parse_study(dump_study(study).encode()) == study
    raw = request_bytes(study, make_design(study).runs[0])
    section = msgspec.json.decode(raw, type=RunRequest).source
    assert section.reduce == {"ret": "max", "loss": "min"}
    (tmp_path / "log.csv").write_text("ret,loss\n1,2\n9,1\nnan,nan\n2,3\n")
    output = Output(section, ())
    told = read_metrics(section, ["ret", "loss"], (), tmp_path, {}, output)
    assert told == {"ret": 9.0, "loss": 1.0}


def test_a_request_without_a_reduction_stays_as_it_was():
    section = MetricsSection(file="x.json")
    assert json.loads(msgspec.json.encode(section)) == {"file": "x.json", "keys": {}}


@pytest.mark.parametrize(
    ("reduce", "said"),
    [('{ ret = "mean" }', "mean K"), ('{ re = "last" }', "did you mean 'ret'")],
)
def test_a_mistake_in_a_reduction_is_one_sentence(reduce, said):
    text = (
        'name = "s"\nbackend = "command"\ncommand = "t {a}"\n[factors.a]\nlow = 1\nhigh = 2\n'
        f'[responses]\nmetrics = ["ret"]\n[metrics]\nreduce = {reduce}\n'
    )
    with pytest.raises(SpecError) as refused:
        parse_study(text.encode())
    (problem,) = refused.value.problems
    assert said in problem


def test_printed_numbers_have_the_step_that_was_printed():
    section = MetricsSection(file="stdout", reduce={"loss": "at 1000", "ret": "mean 2"})
    output = Output(section, ["loss", "ret"])
    for step in range(0, 3000, 500):
        output.add_line(f"step {step}: loss {step / 1000}")
        output.add_line(f"ret={step}")
    told = read_metrics(section, ["loss", "ret"], (), None, {}, output)
    assert told == {"loss": 1.0, "ret": 2250.0}


# JSON -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tree", "key"),
    [
        ({"ret": [1, 2, 3]}, "ret"),
        ({"history": {"ret": [1, 3]}}, "history.ret"),
        ([{"ret": 1}, {"loss": 2}, {"ret": 3}], "ret"),
        ({"log_history": [{"ret": 1}, {"loss": 2}, {"ret": 3}, {"loss": 0}]}, "log_history.ret"),
    ],
)
def test_a_history_in_json(tmp_path, tree, key):
    (tmp_path / "h.json").write_text(json.dumps(tree))
    assert reading(tmp_path, "h.json", {"ret": key}) == {"ret": 3.0}
    assert reading(tmp_path, "h.json", {"ret": key}, ret="min") == {"ret": 1.0}


# Binary files -----------------------------------------------------------------------------------


def message(*fields):
    """Bytes of a message of Protocol Buffers: numbers of fields with integers or bytes."""
    raw = b""
    for number, value in fields:
        if isinstance(value, int):
            raw += varint(number << 3) + varint(value)
        elif isinstance(value, float):
            raw += varint(number << 3 | 5) + struct.pack("<f", value)
        else:
            raw += varint(number << 3 | 2) + varint(len(value)) + value
    return raw


def varint(value):
    raw = b""
    while value > 127:
        raw, value = raw + bytes([value & 127 | 128]), value >> 7
    return raw + bytes([value])


def test_events_of_tensorboard(tmp_path):
    raw = b""
    for step in range(3):
        plain = message((1, b"charts/ret"), (2, step / 2))
        tensor = message((1, 1), (4, struct.pack("<f", -step)))
        text = message((1, b"note"), (8, message((1, 7), (8, b"words"))))
        summary = message((1, plain), (1, message((1, b"loss"), (8, tensor))), (1, text))
        event = message((2, 1000 * step), (5, summary))
        raw += struct.pack("<Q", len(event)) + b"crc " + event + b"crc "
    folder = tmp_path / "runs" / "a"
    folder.mkdir(parents=True)
    (folder / "events.out.tfevents.1.host").write_bytes(raw + raw[:20])  # the last is half there
    keys = {"ret": "charts/ret", "loss": "loss"}
    assert reading(tmp_path, "runs/*/events*", keys, loss="at 1000") == {"ret": 1.0, "loss": -1.0}
    with pytest.raises(DoeError, match="no 'note'; it has charts/ret, loss"):
        reading(tmp_path, "runs/*/events*", {"note": "note"})


def test_an_offline_run_of_wandb(tmp_path):
    blocks = b":W&B" + struct.pack("<HB", 0xBEE1, 0)

    def item(name, value):
        return message((2, name.encode()), (16, json.dumps(value).encode()))

    records = []
    for step in range(3):
        logged = [item("_step", step), item("eval/ret", step * 1.5), item("note", "x" * 20_000)]
        records.append(message((1, step), (2, message(*((1, entry) for entry in logged)))))
    summary = [message((1, b"final"), (16, b"7")), message((1, b"eval/ret"), (16, b"99"))]
    records.append(message((1, 4), (3, message(*((1, entry) for entry in summary)))))
    for record in records:
        first = True
        while record or first:
            left = 32768 - len(blocks) % 32768
            if left < 7:
                blocks += bytes(left)
                continue
            part, record = record[: left - 7], record[left - 7 :]
            kind = (1 if not record else 2) if first else (4 if not record else 3)
            blocks += struct.pack("<IHB", 0, len(part), kind) + part
            first = False
    folder = tmp_path / "wandb" / "offline-run-2"
    folder.mkdir(parents=True)
    (folder / "run-2.wandb").write_bytes(blocks)
    assert [f.file for f in findings(tmp_path)] == ["wandb/*/*.wandb"]
    keys = {"ret": "eval/ret", "final": "final"}
    told = reading(tmp_path, "wandb/*/*.wandb", keys, ret="at 1")
    assert told == {"ret": 1.5, "final": 7.0}


def test_the_files_of_mlflow(tmp_path):
    metrics = tmp_path / "mlruns" / "0" / "abc" / "metrics"
    (metrics / "eval").mkdir(parents=True)
    (metrics / "ret").write_text("1700 1.5 0\n1701 2.5 10\n")
    (metrics / "eval" / "loss").write_text("1700 nan 0\n")
    keys = {"ret": "ret", "loss": "eval/loss"}
    told = reading(tmp_path, "mlruns", keys, ret="at 9")
    assert told["ret"] == 1.5
    assert math.isnan(told["loss"])


def test_the_database_of_mlflow(tmp_path):
    base = sqlite3.connect(tmp_path / "mlflow.db")
    base.execute("CREATE TABLE runs (run_uuid, start_time)")
    base.execute("CREATE TABLE metrics (key, value, timestamp, run_uuid, step, is_nan)")
    base.executemany("INSERT INTO runs VALUES (?, ?)", [("new", 2), ("old", 1)])
    rows = [
        ("ret", 1.0, 1, "new", 0, 0),
        ("ret", 2.0, 2, "new", 1, 0),
        ("ret", 9.0, 3, "old", 2, 0),
    ]
    base.executemany("INSERT INTO metrics VALUES (?, ?, ?, ?, ?, ?)", rows)
    base.commit()
    base.close()
    assert reading(tmp_path, "mlflow.db") == {"ret": 2.0}
    (tmp_path / "other.db").write_bytes(b"no database at all, but text")
    with pytest.raises(DoeError, match=r"other\.db is not a database of MLflow"):
        reading(tmp_path, "other.db")
