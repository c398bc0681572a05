"""Missing runs, fractions, and censored tables."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from factorial_tables import FILTRATION, PLASMA, by_term, study, table

from doe.analysis.case import AnalysisOptions
from doe.analysis.censored import analyze_censored, effect_bounds
from doe.analysis.tables import observe, table_runs
from doe.errors import DoeError
from doe.results.table_file import read_table
from doe.terms import term_name, terms_up_to
from doe.views.tables.aliases import chains_table

PAPER = Path(__file__).parents[3] / "examples" / "paper"


def test_bounds_hold_every_filling_of_the_gaps() -> None:
    frame = table("ABC", PLASMA)
    frame.loc[[3, 12], "y"] = np.nan
    found = study(frame, "ABC")
    assert found.missing is not None
    assert (found.missing.planned, found.missing.observed, found.n) == (16, 14, 14)
    assert found.missing.runs == ("row 4", "row 13")
    bounds = {b.term: b for b in found.missing.bounds}
    values = [frame["y"].min(), frame["y"].max()]
    for fill in product(values, values):
        whole = frame.copy()
        whole.loc[[3, 12], "y"] = fill
        for term, effect in by_term(study(whole, "ABC")).items():
            assert bounds[term].low - 1e-9 <= effect.effect <= bounds[term].high + 1e-9
    touched = [by_term(study(frame.fillna({"y": v}), "ABC"))["A"].effect for v in values]
    assert bounds["A"].low <= min(touched)
    assert bounds["A"].effect == by_term(found)["A"].effect


def test_an_empty_cell_names_the_term_that_goes_with_it() -> None:
    frame = table("ABC", PLASMA)
    frame.loc[[5, 13], "y"] = np.nan
    found = study(frame, "ABC")
    assert found.inestimable == ("ABC",)
    assert found.missing is not None
    assert found.missing.empty_cells == ("A1B0C1",)
    assert any("Not estimable" in w and "ABC" in w for w in found.warnings)
    assert "ABC" not in by_term(found)


def test_divergence_is_a_response_of_its_own() -> None:
    rng = np.random.default_rng(0)
    frame = table("ABC", rng.normal(size=64))
    gone = (frame["B"] == 1) & (rng.random(64) < 0.6)
    frame["state"] = np.where(gone, "diverged", "done")
    frame["reason"] = np.where(gone, "loss is NaN", "")
    frame.loc[gone, "y"] = np.nan
    found = study(frame, "ABC").missing
    assert found is not None
    rates = {row.factor: row for row in found.rates}
    assert (rates["B"].low_lost, rates["B"].high_lost) == (0, int(gone.sum()))
    assert rates["B"].p_firth < 1e-3
    assert rates["B"].p_exact < 1e-3
    assert rates["B"].log_odds > 2
    assert rates["A"].p_holm > 0.05
    assert "B at high" in found.sentence
    assert found.states[0] == "diverged: loss is NaN"


def test_six_lost_runs_at_one_level_may_be_chance_among_four_factors() -> None:
    frame = table("ABCD", np.random.default_rng(0).normal(size=48))
    gone = frame.index[frame["A"] == 1][[0, 5, 10, 15, 18, 21]]
    frame.loc[gone, "y"] = np.nan
    found = study(frame, "ABCD").missing
    assert found is not None
    row = found.rates[0]
    assert row.p_exact == pytest.approx(0.021936, abs=1e-6)  # 2 C(24, 6) / C(48, 6)
    assert 4 * row.p_firth < 0.05
    assert row.p_holm > 0.05
    assert "No factor is shown to lose runs" in found.sentence


def test_runs_that_wait_are_no_divergence() -> None:
    frame = table("AB", [1.0, 2.0, 3.0, 4.5] * 3)
    frame["state"] = ["done"] * 9 + ["pending"] * 3
    frame.loc[9:, "y"] = np.nan
    found = study(frame, "AB").missing
    assert found is not None
    assert found.rates == ()


def test_a_regular_fraction_names_its_aliases() -> None:
    rows = [r for r in range(16) if bin(r).count("1") % 2 == 0]  # I = ABCD
    frame = table("ABCD", [FILTRATION[r] for r in rows], rows)
    found = study(frame, "ABCD", goal="max")
    assert found.aliases[0] == "I = ABCD"
    assert "A = BCD" in found.aliases
    assert [e.term for e in found.effects] == ["A", "B", "AB", "C", "AC", "BC", "D"]
    # Montgomery's half fraction of the filtration experiment
    assert {e.term: e.effect for e in found.effects} == pytest.approx(
        {"A": 19, "B": 1.5, "C": 14, "D": 16.5, "AB": -1, "AC": -18.5, "BC": 19}
    )
    assert any("alias chain" in w for w in found.warnings)


def test_bounds_of_contrasts_take_each_value_at_the_right_end() -> None:
    rng = np.random.default_rng(6)
    maps, low = rng.normal(size=(3, 5)), rng.normal(size=5)
    high = low + rng.random(5)
    found = effect_bounds(maps, low, high)
    corners = np.array([maps @ np.array(c) for c in product(*zip(low, high, strict=True))])
    assert found[0] == pytest.approx(corners.min(axis=0))
    assert found[1] == pytest.approx(corners.max(axis=0))
    high[0] = np.inf
    maps[:, 0] = [1.0, -1.0, 0.0]
    low_end, high_end = effect_bounds(maps, low, high)
    assert high_end[0] == np.inf
    assert low_end[1] == -np.inf
    assert np.isfinite([low_end[0], high_end[1], low_end[2], high_end[2]]).all()


@pytest.mark.parametrize("name", ["enc", "dec"])
def test_every_published_effect_lies_in_its_interval(name: str) -> None:
    frame = read_table(PAPER / "full_factorial.csv", print)
    published = pd.read_csv(PAPER / f"effects-{name}.csv", index_col="term")
    runs = table_runs(frame, ())
    assert runs.keys == tuple("ABCDEF")
    rounding = 0.005
    for response in published.columns.drop("Avg"):
        observed = observe(frame, runs, response, ceiling=112)
        bounds = {e.term: e for e in analyze_censored(observed, AnalysisOptions(), 112).effects}
        for term, value in published[response].items():
            bound = bounds[str(term)]
            assert bound.low - rounding <= value <= bound.high + rounding, (response, term)


def test_the_noise_factor_is_sure_to_harm_in_the_published_table() -> None:
    frame = read_table(PAPER / "full_factorial.csv", print)
    observed = observe(frame, table_runs(frame, ()), "B56", ceiling=112)
    bounds = {e.term: e for e in analyze_censored(observed, AnalysisOptions(), 112).effects}
    assert bounds["F"].low == pytest.approx(20.33, abs=0.01)
    assert bounds["F"].sign == "+"
    open_ended = analyze_censored(
        observe(frame, table_runs(frame, ()), "B56"), AnalysisOptions(drop=("F",)), None
    )
    assert all("F" not in e.term for e in open_ended.effects)
    assert any("a ceiling" in warning for warning in open_ended.warnings)


def test_terms_are_those_of_the_term_algebra() -> None:
    names = [term_name(mask, "ABC") for mask in terms_up_to(3)]
    assert [e.term for e in study(table("ABC", PLASMA), "ABC").effects] == names


def test_aliases_keep_their_signs() -> None:
    rows = [r for r in range(16) if r.bit_count() % 2]  # D = -ABC
    frame = table("ABCD", np.zeros(8), rows)
    frame["y"] = 10.0 * (frame["C"] == frame["D"]) + np.random.default_rng(0).normal(size=8) / 100
    found = study(frame, "ABCD")
    assert found.aliases[0] == "I = −ABCD"
    assert "AB = −CD" in found.aliases
    assert by_term(found)["AB"].effect == pytest.approx(-10, abs=0.1)  # CD is +10
    assert any("I = −ABCD" in w for w in found.warnings)
    shown = chains_table(found)
    assert shown is not None
    assert ("AB", "= −CD") in [row.values for row in shown.rows]


def test_no_word_of_the_defining_relation_is_dropped_in_silence() -> None:
    cells = [r | (r & 1 ^ r >> 1 & 1) << 3 | (r & 1 ^ r >> 2 & 1) << 4 for r in range(8)]
    cells = [c | ((c >> 1 ^ c >> 2) & 1) << 5 for c in cells]  # 2^(6-3): seven words
    y = np.random.default_rng(1).normal(size=8)
    warning = next(w for w in study(table("ABCDEF", y, cells), "ABCDEF").warnings if "I = " in w)
    assert warning.count(" = ") == 7
    many = study(table("ABCDEF", y[:2], [0, 63]), "ABCDEF").warnings  # 31 words
    assert any("and 15 more words" in w for w in many)


def test_a_transformation_moves_the_ends_of_limits() -> None:
    frame = table("AB", [1, 2, 3, 4]).assign(y=["1", "2", ">10", ">10"])
    observed = observe(frame, table_runs(frame, ["A", "B"]), "y", ceiling=20)
    found = analyze_censored(observed, AnalysisOptions(transform="log"), 20)
    bounds = {e.term: e for e in found.effects}
    low = (2 * np.log(10) - np.log(1.5) - np.log(2.5)) / 2
    high = (2 * np.log(20) - np.log(0.5) - np.log(1.5)) / 2
    assert (bounds["B"].low, bounds["B"].high) == pytest.approx((low, high))
    assert found.label == "ln y"
    with pytest.raises(DoeError, match="needs values, and 'y' has limits"):
        analyze_censored(observed, AnalysisOptions(transform="auto"), 20)
    negative = observe(frame.assign(y=["-1", "2", ">10", "4"]), observed.runs, "y")
    with pytest.raises(DoeError, match="above 0"):
        analyze_censored(negative, AnalysisOptions(transform="log"), None)
    pairs = (("best", "baseline"),)
    for asked in (
        {"terms": ("A",)},
        {"random_blocks": True},
        {"error": "residual"},
        {"beats": pairs},
    ):
        words = next(iter(asked)).replace("_", " ")
        with pytest.raises(DoeError, match=f"^{words}: {observed.response!r} has limits"):
            analyze_censored(observed, AnalysisOptions(**asked), 20)
    robust = analyze_censored(observed, AnalysisOptions(robust=True), 20)
    assert any("robust methods are left out" in w for w in robust.warnings)


def test_a_block_without_values_is_as_good_as_none() -> None:
    frame = table("AB", [0.0] * 12)
    frame["y"] = [">5", "1", "2", "3", "", "", "", "", "2", "", "2", "3.1"]
    effects = []
    for rows in (frame, frame[frame["day"] != 2].reset_index(drop=True)):
        observed = observe(rows, table_runs(rows, ["A", "B"], block="day"), "y", ceiling=9.0)
        effects.append(analyze_censored(observed, AnalysisOptions(), 9.0).effects)
    assert effects[0] == effects[1]
