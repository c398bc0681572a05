"""Every study in docs/designs.md can be planned."""

import re
from pathlib import Path

import pytest

from doe.design.runs import make_design
from doe.study.file import parse_study

PAGE = Path(__file__).parents[3] / "docs" / "designs.md"
BLOCKS = re.findall(r"```toml\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
RANGES = """
[factors.lr]
low = 1e-4
high = 1e-1
scale = "log"
[factors.batch]
low = 16
high = 64
[factors.depth]
low = 2
high = 8
"""
OPTIMIZER = """
[factors.optimizer]
levels = ["sgd", "adam"]
"""
KERNEL = """
[factors.kernel]
levels = ["linear", "rbf"]
"""


@pytest.mark.parametrize(
    ("number", "factors", "runs"),
    [
        (0, RANGES, 9),
        (1, RANGES, 20),
        (2, RANGES + OPTIMIZER, 24),
        (3, KERNEL, 2 * (1 + 2)),
        (4, RANGES, 24),
    ],
)
def test_the_study_is_planned(number, factors, runs):
    block = BLOCKS[number].replace("runs = 24", "runs = 24\nstarts = 5")
    head = 'name = "s"\nbackend = "m:f"\n'
    table = "\n[responses]\nmetrics = ['y']\n"
    study = parse_study((head + block + factors + table).encode())
    assert len(make_design(study).runs) == runs


def test_every_block_is_tried():
    assert len(BLOCKS) == 5
