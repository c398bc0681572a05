"""From Python, and the worked example: plan, run, load, analyse."""

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

from doe import analyze, load, plan, run
from doe.errors import DoeError

DIGITS = Path(__file__).parents[2] / "examples" / "digits"


@pytest.fixture
def in_digits(monkeypatch):
    """Where a user of the example stands; `python` is the one with scikit-learn."""
    monkeypatch.chdir(DIGITS)
    folder = str(Path(sys.executable).parent)
    monkeypatch.setenv("PATH", f"{folder}{os.pathsep}{os.environ['PATH']}")


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """The example, run once."""
    with contextlib.chdir(DIGITS), contextlib.redirect_stdout(io.StringIO()) as shown:
        study = plan("study.toml", out=tmp_path_factory.mktemp("digits") / "digits")
        assert run(study, cpu=2)["done"] == 32
    assert "32 of 32 runs" in shown.getvalue()
    return study


@pytest.mark.slow
def test_the_digits_in_five_lines(digits):
    table = load(digits)
    result = analyze(digits, "error")
    assert len(table) == 32
    assert table["error"].between(1, 40).all()
    by_components = table.groupby("components")["error"].mean()
    effect = result.effects.set_index("term").loc["components"]
    assert effect.effect == pytest.approx(by_components[30] - by_components[10])
    assert effect.effect < 0


@pytest.mark.slow
def test_function_and_command_agree_number_for_number(digits, in_digits, tmp_path):
    by_command = plan("study-command.toml", out=tmp_path / "command")
    run(by_command, cpu=1, limit=2)
    first, second = load(digits), load(by_command)
    assert first["run_id"].tolist() == second["run_id"].tolist()
    done = second["state"].eq("done")
    assert done.sum() == 2
    assert first.loc[done, "loss"].tolist() == second.loc[done, "loss"].tolist()


def test_importing_the_package_is_light():
    code = "import sys, doe; print({'pandas', 'numpy', 'torch', 'rich'} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"


def test_a_study_and_a_preset_exclude_each_other():
    with pytest.raises(DoeError, match="both a study and a preset"):
        plan("study.toml", preset="demo")


def test_the_version_says_whose_command_it_is():
    """Another package installs a command of the same name."""
    from tests.command_line import doe as command

    assert command("--version").stdout.endswith(" (pit-doe)\n")
