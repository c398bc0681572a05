"""Who may import whom, and what a command may load."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent

# Modules of doe from the bottom up; each imports its own layer and those above it in this list.
# A package stands for all its modules that are not named themselves.
LAYERS = (
    ("words", "errors", "terms", "alias", "study", "check", "spec", "builtin"),
    ("plan", "store", "design", "power", "plan"),
    ("disk", "lease", "attempts", "log", "provenance", "sessions", "process", "scan", "progress"),
    ("table", "responses", "history"),
    ("worker", "backend", "worker", "ready"),
    ("runner", "engines", "crash", "breaker", "placing", "runner"),
    ("statistics", "analysis", "results"),
    ("gathered", "views.table", "overview", "paper", "report"),
    ("views", "views"),
    ("doors", "execute", "serve", "api", "cli"),
)
RANK = {module: rank for rank, (_, *names) in enumerate(LAYERS) for module in names}

# What the lowest layers may import is narrower than their place in the list.
NARROW = {
    "errors": set(),
    "terms": {"errors"},
    "alias": {"errors", "terms"},
    "study": set(),
    "check": {"errors", "alias", "study"},
    "spec": {"errors", "check", "study"},
    "builtin": {"errors", "study"},
    "store": {"errors"},
    "power": {"errors"},
    "design": {"errors", "terms", "alias", "study"},
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
            for alias in node.names:
                inside = f"{node.module}.{alias.name}"
                yield inside if is_module(inside) else node.module


def is_module(name):
    place = ROOT.joinpath(*name.split("."))
    return place.with_suffix(".py").exists() or (place / "__init__.py").exists()


def layer_name(dotted):
    """The entry of LAYERS that a module below doe belongs to: ``views.table``, else ``views``."""
    return dotted if dotted in RANK else dotted.split(".")[0]


@pytest.mark.parametrize("path", modules("doe"), ids=lambda p: str(p.relative_to(ROOT)))
def test_doe_imports_downwards_and_never_the_model(path):
    relative = path.relative_to(ROOT / "doe").with_suffix("")
    if relative.parts == ("__init__",):
        return
    part = layer_name(".".join(relative.parts).removesuffix(".__init__"))
    assert part in RANK, f"{path}: give it a place in LAYERS"
    for name in imported(path):
        first, _, rest = name.partition(".")
        assert first != "pit_model", f"{path} imports {name}"
        if first == "doe" and rest:
            target = layer_name(rest)
            assert RANK[target] <= RANK[part], f"{path} imports {name}, which stands above it"
            if part in NARROW:
                assert target in NARROW[part], f"{path} imports {name}"


def test_no_two_modules_import_each_other_even_by_a_detour():
    graph = {}
    for path in modules("doe"):
        name = ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")
        graph[name] = set(imported(path)) - {name}
    done, under_way = set(), []

    def visit(name):
        assert name not in under_way, " -> ".join([*under_way, name])
        if name in done or name not in graph:
            return
        under_way.append(name)
        for target in sorted(graph[name]):
            visit(target)
        done.add(under_way.pop())

    for name in sorted(graph):
        visit(name)


@pytest.mark.parametrize("path", modules("pit_model"), ids=lambda p: str(p.relative_to(ROOT)))
def test_the_model_knows_nothing_of_designs(path):
    assert not [name for name in imported(path) if name.split(".")[0] == "doe"]


def loaded(code):
    """Top-level modules in a fresh interpreter after running some code."""
    probe = f"import sys\n{code}\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())


def test_help_loads_nothing_heavy():
    code = "from doe.cli import app\ntry: app(['--help'])\nexcept SystemExit: pass"
    heavy = {"torch", "pit_model", "pandas", "scipy", "statsmodels", "numpy", "altair"}
    assert not loaded(code) & heavy
