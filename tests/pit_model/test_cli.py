import json
import subprocess
import sys

import pytest
from rich.console import Console
from typer.testing import CliRunner

from pit_model import cli
from pit_model.cli import app, parse_settings
from pit_model.config import Config
from pit_model.display import Watch
from pit_model.errors import PitError

from .conftest import TINY

SETTINGS = [f"--set={key}={value}" for key, value in TINY.items() if key != "preset"]


def call(*words):
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, list(map(str, words)))
    if isinstance(result.exception, PitError):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.output


def test_train_evaluate_figures_and_baseline(tmp_path):
    out = tmp_path / "run"
    train = ("train", "--out", out, "--preset", "demo", "--config", "A1B1C1D0E1F1", *SETTINGS)
    said = call(*train, "--seed", 100, "--threads", 1)
    assert "2/2 epochs" in said
    assert "best B16" in said
    values = json.loads((out / "metrics.json").read_text())
    assert f"{values['B16']:.3f}" in said

    said = call("evaluate", out, "--threads", 1)
    assert f"{values['P4']:.3f}" in said
    assert "B, px" in said
    exact = call("evaluate", out, "--physics", "exact", "--window", 5, "--threads", 1)
    assert f"{values['B4']:.3f}" in exact
    assert f"{values['P4']:.3f}" not in exact

    said = call("figures", out)
    assert (out / "figures" / "trajectory.png").exists()
    assert (out / "figures" / "path.png").exists()
    assert "trajectory.png" in said

    said = call("baseline", "--run", out)
    assert "PIT A1B1C1D0E1F1" in said
    assert "three-frame difference" in said
    assert f"{values['B16']:.3f}" in said

    with pytest.raises(PitError, match="contains a run with other settings or another seed"):
        call(*train, "--seed", 101)
    assert "3/3 epochs" in call(*train, "--seed", 100, "--threads", 1, "--set", "epochs=3")


def test_the_best_value_of_an_earlier_attempt_is_kept(tmp_path, capsys):
    config = Config.from_settings(TINY)
    (tmp_path / "epochs.csv").write_text("epoch,B16\n0,4.5\n1,3.25\n")
    with Watch(Console(), config, tmp_path) as watch:
        watch(3, 4, loss=1.0, B16=5.0)
        watch(4, 4, loss=0.5, B16=2.0)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "3/4 epochs  loss 1.0000  best B16 3.250 px",
        "4/4 epochs  loss 0.5000  best B16 2.000 px",
    ]


def test_baseline_shows_each_kind_of_noise():
    said = call("baseline", "--preset", "demo", "--set", "test_sequences=2")
    for videos in ("clean", "static noise", "noise of every frame"):
        assert videos in said


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--set", "F=true"], "F cannot be set here: every kind of noise is shown"),
        (["--set", "noise=static"], "noise cannot be set here"),
        (["--run", ".", "--preset", "demo"], "remove --preset and --set"),
    ],
)
def test_baseline_ignores_no_option(words, message):
    with pytest.raises(PitError, match=message):
        call("baseline", *words)


def test_simulate_writes_sequences(tmp_path):
    call("simulate", "--out", tmp_path, "--preset", "demo", "--count", 2, "--noisy")
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["test-000.gif", "test-000.npz", "test-001.gif", "test-001.npz"]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train", "--set", "image_sise=112"], "did you mean 'image_size'"),
        (["train", "--set", "image_size=100"], "expected a multiple of 8"),
        (["train", "--set", "image_size"], "not of the form KEY=VALUE"),
        (["train", "--config", "A1B1"], "expected each of A to F"),
        (["train", "--preset", "large"], "unknown preset 'large'"),
        (["train", "--device", "cuda:7"], "device 'cuda:7' was not found"),
        (["simulate", "--split", "training"], "split 'training' is unknown"),
        (["simulate", "--format", "avi"], "video format 'avi' is unknown"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_1(tmp_path, monkeypatch, capsys, words, message):
    monkeypatch.setattr(sys, "argv", ["pit", *words, "--out", str(tmp_path / "out")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 1
    said = capsys.readouterr().err
    assert message in said
    assert said.startswith("error: ")
    assert said.count("\n") == 1


def test_commands_that_need_a_run_say_so(tmp_path):
    for words in (["evaluate", tmp_path], ["figures", tmp_path], ["baseline", "--run", tmp_path]):
        with pytest.raises(PitError, match="is not a run"):
            call(*words)


def test_values_of_settings_are_typed():
    given = ["image_size=112", "learning_rate=1e-3", "antialias=true", "noise=per_frame"]
    assert parse_settings(given) == {
        "image_size": 112,
        "learning_rate": 1e-3,
        "antialias": True,
        "noise": "per_frame",
    }


def test_the_command_line_starts_without_heavy_modules():
    code = (
        "import sys, pit_model.cli\n"
        "sys.exit(bool({'torch', 'numpy', 'matplotlib', 'rich.progress'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
