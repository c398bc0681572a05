"""`doe try`: one run in the foreground, nothing on record."""

import sys

import pytest

from doe.design.runs import make_design
from doe.study.file import parse_study
from tests.command_line import doe

STUDY = """
name = "mine"
backend = "{backend}"
{more}
[factors.lr]
low = 0.1
high = 0.2
[factors.aug]
low = false
high = true
[responses]
metrics = ["acc"]
further = ["flops"]
"""
BACKEND = """
def good(request):
    request.report(1, 2, loss=0.5)
    print("training", request.factors["lr"], request.factors["aug"], request.threads)
    (request.run_dir / "model").write_text("x")
    return {"acc": request.factors["lr"]}

def forgetful(request):
    return {"acc": request.factors["lr"]}

def diverging(request):
    return {"acc": float("nan"), **{key: 0.0 for key in dict(request.factors)}}

def failing(request):
    raise ValueError("no data")

def crashing(request):
    import os
    os.abort()
"""


def text(backend, more=""):
    return STUDY.format(backend=backend, more=more)


@pytest.fixture
def attempt(tmp_path):
    def go(backend, *options, more="", code=0):
        (tmp_path / "backends.py").write_text(BACKEND)
        (tmp_path / "study.toml").write_text(text(backend, more))
        before = sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__")
        said = doe("try", *options, cwd=tmp_path, code=code)
        after = sorted(path.name for path in tmp_path.iterdir() if path.name != "__pycache__")
        assert after == before  # nothing is recorded
        return " ".join((said.stdout + said.stderr).split())

    return go


def test_a_function_is_tried(attempt):
    only = max(run.config for run in make_design(parse_study(text("m:f").encode())).runs)
    said = attempt("backends:good", "--only", only)
    assert "Trying lr = 0.2, aug = true, seed 1." in said
    assert "1/2 loss 0.5" in said
    assert "training 0.2 True 1" in said
    assert "acc 0.2" in said
    assert "need not be: flops" in said
    assert "4 runs like this:" in said
    assert "Warning" not in said


def test_a_factor_that_is_never_read_is_told(attempt):
    assert "never read aug; it would measure nothing" in attempt("backends:forgetful")


def test_a_divergence_is_a_result(attempt):
    said = attempt("backends:diverging")
    assert "Diverged: acc is nan" in said
    assert "never read" not in said


@pytest.mark.parametrize(
    ("backend", "message"),
    [
        ("backends:failing", "Failed: ValueError: no data."),
        ("backends:crashing", "ended with SIGABRT"),
        ("backends:absent", "has no function 'absent'"),
        ("elsewhere:run", "there is no module 'elsewhere'"),
    ],
)
def test_a_failure_says_why(attempt, backend, message):
    assert message in attempt(backend, code=3)


def test_a_command_is_tried(attempt, tmp_path):
    (tmp_path / "train.py").write_text(
        "import sys\nprint('epoch 1 of 1')\nprint('acc', sys.argv[1])"
    )
    more = f'command = "{sys.executable} train.py {{lr}} {{aug:--aug}}"\n'
    more += "progress = { pattern = 'step (?P<step>\\d+)', total = 3 }\n"
    more += "metrics = { file = 'stdout', keys = { acc = 'acc (\\S+)' } }"
    said = attempt("command", more=more)
    assert "epoch 1 of 1" in said
    assert "Metrics found: acc 0." in said
    assert "no line of the output was read as progress" in said


def test_an_unknown_configuration_is_named(attempt):
    assert "no configuration 'A1B1' is planned; they look like" in attempt(
        "backends:good", "--only", "A1B1", code=1
    )
