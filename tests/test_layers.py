"""Who may import whom, and what a command may load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Each module of doe with what it may import of doe; a package stands for all its modules.
LAYERS = {
    "errors": set(),
    "terms": {"errors"},
    "alias": {"errors", "terms"},
    "study": set(),
    "check": {"errors", "alias", "study"},
    "spec": {"errors", "check", "study"},
    "builtin": {"errors", "study"},
    "design": {"errors", "terms", "alias", "study"},
    "power": {"errors"},
    "store": {"errors"},
    "plan": {"errors", "terms", "alias", "study", "check", "spec", "design", "power", "store"},
    "lease": {"store"},
    "attempts": {"store"},
    "log": {"store"},
    "breaker": {"store"},
    "provenance": set(),
    "sessions": {"lease"},
    "backend": {"errors", "study", "design", "store"},
    "process": {"errors"},
    "worker": {
        *("errors", "store", "lease", "attempts", "log", "process", "provenance", "sessions"),
        "backend",
    },
    "scan": {"errors", "study", "design", "plan", "store", "lease", "attempts"},
    "progress": {"scan", "store"},
    "responses": {"scan", "store", "study"},
    "analysis": {"errors", "terms", "analysis"},
}


def modules(package):
    return sorted((ROOT / package).rglob("*.py"))


def imported(path):
    """Names of the modules that a file imports, those inside functions and blocks included."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            assert node.level == 0, f"{path}: relative import"
            yield node.module
            if node.module == "doe":
                yield from (f"doe.{alias.name}" for alias in node.names)


@pytest.mark.parametrize("path", modules("doe"), ids=lambda p: str(p.relative_to(ROOT)))
def test_doe_imports_downwards_and_never_the_model(path):
    part = path.relative_to(ROOT / "doe").parts[0].removesuffix(".py")
    for name in imported(path):
        first, *rest = name.split(".")
        assert first != "pit_model", f"{path} imports {name}"
        if first == "doe" and rest and part in LAYERS:
            allowed = LAYERS[part]
            assert rest[0] in allowed, f"{path} imports {name}; allowed are {sorted(allowed)}"


@pytest.mark.parametrize("path", modules("pit_model"), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_model_knows_nothing_of_designs(path):
    assert not [name for name in imported(path) if name.split(".")[0] == "doe"]


@pytest.mark.parametrize("path", modules("doe/analysis"), ids=lambda p: p.name)
def test_statistics_touch_neither_disk_nor_torch_nor_views(path):
    forbidden = {"torch", "os", "pathlib", "io", "rich", "altair", "typer"}
    assert not [name for name in imported(path) if name.split(".")[0] in forbidden]


def loaded(code):
    """Top-level modules in a fresh interpreter after running some code."""
    probe = f"import sys\n{code}\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())


@pytest.mark.parametrize("module", ["doe.cli", "doe.analysis"])
def test_neither_torch_nor_the_model_is_loaded_by(module):
    assert not loaded(f"import {module}") & {"torch", "pit_model"}


def test_help_loads_nothing_heavy():
    code = "from doe.cli import app\ntry: app(['--help'])\nexcept SystemExit: pass"
    heavy = {"torch", "pit_model", "pandas", "scipy", "statsmodels", "numpy", "altair"}
    assert not loaded(code) & heavy
