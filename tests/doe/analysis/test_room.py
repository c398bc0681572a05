"""The room itself: no disk, no views, no words of the command line, one file per estimator."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from factorial_tables import study, table

from doe.analysis import estimators, scales
from doe.analysis.options import AnalysisOptions
from doe.views.json import to_plain
from doe.views.tables.effects import effects_table
from doe.views.words import advice_text

ROOM = Path(estimators.__file__).parents[1]
MODULES = sorted(ROOM.rglob("*.py"))


def names_of_calls(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            called = node.func
            yield called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.name)
def test_no_file_is_read_or_written(path: Path) -> None:
    disk = re.compile(r"open|read_\w+|to_(csv|json|pickle|parquet)|(load|save)(txt|z)?|\w+file")
    assert not [name for name in names_of_calls(path) if disk.fullmatch(name)]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.name)
def test_no_text_speaks_of_the_command_line(path: Path) -> None:
    assert not re.findall(r"(?<![\w-])--[a-z]+", path.read_text(encoding="utf-8"))


def test_every_remedy_is_an_option_of_the_analysis() -> None:
    rng = np.random.default_rng(0)
    y = np.exp(2 * rng.normal(size=64))
    findings = study(table("ABC", y), "ABC").diagnostics.findings
    remedies = {remedy for finding in findings for remedy in finding.remedies}
    assert {"robust", "transform=auto", "transform=log"} <= remedies
    assert {remedy.partition("=")[0] for remedy in remedies} <= set(
        AnalysisOptions.__struct_fields__
    )
    normality = next(f for f in findings if f.check == "normality")
    assert advice_text(normality).endswith(" (--robust, --transform auto).")


def test_neither_torch_nor_views_are_loaded() -> None:
    code = "import sys, doe.analysis.effects_by_response, doe.analysis.tables; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "doe.analysis.estimators.robust" not in loaded  # found when first used
    assert "doe.analysis.fit" in loaded
    assert not {
        name for name in loaded if name.startswith(("torch", "altair", "rich", "doe.views"))
    }


def test_an_estimator_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "midrange_of_runs.py").write_text(
        "from msgspec import Struct\n"
        "class Midrange(Struct, frozen=True):\n    value: float\n"
        "def estimate(case):\n    return Midrange(float(case.fit.y.min() + case.fit.y.max()) / 2)\n"
    )
    monkeypatch.setattr(estimators, "__path__", [*estimators.__path__, str(tmp_path)])
    found = study(table("AB", [1.0, 2.0, 4.0, 7.0]), "AB")
    assert to_plain(found)["diagnostics"]["midrange_of_runs"] == {"value": 4.0}
    kind = type(found.estimates["midrange_of_runs"])
    assert msgspec.to_builtins(found.get(kind)) == {"value": 4.0}


def test_a_transformation_costs_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "root.py").write_text(
        "import numpy as np\n"
        "from doe.analysis.scales import Scale\n"
        'SCALE = Scale(np.sqrt, np.square, "√{}")\n'
    )
    monkeypatch.setattr(scales, "__path__", [*scales.__path__, str(tmp_path)])
    found = study(table("AB", [1.0, 4.0, 9.0, 25.0]), "AB", transform="root")
    assert found.effects[0].effect == pytest.approx((2 + 5) / 2 - (1 + 3) / 2)
    assert found.response_scale[0].value == pytest.approx(3.5**2 - 2.0**2)
    assert "√y" in effects_table(found).title
    assert found.best.cells[-1].mean == pytest.approx(25.0)


def test_warnings_are_whole_sentences() -> None:
    y = np.random.default_rng(1).normal(size=16)
    half = [cell for cell in range(16) if cell.bit_count() % 2 == 0]
    warned = [
        *study(table("ABC", y[:8]), "ABC").warnings,
        *study(table("ABC", y[:7], range(7)), "ABC").warnings,
        *study(table("ABCD", y[:8], half), "ABCD").warnings,
        *study(table("AB", y[:5], [0, 1, 2, 3, 0]), "AB", robust=True, permutations=99).warnings,
    ]
    assert len(warned) > 4
    for sentence in warned:
        assert sentence[0].isupper() or sentence[0].isdigit(), sentence
        assert sentence.endswith("."), sentence
