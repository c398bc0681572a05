"""Numbers are written once, by the rule of their column."""

import ast
import math
import re
from pathlib import Path

import pytest

from doe.errors import counted, were
from doe.numbers import MISSING, Spread, cell_text
from doe.views import csv
from doe.views.table import Column, Row, Table


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (1.2345678, "num", "1.235"),
        (0.00012345, "num", "0.0001234"),
        (123456.7, "num", "123457"),
        (1.5e9, "num", "1.500e+09"),
        (-0.5, "signed", "−0.5000"),
        (0.5, "signed", "+0.5000"),
        (0.0, "signed", "0"),
        (-24.894, "signed2", "−24.89"),
        (11.1, "signed2", "+11.10"),
        (-0.001, "signed2", "0.00"),
        (0.04321, "p", "0.0432"),
        (1.234e-7, "p", "1.2e-07"),
        (0.0009, "stars", "***"),
        (0.2, "stars", ""),
        (42.345, "percent", "42.3%"),
        (True, "text", "yes"),
        (None, "num", MISSING),
        (math.nan, "num", MISSING),
        (-math.inf, "num", "−∞"),
        (Spread(1.138, 0.0123), "spread2", "1.14±0.01"),
        (Spread(0.38, None), "spread2", "0.38"),
        (Spread(math.nan, None), "spread2", MISSING),
        (Spread(7.66, 2.11), "capped", "7.7±2.1"),
        (Spread(10.0, 3.8), "capped", "10.0±3.8"),
        (Spread(10.01, 3.8), "capped", ">10"),
        (Spread(20.5, 3.8), "capped", ">20"),
        (Spread(57.2, 0.1), "capped", ">50"),
    ],
)
def test_every_rule_writes_what_it_says(value, form, text):
    assert cell_text(value, form) == text


DOE = Path(csv.__file__).parents[1]
ROOMS = ("design", "running", "analysis", "results", "views", "cli")


@pytest.mark.parametrize("room", ROOMS)
def test_numbers_are_rounded_in_one_module(room):
    """Only in `doe.numbers` does an f-string ask for a number of digits."""
    wrong = []
    for path in sorted((DOE / room).rglob("*.py")):
        nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
        forms = [ast.unparse(n.format_spec) for n in nodes if getattr(n, "format_spec", None)]
        wrong += [(path.name, form) for form in forms if re.search(r"\.\d+[efg%]", form)]
    assert not wrong


def test_counts_are_singular_where_they_are_one():
    assert [counted(n, "run") for n in (0, 1, 2)] == ["0 runs", "1 run", "2 runs"]
    assert [were(n) for n in (0, 1, 2)] == ["were", "was", "were"]


def test_csv_holds_raw_values_and_every_spread_in_two_columns():
    columns = (
        Column("config", "Config"),
        Column("B56", "B56", "spread2"),
        Column("size", "", "bar"),
        Column("p", "p", "p"),
    )
    rows = (
        Row(("F=0",), "section"),
        Row(("A0,B1", Spread(1 / 3, None), 1.0, 0.1)),
        Row(("F=1",), "section"),
        Row(('say "x"', None, 2.0, None)),
    )
    assert csv.render(Table("t", "T", columns, rows)) == (
        'section,config,B56,B56_std,p\nF=0,"A0,B1",0.3333333333333333,,0.1\nF=1,"say ""x""",,,\n'
    )


def test_print_has_the_significant_terms_alone():
    from doe.views.table import significant_rows

    columns = (Column("term", "Term"), Column("p_holm", "p Holm", "p"))
    rows = (Row(("A", 0.01)), Row(("B", 0.3)), Row(("Error", None)))
    short = significant_rows(Table("t", "T", columns, rows), 0.05)
    assert [row.values[0] for row in short.rows] == ["A", "Error"]
    assert short.notes == ("Left out: 1 term that is not significant after Holm's adjustment.",)
    none = Table("t", "T", columns, rows[1:2])
    assert significant_rows(none, 0.05) == none, "a table is never empty"
    plain = Table("t", "T", columns[:1], (Row(("A",)),))
    assert significant_rows(plain, 0.05) == plain
    marked = (Row(("A",), marks={"term": "strong"}), Row(("B",)))
    essence = Table("t", "T", columns[:1], marked, essence=True)
    assert significant_rows(essence, 0.05).rows == marked[:1]
    assert significant_rows(essence, 0.05).notes == ("Left out: 1 row that is not marked.",)
