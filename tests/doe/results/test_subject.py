"""A study and a table take one road: a table's facts of its runs are on its page."""

import json

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import doe
from doe.analysis.options import AnalysisOptions
from doe.analysis.tables import TableOptions
from doe.cli import app
from doe.errors import DoeError
from doe.results.report import report_of
from doe.results.sources import page_source, read_source

COLUMNS = TableOptions(("a", "b"), block="day", goal="max")


@pytest.fixture
def frame():
    """Three days of a 2² whose last runs were made on a slower host, and one that failed."""
    rng = np.random.default_rng(5)
    rows = [
        {"a": a, "b": b, "day": f"day {day}", "y": a + rng.normal(0, 0.01)}
        for day in range(1, 7)
        for a in (0, 1)
        for b in (0, 1)
    ]
    table = pd.DataFrame(rows)
    table["host"] = ["slow" if i % 3 == 0 else "fast" for i in range(24)]
    table["y"] += 0.5 * (table["host"] == "slow")
    table["state"] = "done"
    table["reason"] = ""
    table.loc[5, ["y", "state", "reason"]] = [np.nan, "failed", "OOM"]
    return table


def host_check(analysis):
    return next(check for check in analysis.diagnostics.findings if check.check == "host")


def test_a_host_that_raises_an_alarm_raises_it_everywhere(frame, tmp_path):
    table = tmp_path / "t.csv"
    frame.to_csv(table, index=False)
    words = ["analyze", "--table", str(table), "--factors", "a,b", "--block", "day"]
    printed = CliRunner().invoke(app, [*words, "-r", "y", "--goal", "max", "--json"])
    checks = json.loads(printed.stdout)["diagnostics"]["findings"]
    (by_command,) = [check for check in checks if check["check"] == "host"]
    arguments = {"factors": ["a", "b"], "block": "day", "goal": "max"}
    result = doe.analyze(frame, "y", **arguments)
    page = report_of(page_source(frame, (), COLUMNS, print), AnalysisOptions())
    for analysis in (result.analysis, page.analyses["y"]):
        assert not host_check(analysis).ok
        assert host_check(analysis).p == pytest.approx(by_command["p"])


def test_a_failed_row_stays_failed_and_the_block_keeps_its_name(frame):
    subject = read_source(frame, ["y"], COLUMNS, print)
    lost = subject.runs[5]
    assert (lost.state, lost.reason) == ("failed", "OOM")
    assert subject.failures == {"failed: OOM": ["row 6"]}
    assert subject.done == 23
    assert subject.data["y"].runs.block_name == "day"
    assert dict(lost.facts)["day"] == "day 2"
    assert dict(lost.facts)["host"] == "fast"
    assert subject.state is None


def test_the_page_of_a_table_names_its_failures_and_no_command_of_a_study(frame, tmp_path):
    page = doe.report(frame, factors=["a", "b"], block="day", goal="max", out=tmp_path / "page")
    text = page.read_text()
    assert "failed: OOM" in text
    assert "doe run" not in text
    assert "doe logs" not in text


def test_rows_without_state_are_done_where_they_have_a_value(frame):
    plain = frame.drop(columns=["state", "reason"])
    states = [run.state for run in read_source(plain, ["y"], COLUMNS, print).runs]
    assert states.count("done") == 23
    assert states[5] == "failed"


def test_a_centre_row_has_its_own_configuration_behind_all_others():
    rows = [(0, 10), (1, 10), (0, 20), (1, 20), (0.5, 15), (0.5, 15)]
    centred = pd.DataFrame(rows, columns=["a", "b"]).assign(y=[1.0, 2, 3, 4, 5, 5.5])
    subject = read_source(centred, ["y"], TableOptions(("a", "b")), print)
    assert [run.row for run in subject.runs] == [0, 1, 2, 3, 4, 4]
    assert subject.runs[4].levels == {"a": 0.5, "b": 15.0}
    assert subject.cells[4].spreads["y"].mean == 5.25


def test_what_belongs_to_a_table_is_refused_for_a_study(planned):
    directory = planned("noop").directory
    with pytest.raises(DoeError, match="belong to a table; a study defines them"):
        read_source(directory, ["y"], COLUMNS, print)
    with pytest.raises(DoeError, match="responses belong to a table"):
        page_source(directory, ["y"], None, print)
