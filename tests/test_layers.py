"""Who may import whom, and what a command may load. The table of rooms is CONTRIBUTING's."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


def rooms():
    """Room -> the rooms that it may import, as CONTRIBUTING.md says."""
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| [^|]+ \| ([^|]*) \|$", text, re.MULTILINE)
    return {room: set(re.findall(r"`(\w+)`", allowed)) for room, allowed in rows}


ROOMS = rooms()


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
    path = ROOT.joinpath(*name.split("."))
    return path.with_suffix(".py").exists() or (path / "__init__.py").exists()


def test_the_tree_is_the_table():
    there = {path.stem for path in (ROOT / "doe").iterdir() if path.name != "__pycache__"}
    assert there - {"__init__", "py"} == set(ROOMS)


@pytest.mark.parametrize("path", modules("doe"), ids=lambda p: str(p.relative_to(ROOT)))
def test_a_room_imports_what_the_table_allows_and_never_the_model(path):
    room = path.relative_to(ROOT / "doe").with_suffix("").parts[0]
    for name in imported(path):
        first, _, rest = name.partition(".")
        assert first != "pit_model", f"{path} imports {name}"
        if first == "doe" and rest and room != "__init__":
            assert rest.split(".")[0] in {room, *ROOMS[room]}, f"{path} imports {name}"


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


TRACKING = (
    r"\b(?:pit|aelos?|pills?|ball|videos?|velocit\w*|encoder|decoder|tracker|tracking)\b"
    r"|\b(?:enc|dec)_avg\b|pit_model"
)


def shipped(package):
    """Every file of a package, templates and the schema too."""
    files = (path for path in (ROOT / package).rglob("*") if path.is_file())
    return sorted(path for path in files if "__pycache__" not in path.parts)


@pytest.mark.parametrize("path", shipped("doe"), ids=lambda p: str(p.relative_to(ROOT)))
def test_doe_knows_nothing_of_tracking(path):
    # "pit-doe" is the name under which the package is installed.
    text = path.read_text(encoding="utf-8").replace("pit-doe", "").replace("json.Decoder", "")
    assert not re.findall(TRACKING, text, re.IGNORECASE)


@pytest.mark.parametrize("path", modules("doe/analysis"), ids=lambda p: p.name)
def test_statistics_touch_neither_disk_nor_torch_nor_views(path):
    forbidden = {"torch", "os", "pathlib", "io", "rich", "altair", "typer"}
    assert not [name for name in imported(path) if name.split(".")[0] in forbidden]


def loaded(code):
    """Top-level modules in a fresh interpreter after running some code."""
    probe = f"import sys\n{code}\nprint(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    return set(done.stdout.split("\n")[-2].split())


HEAVY = {"torch", "pit_model", "pandas", "scipy", "statsmodels", "numpy", "altair"}


def test_the_command_line_and_the_package_load_nothing_heavy():
    code = "import doe\nfrom doe.cli import app\ntry: app(['--help'])\nexcept SystemExit: pass"
    assert not loaded(code) & HEAVY


def test_an_analysis_loads_neither_torch_nor_the_model():
    assert not loaded("import doe.analysis.analyze") & {"torch", "pit_model"}
