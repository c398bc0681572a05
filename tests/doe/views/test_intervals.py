"""Every interval says of what it is; predictions stay where the response can be."""

import re

import numpy as np
import pandas as pd
import pytest

from doe.analysis.analyze import analyze
from doe.analysis.options import AnalysisOptions
from doe.analysis.tables import TableOptions, table_datasets
from doe.results.report import report_of
from doe.results.sources import read_source
from doe.views.headlines import headlines
from doe.views.json import to_plain
from doe.views.latex import render
from doe.views.profiler import profile_json
from doe.views.tables import response_tables

NAMED = re.compile(r"single|at once|Intervals|interval", re.IGNORECASE)


def crossed(between=0.0, levels=2):
    """Two factors with a large effect of A, and what B does where A is high."""
    rng = np.random.default_rng(3)
    rows = [
        {"A": a, "B": b, "y": 20 + 8 * a + between * (a - 0.5) * (b - 0.5) + rng.normal(0, 0.5)}
        for _ in range(4)
        for a in (0, 1)
        for b in range(levels)
    ]
    return pd.DataFrame(rows).round(4)


def analysed(frame, **options):
    columns = TableOptions(factors=("A", "B"), goal="max")
    return analyze(
        table_datasets(frame.astype(str), columns, ("y",))[0], AnalysisOptions(**options)
    )


@pytest.mark.parametrize("levels", [2, 3])
def test_every_table_with_intervals_says_of_what_they_are(levels):
    analysis = analysed(crossed(levels=levels), robust=True, permutations=99)
    ends = ("ci_low", "low", "mcb_low", "share_low")
    tables = [t for t in response_tables(analysis) if any(c.key in ends for c in t.columns)]
    assert len(tables) >= levels
    for table in tables:
        assert NAMED.search(" ".join((table.title, *table.notes))), table.name
        assert NAMED.search(render(table)), "LaTeX"


def test_a_prediction_that_leaves_out_the_observed_mean_is_marked():
    fits = analysed(crossed(), order=1)
    assert not any(p.outside for p in fits.predictions)
    apart = analysed(crossed(between=6.0), order=1)  # an interaction that the model leaves out
    assert all(p.outside for p in apart.predictions)
    assert all(p["outside"] for p in to_plain(apart)["diagnostics"]["predictions"])
    options = TableOptions(factors=("A", "B"), goal="max")
    subject = read_source(crossed(between=6.0), ["y"], options, print)
    report = report_of(subject, AnalysisOptions(order=1))
    for row in profile_json(report, apart, subject.factors)["rows"]:
        assert row[5].endswith(", not the observed mean")
    best = next(t for t in response_tables(apart) if t.name == "best y")
    assert "95 % for all predictions at once" in " ".join(best.notes)
    assert "95 % CI" in headlines(apart).effects[0]
