"""The package as a user gets it: built, installed alone in an empty environment, used elsewhere."""

import os
import shutil
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PIP = ["-m", "pip", "--quiet", "--disable-pip-version-check"]

pytestmark = pytest.mark.wheel


def call(*words, cwd=ROOT, code=0):
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    done = subprocess.run(
        [*map(str, words)], cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == code, f"{words}:\n{done.stdout}\n{done.stderr}"
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    built = tmp_path_factory.mktemp("built")
    call(sys.executable, *PIP, "wheel", "--no-deps", "--wheel-dir", built, ROOT)
    (wheel,) = built.glob("*.whl")
    return wheel


def install(programs, *requirements):
    constraints = ["--constraint", ROOT / "constraints.txt"]
    call(programs / "python", *PIP, "install", "--no-compile", *constraints, *requirements)


@pytest.fixture(scope="module")
def programs(wheel, tmp_path_factory):
    """The directory of programs of an environment that holds the wheel without any extra."""
    environment = tmp_path_factory.mktemp("environment")
    venv.create(environment, with_pip=True)
    # scikit-learn is what the example trains with; the package does not ask for it.
    install(environment / "bin", wheel, "scikit-learn")
    return environment / "bin"


@pytest.fixture
def digits(tmp_path):
    return Path(shutil.copytree(ROOT / "examples" / "digits", tmp_path / "digits"))


def test_types_studies_and_templates_are_in_it(wheel):
    """Every file of the packages, and `py.typed` above all."""
    shipped = {
        str(path.relative_to(ROOT))
        for package in ("doe", "pit_model")
        for path in (ROOT / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert "doe/py.typed" in shipped
    assert shipped <= set(zipfile.ZipFile(wheel).namelist())


def test_the_trainers_packages_are_not_brought_along(programs):
    code = "from importlib.metadata import distributions as d; print(*[x.name for x in d()])"
    names = set(call(programs / "python", "-c", code, cwd="/").lower().split())
    assert {"pit-doe", "pydoe"} <= names
    assert not names & {"torch", "matplotlib", "pillow", "pytest"}
    assert not [name for name in names if name.startswith("nvidia")]


def test_the_example_is_planned_run_reported_and_exported(wheel, programs, digits):
    doe = programs / "doe"
    call(doe, "plan", "study.toml", "--replicates", "1", cwd=digits)
    assert "16 done" in call(doe, "run", "--cpu", "2", cwd=digits)
    assert "penalty" in call(doe, "analyze", "--response", "loss", cwd=digits)
    call(doe, "report", cwd=digits)
    assert 'id="data"' in (digits / "reports" / "digits" / "index.html").read_text().lower()
    export = [doe, "export", "--out", "all.parquet"]
    assert "pip install 'pit-doe[parquet]'" in call(*export, cwd=digits, code=1)
    install(programs, f"{wheel}[parquet]")
    call(*export, cwd=digits)
    call(doe, "export", "--out", "all.csv", cwd=digits)
    same = """
import pandas as pd
table, text = pd.read_parquet("all.parquet"), pd.read_csv("all.csv")
assert list(table.columns) == list(text.columns), table.columns
assert (table["state"] == "done").sum() == 16
pd.testing.assert_frame_equal(table[["seed", "loss"]], text[["seed", "loss"]], check_dtype=False)
"""
    call(programs / "python", "-c", same, cwd=digits)


def test_what_needs_the_trainer_names_the_extra(programs, tmp_path):
    install = "pip install 'pit-doe[pit]'"
    assert install in call(programs / "doe", "plan", "--preset", "demo", cwd=tmp_path, code=1)
    assert not list(tmp_path.iterdir())
    train = ["train", "--preset", "demo", "--out", tmp_path / "run"]
    assert install in call(programs / "pit", *train, cwd=tmp_path, code=1)
    assert "Usage: pit" in call(programs / "pit", "-h")
    for program in ("doe", "pit"):
        assert call(programs / program, "--version").startswith(f"{program} 0.")
