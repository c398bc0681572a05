"""The rows of a design are the same whichever package makes them."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from doe.design import pydoe as packages
from doe.design.kinds import fraction as fractions
from doe.design.kinds import subset
from doe.design.runs import make_design
from doe.design.table import design_csv
from doe.errors import DoeError
from doe.study.file import load_study
from doe.terms import parse_generators

ROOT = Path(__file__).parents[3]
PACKAGES = dict(packages.PYDOE)


@pytest.fixture(params=PACKAGES)
def package(request, monkeypatch):
    """Leave one package; what an earlier test loaded is forgotten before and afterwards."""
    if find_spec(request.param) is None:
        pytest.skip(f"{request.param} is not installed")
    monkeypatch.setattr(packages, "PYDOE", {request.param: PACKAGES[request.param]})
    caches = (packages.pydoe, subset._parts)
    for cached in caches:
        cached.cache_clear()
    yield request.param
    for cached in caches:
        cached.cache_clear()


def test_a_planned_study_stays_as_it_is(package):
    planned = ROOT / "runs" / "pit-small"
    study = load_study(planned / "study.toml")
    assert design_csv(make_design(study)) == (planned / "design.csv").read_text()


@pytest.mark.parametrize(
    ("fraction", "rows"),
    [
        ("C=AB", [1, 2, 4, 7]),
        ("C=-AB", [0, 3, 5, 6]),
        ("A=-BC", [0, 3, 5, 6]),
        ("C=-AB, D=AB", [5, 6, 8, 11]),
    ],
)
def test_rows_of_two_level_designs(package, fraction, rows):
    keys = tuple("ABCD" if "D" in fraction else "ABC")
    assert fractions.two_level_rows(len(keys), parse_generators(fraction, keys)) == rows


def test_parts_of_a_larger_design_and_their_order(package):
    assert subset._parts((3, 3, 2), 3) == (
        (0, 5, 7, 10, 12, 17),
        (2, 4, 6, 9, 14, 16),
        (1, 3, 8, 11, 13, 15),
    )


def test_without_either_package_the_remedy_is_named(monkeypatch):
    monkeypatch.setattr(packages, "PYDOE", {"no_such_package": ()})
    packages.pydoe.cache_clear()
    with pytest.raises(DoeError, match="pip install pydoe"):
        packages.pydoe()
    packages.pydoe.cache_clear()
