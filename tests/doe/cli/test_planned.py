"""Commands on a planned study: it is read once, and what is asked of it is not passed over."""

import json

import pytest
from typer.testing import CliRunner

from doe.cli import app
from doe.errors import DoeError
from doe.store import plan
from doe.store.files import StudyDir
from doe.store.verdicts import Result, encode_result


@pytest.fixture
def finished(planned):
    plan = planned(factors="ABC", replicates=2)
    for run in plan.design.runs:
        run_dir = StudyDir(plan.directory).run(run.run_id)
        run_dir.path.mkdir()
        metrics = {"y": run.row + 0.1 * run.seed * (-1) ** run.row}
        run_dir.result.write_bytes(encode_result(Result("done", metrics, None, {})))
        run_dir.log.write_text("said\n")
    return plan


def call(plan, *words):
    done = CliRunner().invoke(app, [*words, "--study", str(plan.directory)], catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return done.stdout


@pytest.mark.parametrize(
    "words",
    [
        *(("status",), ("status", "--json"), ("logs", "000-r1"), ("export",), ("alias",)),
        *(("analyze", "--response", "y"), ("analyze", "--response", "all", "--json")),
        *(("power",), ("power", "--response", "y"), ("report", "--out", "page")),
    ],
    ids=" ".join,
)
def test_the_study_is_read_once(finished, tmp_path, monkeypatch, words):
    monkeypatch.chdir(tmp_path)
    check, sources = plan.planned_study, []

    def counted(data, source):
        sources.append(source)
        return check(data, source)

    monkeypatch.setattr(plan, "planned_study", counted)
    call(finished, *words)
    assert len(sources) == 1


def test_another_fraction_of_a_planned_study(finished):
    whole, half = (
        json.loads(call(finished, "power", "--json", "--response", "y", *words))
        for words in ((), ("--fraction", "1/2"))
    )
    assert [design["runs"] for design in whole["designs"][:2]] == [8, 16]
    assert [design["runs"] for design in half["designs"][:2]] == [4, 8]
    assert half["sigma"] == whole["sigma"]
    alias = json.loads(call(finished, "alias", "--json", "--fraction", "1/2"))
    assert alias["fraction"] == "C=AB"


def test_what_is_no_response_is_refused(finished):
    with pytest.raises(DoeError, match="response 'seed' is not among the study's"):
        call(finished, "power", "--response", "seed")


def test_an_effect_beside_several_looks_is_refused(finished):
    with pytest.raises(DoeError, match="with sequential give effects"):
        call(finished, "power", "--sequential", "--matters", "1", "--effect", "2")
