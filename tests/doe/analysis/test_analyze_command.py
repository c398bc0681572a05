"""`doe analyze` as a person types it."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import numpy as np
import pytest
from factorial_tables import FILTRATION, PLASMA, table
from typer.testing import CliRunner

import doe
from doe.cli import app
from doe.errors import DoeError
from doe.views.tables import screen_tables

PAPER = Path(__file__).parents[3] / "examples" / "paper" / "full_factorial.csv"


@pytest.fixture
def plasma(tmp_path: Path) -> str:
    path = tmp_path / "plasma.csv"
    table("ABC", PLASMA).assign(z=PLASMA[::-1]).to_csv(path, index=False)
    return str(path)


def run(*arguments: str) -> str:
    result = CliRunner().invoke(app, ["analyze", *arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.stdout


def fails(*arguments: str) -> str:
    with pytest.raises(DoeError) as error:
        CliRunner().invoke(app, ["analyze", *arguments], catch_exceptions=False)
    return str(error.value)


def rows_of(text: str, table: str) -> list[dict[str, str]]:
    """The rows of one table of `--csv`."""
    return [row for row in csv.DictReader(io.StringIO(text)) if row["table"] == table]


def test_what_an_option_asks_for_is_shown_without_asking_for_every_table(plasma: str) -> None:
    base = ("--table", plasma, "--factors", "A,B,C", "-r", "y", "--block", "day", "--goal", "max")
    options = ("--equivalence", "--matters", "200", "--robust", "--beats", "A0B0C1", "A1B0C0")
    plain, asked = run(*base), run(*base, *options)
    for title in ("Negligible effects", "Robust answers", "Probability"):
        assert title in asked
        assert title not in plain
    assert "effects lie within ± 200" in asked


def test_json_is_one_object_and_a_list_for_several(plasma: str) -> None:
    base = ("--table", plasma, "--factors", "A,B,C", "--json")
    one = json.loads(run(*base, "--response", "y"))
    assert one["response"] == "y"
    assert one["factors"] == ["A", "B", "C"]
    assert one["block"] is None
    assert one["effects"][0]["effect"] == pytest.approx(-101.625)
    blocked = json.loads(run(*base, "--response", "y", "--block", "day"))
    assert blocked["block"] == "day"
    assert blocked["anova"][0]["source"] == "Block"
    both = json.loads(run(*base, "--response", "y,z"))
    assert [item["response"] for item in both] == ["y", "z"]
    every = json.loads(run(*base, "--response", "all", "--block", "day"))
    assert [item["response"] for item in every] == ["y", "z"]
    assert every[0]["diagnostics"]["p_bh_all"]["C"] < 0.001


def test_saturated_json_has_nulls(tmp_path: Path) -> None:
    path = tmp_path / "rate.csv"
    table("ABCD", FILTRATION).drop(columns="day").to_csv(path, index=False)
    found = json.loads(run("--table", str(path), "--factors", "A,B,C,D", "--json"))
    first = found["effects"][0]
    assert (first["se"], first["ci_low"], first["ci_high"]) == (None, None, None)
    assert 0 < first["p"] < 0.01
    assert found["df_error"] == 0
    assert found["sigma"] is None


def test_terminal_shows_effects_variance_and_advice(plasma: str) -> None:
    base = ("--table", plasma, "--factors", "A,B,C", "--response", "y", "--full")
    shown = run(*base, "--goal", "max")
    assert shown.index("Effects on y") < shown.index("Analysis of variance")
    assert shown.index("C ") < shown.index("AC ")
    assert "***" in shown
    assert "+306.1" in shown
    assert "What to do" in shown
    assert "A0B1C1 has the best observed mean" in shown
    robust = run(
        *(*base, "--permutations", "199"),
    )
    assert "199 permutations" in robust


def test_csv_and_latex_render_the_same_effects(plasma: str) -> None:
    base = ("--table", plasma, "--factors", "A,B,C", "--response", "y")
    lines = rows_of(run(*base, "--csv"), "effects y")
    assert [line["term"] for line in lines] == ["C", "AC", "A", "AB", "B", "ABC", "BC"]
    assert float(lines[0]["effect"]) == 306.125
    latex = run(*base, "--latex", "--order", "1")
    assert "\\toprule" in latex
    assert "Lack of fit" in latex
    dropped = rows_of(run(*base, "--csv", "--drop", "A"), "effects y")
    assert {line["term"] for line in dropped} == {"B", "C", "BC"}


def test_csv_and_json_hold_what_the_terminal_shows(plasma: str) -> None:
    """Every table of the terminal is in the CSV; every part of the analysis is in the JSON."""
    base = ("--table", plasma, "--factors", "A,B,C", "--goal", "max", "--block", "day", "-r", "y")
    options = ("--robust", "--permutations", "99", "--beats", "best", "A0B0C0")
    shown, text = run(*base, *options, "--full"), run(*base, *options, "--csv")
    found = doe.analyze(
        plasma,
        "y",
        factors=("A", "B", "C"),
        goal="max",
        block="day",
        permutations=99,
        beats=(("best", "A0B0C0"),),
    )
    tables = screen_tables(found.analysis)
    assert {"effects y", "anova y", "best y", "beats y", "robust y"} <= {t.name for t in tables}
    for one in tables:
        assert one.title in " ".join(shown.split())
        assert rows_of(text, one.name) or not one.rows
    best = rows_of(text, "best y")
    assert (len(best), best[0]["config"]) == (8, "A0B1C1")
    written = json.loads(run(*base, *options, "--json"))
    parts = written.keys() | written["diagnostics"].keys() | found.analysis.estimates.keys()
    elsewhere = {"half_normal", "estimates"}
    assert set(type(found.analysis).__struct_fields__) - parts == elsewhere


def test_csv_of_several_responses_has_the_tables_of_each(plasma: str) -> None:
    both = run("--table", plasma, "--factors", "A,B,C", "--response", "y,z", "--csv")
    assert {"effects", "effects y", "effects z"} <= {
        row["table"] for row in csv.DictReader(io.StringIO(both))
    }


def test_log_shows_ratios(plasma: str) -> None:
    shown = run("--table", plasma, "--factors", "A,B,C", "-r", "y", "--transform", "log")
    assert "ln y" in shown
    assert "Ratio" in shown


def test_published_table(plasma: str) -> None:
    shown = run("--table", str(PAPER), "--response", "B56", "--ceiling", "112")
    assert "+20.33" in shown
    assert "40 of 64 cells are limits" in shown
    found = json.loads(run("--table", str(PAPER), "--response", "all", "--json"))
    assert len(found) == 9
    assert found[0]["effects"][0]["low"] is None


def test_refusals(plasma: str, tmp_path: Path) -> None:
    base = ("--table", plasma, "--factors", "A,B,C")
    assert "which response?" in fails(*base)
    assert "did you mean" in fails(*base, "--response", "yy", "--factors", "A,B,C,dya")
    assert "cannot be combined" in fails(*base, "-r", "y", "--json", "--csv")
    assert "is not one of none, log, logit, boxcox, auto" in fails(
        *base, "-r", "y", "--transform", "logg"
    )
    assert "'mixed' is not one of pure, residual" in fails(*base, "-r", "y", "--error", "mixed")
    assert "no table" in fails("--table", str(tmp_path / "none.csv"), "--factors", "A")
    assert "applies to --table" in fails("--factors", "A")
    assert "order 9 does not fit 3 factors" in fails(*base, "-r", "y", "--order", "9")
    assert "no factor has that name" in fails(*base, "-r", "y", "--drop", "Q")
    assert "not a pair" in fails(*base, "-r", "y", "--low", "A")


def test_one_constant_response_does_not_stop_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "some.csv"
    table("ABC", PLASMA).assign(flat=3.0, empty="", z=PLASMA[::-1]).to_csv(path, index=False)
    base = ("--table", str(path), "--factors", "A,B,C", "--block", "day", "--json")
    result = CliRunner().invoke(app, ["analyze", *base, "-r", "y,flat,empty,z"])
    assert result.exit_code == 0
    assert [item["response"] for item in json.loads(result.stdout)] == ["y", "z"]
    assert "omitted: response 'flat' has 16 values and no variation" in result.stderr
    assert "omitted: response 'empty' has no value in any run" in result.stderr
    assert "no variation" in fails(*base, "-r", "flat")


def test_stars_of_the_csv_are_stars(plasma: str) -> None:
    text = run("--table", plasma, "--factors", "A,B,C", "--response", "y", "--csv")
    lines = {line["term"]: line["stars"] for line in rows_of(text, "effects y")}
    assert (lines["C"], lines["A"], lines["B"]) == ("***", "**", "")


@pytest.mark.parametrize("alpha", ["1e-300", "1e-12", "0.01", "0.5", "0.99", "0.999999999"])
def test_any_level_with_one_degree_of_freedom(tmp_path: Path, alpha: str) -> None:
    path = tmp_path / "one.csv"
    table("AB", [1, 2, 4, 9, 1.5], [0, 1, 2, 3, 0]).drop(columns="day").to_csv(path, index=False)
    base = ("--table", str(path), "--factors", "A,B", "-r", "y", "--goal", "min")
    base += ("--alpha", alpha, "--json")
    found = json.loads(run(*base))
    assert found["df_error"] == 1
    assert found["diagnostics"]["best"]["cells"][0]["config"] == "A0B0"


@pytest.mark.parametrize("third", [False, True])
@pytest.mark.parametrize("transform", ["none", "log"])
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_bounds_beyond_all_numbers_are_infinite(
    tmp_path: Path, transform: str, third: bool
) -> None:
    path = tmp_path / "one.csv"
    frame = table("AB", [1, 2, 4, 9, 1.5, 7], [0, 1, 2, 3, 0, 1]).drop(columns="day")
    frame.loc[5, "A"] = 2 if third else 1
    frame.iloc[: 6 if third else 5].to_csv(path, index=False)
    base = ("--table", str(path), "--factors", "A,B", "-r", "y", "--goal", "max")
    base += ("--alpha", "1e-12", "--transform", transform)
    assert json.loads(run(*base, "--json"))["df_error"] == 1
    text = run(*base, "--full")
    assert ("∞" in text) == (transform == "log" and third), "means of levels are shown"
    assert "on 1 degree of freedom" in text


@pytest.mark.parametrize(("alpha", "level"), [("0.05", "95"), ("0.1", "90"), ("0.001", "99.9")])
def test_intervals_are_called_by_their_level(plasma: str, alpha: str, level: str) -> None:
    base = ("--table", plasma, "--factors", "A,B,C", "--response", "y", "--brief")
    assert f"({level} % CI " in run(*base, "--alpha", alpha)


def test_a_check_that_cannot_be_made_is_not_called_ok(tmp_path: Path) -> None:
    path = tmp_path / "unordered.csv"
    y = np.random.default_rng(0).normal(size=12)
    table("AB", y).drop(columns="day").to_csv(path, index=False)
    text = run("--table", str(path), "--factors", "A,B", "-r", "y", "--full")
    (drift,) = (line for line in text.splitlines() if line.startswith("drift "))
    (normal,) = (line for line in text.splitlines() if line.startswith("normality "))
    assert (drift.split()[1], normal.split()[1]) == ("–", "ok")


def test_nothing_is_called_lenths_where_his_method_has_nothing_to_go_by(tmp_path: Path) -> None:
    path = tmp_path / "same.csv"
    table("ABC", [1.0, 2.0] * 8).drop(columns="day").to_csv(path, index=False)
    shown = " ".join(run("--table", str(path), "--factors", "A,B,C", "-r", "y", "--brief").split())
    assert "there is no error to test against. Differences are exact for these runs" in shown
    assert "Lenth" not in shown


def test_sentences_name_the_terms_that_a_fraction_cannot_tell_apart(tmp_path: Path) -> None:
    rows = [r for r in range(16) if r.bit_count() % 2]  # D = -ABC
    path = tmp_path / "half.csv"
    frame = table("ABCD", np.random.default_rng(0).normal(size=8) / 100, rows)
    frame["y"] += 10.0 * (frame["C"] == frame["D"])  # CD is +10
    frame.drop(columns="day").to_csv(path, index=False)
    shown = " ".join(run("--table", str(path), "--factors", "A,B,C,D", "--brief").split())
    assert "(AB = −CD, Holm-adjusted p" in shown
    assert "I = −ABCD" in shown


def test_effects_that_cannot_be_tested_are_neither_better_nor_worse(tmp_path: Path) -> None:
    path = tmp_path / "flat.csv"
    table("ABC", np.repeat([3.0, 8.0], 8)).to_csv(path, index=False)
    shown = run("--table", str(path), "--factors", "A,B,C", "--block", "day", "-r", "y", "--brief")
    assert "for the better" not in shown
    assert "None of 7 terms can be tested: there is no error to test against." in shown


def test_no_option_is_advised_that_would_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "many.csv"
    y = np.random.default_rng(0).exponential(size=4800)
    table("ABC", y).drop(columns="day").to_csv(path, index=False)
    shown = run("--table", str(path), "--factors", "A,B,C", "-r", "y", "--brief", "--robust")
    assert "Residuals are not normal" in shown
    assert "The robust methods are left out" in shown
    assert "--response y --robust" not in shown
