"""What is said in one place: names of files and columns, a run's origin, which verdict counts."""

import re
from pathlib import Path

import pytest

import doe
from doe.analysis.tables import BOOKKEEPING
from doe.store.files import RunDir, StudyDir
from doe.store.scan import scan
from doe.store.verdicts import Origin, Result, commit, has_final_verdict
from doe.study.values import RUN_COLUMNS, STATE_COLUMNS

ROOT = Path(doe.__file__).parent
ONE_PLACE = {
    r'"(?:request|result|lease)\.json"|"log\.txt"|"progress\.jsonl"': "study/command.py",
    r'"epochs\.csv"|"design\.csv"|"attempt-': "store/files.py",
    r"\.result\.provenance": "store/scan.py",
    r"!= replace\b": "store/verdicts.py",
    r'"ln \{\}"': "analysis/scales/log.py",
    r'\(effect > 0\) == \(goal == "max"\)': "views/words.py",
}
"""A pattern -> the only file that holds it."""


@pytest.mark.parametrize("pattern", ONE_PLACE)
def test_it_is_written_in_one_file(pattern):
    modules = ((path, path.read_text(encoding="utf-8")) for path in ROOT.rglob("*.py"))
    files = {str(path.relative_to(ROOT)) for path, text in modules if re.search(pattern, text)}
    assert files == {ONE_PLACE[pattern]}


def test_columns_that_are_no_factors_are_those_of_the_responses_table():
    """The analysis knows no study, so that it names them itself."""
    assert {*RUN_COLUMNS, *STATE_COLUMNS, "run"} == BOOKKEEPING


def test_every_fact_of_a_runs_origin_has_its_kind(planned, go):
    plan = planned("noop", factors="A")
    go(plan)
    for status in scan(StudyDir(plan.directory), plan.design.runs):
        assert {"commit", "host", "slot", "seconds", "request"} <= set(status.provenance)
        assert set(status.provenance) <= set(Origin.__struct_fields__)


def test_a_run_is_settled_by_a_whole_verdict_that_is_not_to_be_replaced(planned):
    plan = planned(factors="A")
    files, first = StudyDir(plan.directory), plan.design.runs[0]
    run = RunDir(plan.directory / first.run_id)
    run.path.mkdir()

    def answers(replace):
        (status,) = scan(files, [first])
        assert has_final_verdict(run, replace) == status.is_final(replace)
        return has_final_verdict(run, replace)

    assert not answers("")
    commit(run, Result("failed", {}), "n")
    (status,) = scan(files, [first])
    assert answers("")
    assert answers("0" * 64)
    assert not answers(status.checksum)
    run.result.write_bytes(run.result.read_bytes()[:-9])
    assert not answers("")
