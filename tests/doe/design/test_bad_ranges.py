"""Ranges, scales, sizes and constraints that no design can have: one sentence each."""

import pytest

from doe.design.runs import make_design
from doe.errors import DoeError
from doe.study.file import parse_study

STUDY = """
name = "s"
backend = "m:f"
seeds = [1]
[design]
kind = "{kind}"
{settings}
[factors.x]
low = {low}
high = {high}
scale = "{scale}"
[factors.y]
low = 0.0
high = 1.0
[responses]
metrics = ["m"]
"""


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({"low": 1.0}, "factors.x: low and high are both 1.0"),
        ({"low": 0.0, "scale": "log"}, "got the level 0; logarithms need numbers above 0"),
        ({"settings": "runs = 5"}, "the model has 6 coefficients; expected at least as many runs"),
        ({"settings": 'runs = 9\nconstraints = ["x + y <= -1"]'}, "no configuration satisfies"),
        ({"kind": "surface", "settings": "", "low": 1.0}, "expected two distinct levels"),
        ({"low": -1.7e308, "high": 1.7e308}, "expected a narrower range"),
        ({"high": 10**400}, "expected a 64-bit integer"),
        ({"high": 10**400, "scale": "log"}, "expected a 64-bit integer"),
    ],
)
def test_what_no_design_can_have_is_refused_in_a_sentence(given, sentence):
    whole = {
        "kind": "optimal",
        "settings": "runs = 9",
        "low": 0.1,
        "high": 1.0,
        "scale": "linear",
    } | given
    with pytest.raises(DoeError) as refused:
        make_design(parse_study(STUDY.format(**whole).encode()))
    assert sentence in str(refused.value)
