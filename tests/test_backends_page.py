"""The worked pages of docs/backends.md: their files are written, tried, planned and run."""

import os
import re
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from doe.store.files import RunDir
from doe.store.progress import read_steps
from tests.command_line import doe

PAGE = (Path(__file__).parent.parent / "docs" / "backends.md").read_text(encoding="utf-8")
BLOCK = re.compile(r"^```\w+\n(?:# |/\* )([\w.]+)(?: \*/)?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def pages():
    """Title of a worked page -> its files."""
    worked = PAGE.partition("# Worked pages\n")[2]
    parts = re.split(r"^## (.+)\n", worked, flags=re.MULTILINE)[1:]
    return {
        title: dict(BLOCK.findall(text))
        for title, text in zip(parts[::2], parts[1::2], strict=True)
    }


PAGES = pages()
NEEDS = {
    "Hydra": ("hydra",),
    "Hugging Face Trainer": ("transformers", "accelerate"),
    "Lightning": ("pytorch_lightning", "jsonargparse"),
}
"""Page -> the packages that it is about; `make test-pages` installs them."""


def test_every_page_is_there():
    assert list(PAGES) == [
        "An argparse script",
        "Hydra",
        "Hugging Face Trainer",
        "Lightning",
        "A shell script or a C program",
    ]
    assert all("study.toml" in files for files in PAGES.values())


@pytest.mark.parametrize("title", PAGES)
def test_a_worked_page_runs(title, tmp_path, monkeypatch):
    for package in NEEDS.get(title, ()):
        if find_spec(package) is None:
            pytest.skip(f"could not find {package}")
    for name, text in PAGES[title].items():
        (tmp_path / name).write_text(text)
    if "solve.c" in PAGES[title]:
        if shutil.which("cc") is None:
            pytest.skip("no C compiler")
        subprocess.run(["cc", "-o", "solve", "solve.c"], cwd=tmp_path, check=True)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.chdir(tmp_path)
    said = doe("try").stdout
    assert "Metrics found" in said
    assert "\nWarning: " not in said
    doe("plan")
    assert "4 done" in doe("run", "--cpu", "2").stdout
    assert doe("export").stdout.count(",done,") == 4
    if "[progress]" in PAGES[title]["study.toml"]:
        told = [read_steps(RunDir(path.parent)) for path in tmp_path.glob("runs/*/*/result.json")]
        assert all(steps and steps[-1].step >= steps[-1].total - 1 for steps in told)
