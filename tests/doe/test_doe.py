"""From Python, and the worked example: plan, run, load, analyse."""

import contextlib
import inspect
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from typer.main import get_command

import doe
from doe import analyze, load, plan, run
from doe.analysis.options import AnalysisOptions
from doe.analysis.tables import TableOptions
from doe.cli import app
from doe.errors import DoeError
from doe.running.engines import engine_options

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


FORMS = {"ctx", "json", "latex", "csv", "plot", "brief", "full", "notify", "serve"}
FUNCTIONS = {
    "plan": (doe.plan, {"file": "study"}, set()),
    "power": (doe.power, {"target": "power"}, set()),
    "try": (doe.try_, {"file": "study"}, set()),
    "run": (doe.run, {"study": "directory"}, set()),
    "analyze": (doe.analyze, {"study": "source"}, {"table", "every"}),
    "report": (doe.report, {"study": "source"}, {"table"}),
    "import": (doe.import_, {}, set()),
}
"""Command -> its function, arguments with another name there, options of the command alone."""


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_the_options_of_the_commands(name):
    function, renamed, alone = FUNCTIONS[name]
    command = get_command(app).commands[name]
    options = {option.name for option in command.params} - {"help"} - FORMS - alone
    if name == "run":
        options -= set(engine_options())
    arguments = inspect.signature(function).parameters
    assert {renamed.get(option, option) for option in options} == set(arguments) - {
        "engine_settings"
    }


def test_every_option_of_an_analysis_is_an_option_of_the_command():
    options = {option.name for option in get_command(app).commands["analyze"].params}
    assert set(AnalysisOptions.__struct_fields__) - {"seed", "contour"} <= options
    assert set(TableOptions.__struct_fields__) <= options


def test_power_and_budget_are_those_of_the_commands(in_digits, tmp_path):
    from tests.command_line import doe as command

    words = ("power", "-k", "4", "--fraction", "1/2", "--effect", "1", "-n", "3", "--json")
    document = doe.power(factors=4, fraction="1/2", effect=1, replicates=3)
    assert json.loads(command(*words).stdout) == json.loads(json.dumps(document))
    with pytest.raises(DoeError, match="choose a design that fits 24 runs: 1 full factorial"):
        doe.plan("study.toml", budget="24 runs")
    second = doe.plan("study.toml", budget="24 runs", choose=2, out=tmp_path / "second")
    listed = json.loads(command("plan", "study.toml", "--budget", "24 runs", "--json").stdout)
    assert len(doe.load(second)) == listed["designs"][1]["runs"]


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
