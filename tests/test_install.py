"""What the package declares is what it imports."""

import ast
import functools
import re
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
PACKAGE = {"PIL": "pillow", "vl_convert": "vl-convert-python"}
"""Modules whose package has another name."""
UNSEEN = {"tomli-w", "pydoe"}
"""Needed without an import: by msgspec to write TOML, and loaded from its files."""

IN_NOTEBOOKS = {"IPython"}
"""Imported in a notebook alone, which has it."""


def declared(requirements):
    return {re.split(r"[<>=\[; ]", line)[0].lower() for line in requirements}


@functools.cache
def imported(package):
    """Packages that modules import, from elsewhere than here and the standard library."""
    own = {"doe", "pit_model", *sys.stdlib_module_names}
    names = set()
    for path in (ROOT / package).rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module:
                names.add(node.module.split(".")[0])
    return {PACKAGE.get(name, name) for name in names - own}


def test_what_doe_imports_is_declared_and_nothing_else():
    extras = PROJECT["optional-dependencies"]
    optional = set().union(*(declared(lines) for name, lines in extras.items() if name != "dev"))
    needed = imported("doe") - optional - IN_NOTEBOOKS
    assert declared(PROJECT["dependencies"]) - UNSEEN == needed


@pytest.mark.parametrize("package", ["torch", "matplotlib"])
def test_doe_does_without_the_trainers_packages(package):
    assert package not in imported("doe") | declared(PROJECT["dependencies"])


def test_what_the_trainer_imports_is_in_its_extras():
    extras = PROJECT["optional-dependencies"]
    extra = declared(extras["pit"]) | declared(extras["video"])
    assert imported("pit_model") - declared(PROJECT["dependencies"]) == extra


def test_one_version_is_named_everywhere():
    version = PROJECT["version"]
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)
    released = re.search(r"^## \[(\d[\d.]*)\] - \d{4}-\d\d-\d\d$", changelog(), re.MULTILINE)
    assert cited
    assert released
    assert cited[1] == released[1] == version
    assert f"doe {version} (pit-doe)" in (ROOT / "docs" / "compare.md").read_text()


def test_the_release_begins_with_a_summary_that_can_be_read():
    summary = changelog().partition("### Summary\n")[2].partition("\n### ")[0]
    assert 5 < len(summary.splitlines()) <= 40


def changelog():
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
