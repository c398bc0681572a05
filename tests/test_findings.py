"""docs/findings.md says what the committed studies say."""

import base64
import csv
import gzip
import json
import re
from pathlib import Path

import findings
import pytest

from doe.analysis.options import AnalysisOptions
from doe.results.report import report_of
from doe.results.sources import study_page
from doe.results.status import overview
from doe.store.files import StudyDir
from doe.store.plan import load_plan
from doe.store.scan import scan
from doe.views.files import write_report

DOCS = Path(__file__).parent.parent / "docs"
REPORT = Path(__file__).parent.parent / "reports" / "pit-small"


def expect_table(table: str, document: Path) -> None:
    """A table with a row at least, which stands there once."""
    assert table.count("\n") >= 2
    assert document.read_text().count(table) == 1


STUDIES = {findings.STUDY: 256, findings.PER_FRAME: 8, findings.READINGS: 32, findings.FULL: 2}


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.parent.name + "-" + path.name)
def test_the_study_is_complete(study):
    views = scan(StudyDir(study), load_plan(study).design.runs)
    assert len(views) == STUDIES[study]
    assert {seen.state for seen in views} == {"done"}
    assert not any(seen.damaged for seen in views)


@pytest.mark.parametrize("study", STUDIES, ids=lambda path: path.parent.name + "-" + path.name)
def test_its_runs_come_from_one_state_of_the_code(study):
    views = scan(StudyDir(study), load_plan(study).design.runs)
    origins = {(s.result.provenance["commit"], s.result.provenance["dirty"]) for s in views}
    assert len(origins) == 1
    assert not next(iter(origins))[1]


@pytest.mark.parametrize("name", findings.TABLES)
def test_a_table_of_the_findings(name):
    expect_table(findings.TABLES[name](), DOCS / "findings.md")


def expect_once(phrases: list[str], document: Path) -> None:
    """Not as a part of a longer number: "2.0 px" must not be found in "12.0 px"."""
    text = " ".join(document.read_text().split())
    for phrase in phrases:
        assert len(re.findall(rf"(?<![\d.]){re.escape(phrase)}(?!\d)", text)) == 1, phrase


def test_the_phrases_of_the_findings():
    expect_once(findings.phrases(), DOCS / "findings.md")


def test_the_readings():
    document = findings.READINGS.parent / "README.md"
    for response in findings.GROUPS:
        expect_table(findings.readings_table(response), document)
    expect_once(findings.readings_phrases(), document)


def test_the_paper_beside_the_study():
    expect_table(findings.rows_table(), DOCS / "paper.md")
    expect_once(findings.paper_phrases(), DOCS / "paper.md")


def rounded(value: object) -> object:
    """Without the last digits, in which processors may differ."""
    if isinstance(value, dict):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    if isinstance(value, float):
        return float(f"{round(value, 9):.6g}")
    return value


def numbers(path: Path) -> object:
    """The rows of a CSV table, numbers as such."""
    return rounded([[_number(cell) for cell in row] for row in csv.reader(path.open())])


def _number(cell: str) -> object:
    try:
        return float(cell)
    except ValueError:
        return cell


def data_of(page: Path) -> dict[str, object]:
    """What a page's tables hold, without its look: texts, charts and captions may change."""
    text = page.read_text(encoding="utf-8")
    packed = re.search(r'id="data">(.*?)</script>', text, re.S)[1]
    data = json.loads(gzip.decompress(base64.b64decode(packed)))
    tables = [t for response in data["byResponse"].values() for t in response["tables"]]
    tables += [t for section in data["study"]["tables"].values() for t in section]
    return {t["name"]: rounded([row["raw"] for row in t["rows"]]) for t in tables}


def test_the_report_is_that_of_the_runs(tmp_path):
    written = write_report(
        report_of(study_page(overview(findings.STUDY)), AnalysisOptions(robust=True)), tmp_path
    )
    committed = sorted(path.name for path in (REPORT / "tables").glob("*.csv"))
    assert sorted(path.name for path in (tmp_path / "tables").glob("*.csv")) == committed
    for name in committed:
        assert numbers(tmp_path / "tables" / name) == numbers(REPORT / "tables" / name), name
    assert data_of(written.page) == data_of(REPORT / "index.html")
