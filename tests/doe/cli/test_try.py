"""`doe try`: one run in the foreground, nothing on record."""

import json
import sys

import pytest

from doe.cli.trial import time_lines
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
    assert "Trying: lr = 0.2, aug = true, seed 1." in said
    assert "1/2 loss 0.5" in said
    assert "training 0.2 True 1" in said
    assert "acc 0.2" in said
    assert "optional: flops" in said
    assert "4 runs like this:" in said
    assert "other configurations may be slower" in said
    assert "Warning" not in said


def test_a_factor_that_is_never_read_is_told(attempt):
    assert "never read aug, so changing it would have no effect" in attempt("backends:forgetful")


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


def test_the_whole_study_is_foretold_as_a_range():
    (two, _), (one, _) = time_lines([4.875, 29.5], 32, 0, 1), time_lines([4.875], 32, 0, 1)
    assert "32 runs like these: 2 min 36 s to 15 min 44 s one after the other" in two
    assert "32 runs like this: 2 min 36 s one after the other; other configurations may be" in one


def test_the_opposite_configuration_is_tried_too(attempt, tmp_path):
    code = "def run(r):\n    return {'acc': 1 / (r.factors['aug'] == FIRST)}\n"
    first = make_design(parse_study(text("m:f").encode())).runs[0].levels
    (tmp_path / "half.py").write_text(code.replace("FIRST", str(first["aug"])))
    said = attempt("half:run", code=3)
    other = "false" if first["aug"] else "true"
    assert f"And the opposite: lr = {0.3 - first['lr']:.1f}, aug = {other}" in said
    assert said.index("acc 1") < said.index("Failed: ZeroDivisionError")


def command_of(tmp_path, words, more=""):
    (tmp_path / "train.py").write_text("import sys\nprint('acc', len(sys.argv))\n")
    return f'command = "{sys.executable} train.py {words}"\nmetrics = {{ file = "stdout" }}\n{more}'


def test_replicates_without_a_seed_are_announced(attempt, tmp_path):
    more = command_of(tmp_path, "{lr} {aug:--aug}", "replicates = 2\n")
    assert "Warning: the command does not use {seed}" in attempt("command", more=more)
    said = " ".join(doe("plan", cwd=tmp_path).stdout.split())
    assert "warning: the command does not use {seed}" in said
    assert "Detectable" not in said
    planned = json.loads(doe("plan", "--json", cwd=tmp_path).stdout)
    assert planned["detectable_effect_per_sigma"] is None
    assert "its replicates are identical copies" in planned["warnings"][0]
    assert "which say nothing about power" in doe("power", cwd=tmp_path, code=1).stderr


@pytest.mark.parametrize(
    ("words", "more"), [("{lr} {aug:--aug} {seed}", "replicates = 2\n"), ("{lr} {aug:--aug}", "")]
)
def test_a_seed_or_a_single_replicate_makes_no_copies(attempt, tmp_path, words, more):
    assert "{seed}" not in attempt("command", more=command_of(tmp_path, words, more))
    assert ("Detectable" in doe("plan", cwd=tmp_path).stdout) is bool(more)


def test_a_pattern_that_cannot_read_a_nan_is_announced(attempt, tmp_path):
    more = command_of(tmp_path, "{lr} {aug:--aug}").replace(
        '"stdout"', "\"stdout\", keys = { acc = 'acc (\\d+)' }"
    )
    said = attempt("command", more=more)
    assert r"its group (\d+) cannot read every number, among nan and -1.5e-3" in said


def test_an_unknown_configuration_is_named(attempt):
    assert "no configuration 'A1B1' is planned; they look like" in attempt(
        "backends:good", "--only", "A1B1", code=1
    )
