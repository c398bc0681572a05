"""What every module of the room keeps to."""

import re
from pathlib import Path

import pytest

import doe.results

MODULES = sorted(Path(doe.results.__file__).parent.glob("*.py"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: p.name)
def test_no_text_speaks_of_an_option(path):
    """Who calls from Python gives none."""
    assert not re.findall(r"(?<![\w-])--[a-z]+", path.read_text(encoding="utf-8"))
