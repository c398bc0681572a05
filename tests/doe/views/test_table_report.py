"""The page of any CSV."""

import re
import shlex
from html import unescape
from pathlib import Path

import pytest
from typer.testing import CliRunner

from doe.cli import app
from doe.errors import DoeError
from tests.command_line import doe

EXPORTS = Path(__file__).parents[1] / "results" / "exports"


def test_a_table_has_a_page(tmp_path):
    table = EXPORTS / "wandb.csv"
    words = ["--factors", "lr,augment", "--goal", "max", "--block", "seed"]
    words += ["-r", "val/accuracy,val/loss"]
    done = doe("report", "--table", table, *words, cwd=tmp_path)
    assert "Page: reports/wandb/index.html" in done.stdout
    assert "augment" in done.stdout
    page = (tmp_path / "reports/wandb/index.html").read_text()
    assert "doe run" not in page
    assert (tmp_path / "reports/wandb/tables").is_dir()


@pytest.mark.parametrize(
    "goal", [(), ("--goal", "max", "--scale", "val/accuracy=logit", "--of", "val/accuracy=5000")]
)
def test_the_command_on_the_page_writes_the_same_page(tmp_path, goal):
    (tmp_path / "t.csv").write_text((EXPORTS / "wandb.csv").read_text())
    words = ["--factors", "lr,augment", "--block", "seed", *goal]
    words += ["-r", "val/accuracy" if goal else "val/loss"]
    doe("report", "--table", "t.csv", *words, "--out", "first", cwd=tmp_path)
    first = (tmp_path / "first/index.html").read_text()
    (command,) = re.findall(r"doe report (--table t\.csv .*)</code>", first)
    doe("report", *shlex.split(unescape(command)), "--out", "again", cwd=tmp_path)
    again = (tmp_path / "again/index.html").read_text()
    assert re.sub("Written.*", "", again) == re.sub("Written.*", "", first)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--factors", "lr"), "--factors applies to --table"),
        (("--table", "absent.csv", "--factors", "lr"), "there is no table absent.csv"),
        (("--table", "t.csv", "--study", "x"), "cannot be combined"),
        (
            ("--table", "t.csv", "--factors", "a,b", "--serve", "0"),
            "--serve updates the page of a running study",
        ),
        (("--table", "t.csv"), "which columns are the factors?"),
        (("--table", "t.csv", "--factors", "a,z"), "factor 'z' is not a column"),
        (("--table", "t.csv", "--factors", "a,b"), "holds limits such as >50"),
        (("--table", "t.csv", "--factors", "a,b", "--low", "a"), "--low 'a' is not a pair"),
        (("--table", "t.csv", "--factors", "a,b", "--goal", "up"), "neither min nor max"),
    ],
)
def test_each_mistake_is_one_sentence(tmp_path, monkeypatch, words, said):
    (tmp_path / "t.csv").write_text("a,b,y\n0,0,1\n1,0,2\n0,1,3\n1,1,>5\n")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DoeError, match=re.escape(said)):
        CliRunner().invoke(app, ["report", *words], catch_exceptions=False)
