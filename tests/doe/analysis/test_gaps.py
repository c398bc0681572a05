"""Missing runs, fractions, and censored tables."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from factorial_tables import FILTRATION, PLASMA, by_term, dataset, study, table
from level_tables import factor, full, seen, words
from scipy import stats

from doe.analysis.analyze import analyze, fit_response
from doe.analysis.censored import analyze_censored, effect_bounds
from doe.analysis.dataset import Dataset, Runs
from doe.analysis.missing import Missing, pair_losses, worst_ranks
from doe.analysis.options import AnalysisOptions
from doe.analysis.tables import TableOptions, table_dataset, table_runs
from doe.errors import DoeError
from doe.results.table_file import read_table
from doe.terms import term_name, terms_up_to
from doe.views.tables.effects import chains_table

PAPER = Path(__file__).parents[3] / "examples" / "paper"


def test_bounds_hold_every_filling_of_the_gaps() -> None:
    frame = table("ABC", PLASMA)
    frame.loc[[3, 12], "y"] = np.nan
    found = study(frame, "ABC")
    assert found.missing is not None
    assert (found.missing.planned, found.missing.observed, found.n) == (16, 14, 14)
    assert found.missing.runs == ("row 4", "row 13")
    bounds = {b.term: b for b in found.missing.in_range}
    values = [frame["y"].min(), frame["y"].max()]
    for fill in product(values, values):
        whole = frame.copy()
        whole.loc[[3, 12], "y"] = fill
        for term, effect in by_term(study(whole, "ABC")).items():
            assert bounds[term].low - 1e-9 <= effect.effect <= bounds[term].high + 1e-9
    touched = [by_term(study(frame.fillna({"y": v}), "ABC"))["A"].effect for v in values]
    assert bounds["A"].low <= min(touched)
    assert bounds["A"].effect == by_term(found)["A"].effect
    assert found.missing.beyond == found.missing.worst_rank == ()  # nothing says that they diverged


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
    assert [level.lost for level in rates["B"].levels] == [0, int(gone.sum())]
    assert rates["B"].p_firth < 1e-3
    assert rates["B"].p_exact < 1e-3
    assert rates["B"].log_odds > 2
    assert rates["A"].p_holm > 0.05
    expected = f"B = 1 diverges in {gone.sum()} of 32 runs, its other level 0 of 32: the remaining"
    assert found.sentence.startswith(expected)
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
    assert "No level and no pair of levels is shown to lose more runs" in found.sentence
    assert found.finding == ""


def test_a_pair_of_levels_that_loses_runs_is_found() -> None:
    """5 of 6 runs lost at A = 1, B = 1 and none elsewhere."""
    frame = table("AB", np.random.default_rng(1).normal(size=24))
    gone = frame.index[(frame["A"] == 1) & (frame["B"] == 1)][:5]
    frame.loc[gone, "y"] = np.nan
    found = study(frame, "AB").missing
    assert found is not None
    pair = found.pairs[0]
    assert (pair.factors, pair.levels, pair.lost, pair.n) == (("A", "B"), ("1", "1"), 5, 6)
    # fisher.test(cbind(c(5, 0), c(1, 18))) of R
    assert pair.p == pytest.approx(0.0001411631846, rel=1e-8)
    assert pair.p_holm == pytest.approx(4 * pair.p)
    assert pair.together
    assert found.finding.startswith("A = 1 with B = 1 loses 5 of 6 runs: the remaining runs")


def test_a_pair_that_loses_more_than_all_other_runs_is_named() -> None:
    """4 of 8 runs lost at A = 0, C = 1; neither level alone is shown to lose runs."""
    frame = table("ABC", np.random.default_rng(1).normal(size=32))
    gone = frame.index[(frame["A"] == 0) & (frame["C"] == 1)][[0, 3, 4, 7]]
    frame.loc[gone, "y"] = np.nan
    found = study(frame, "ABC").missing
    assert found is not None
    assert found.pairs[0].p_holm < 0.05 < min(row.p_holm for row in found.rates)
    assert not found.pairs[0].together
    assert found.finding.startswith("A = 0 with C = 1 loses 4 of 8 runs")


def test_a_single_level_that_loses_runs_is_no_pair() -> None:
    runs = Runs(words((2, 2)), full((2, 2), 8))
    lost = (runs.index[:, 0] == 1) & (np.arange(32) % 8 != 1)
    pairs = pair_losses(runs, lost.astype(float), 0.05)
    assert {pair.levels for pair in pairs} == {("a2", "b1"), ("a2", "b2")}
    assert not any(pair.together for pair in pairs)


def lost_optimizer(goal: str | None = "min", state: str = "diverged") -> Missing:
    """A 3 x 2 study of four runs each in which 8 of 8 runs of the third level are lost."""
    runs = Runs(words((3, 2)), full((3, 2), 4))
    y = np.random.default_rng(3).normal(size=24)
    gone = runs.index[:, 0] == 2
    states = tuple(f"{state}: loss" if lost else "done" for lost in gone)
    runs = Runs(runs.factors, runs.index, states=states)
    y[gone] = np.nan
    found = analyze(Dataset(runs, "y", y, goal=goal)).missing
    assert found is not None
    return found


def test_levels_that_lose_equally_many_runs_have_no_odds_of_rounding() -> None:
    y = np.arange(24.0)
    y[[0, 3, 5, 6]] = np.nan  # a half of 2³: every level loses two of twelve
    found = study(table("ABC", y), "ABC").missing
    assert found is not None
    assert [row.log_odds for row in found.rates] == [0.0, 0.0, 0.0]


def test_a_factor_of_three_levels_that_loses_runs_leads_the_report() -> None:
    found = lost_optimizer()
    a, b = found.rates
    assert [(level.level, level.lost, level.n) for level in a.levels] == [
        ("a1", 0, 8),
        ("a2", 0, 8),
        ("a3", 8, 8),
    ]
    assert a.p_exact == pytest.approx(4.079018751e-06, rel=1e-8)  # fisher.test of R
    assert a.log_odds is None
    assert (a.p_firth or 1.0) < 1e-3 < b.p_holm
    assert found.sentence.startswith("A = a3 diverges in 8 of 8 runs, its other levels 0 of 16:")


def test_diverged_values_lie_beyond_the_worst_that_was_seen() -> None:
    frame = table("AB", np.random.default_rng(4).normal(size=24))
    gone = (frame["A"] == 1) & (frame["day"] < 4)
    frame["state"] = np.where(gone, "diverged", "done")
    frame.loc[gone, "y"] = np.nan
    for goal, sign in (("min", "+"), ("max", "-")):
        found = study(frame, "AB", goal=goal).missing
        assert found is not None
        inside = {bound.term: bound for bound in found.in_range}
        beyond = {bound.term: bound for bound in found.beyond}
        assert inside["A"].sign == "?"
        assert beyond["A"].sign == sign  # whatever they are, they are worse
        assert np.isinf([beyond["A"].low, beyond["A"].high]).sum() == 1
        assert np.isinf([beyond["B"].low, beyond["B"].high]).all()
        assert (found.range_low, found.range_high) == (frame["y"].min(), frame["y"].max())
    crashed = study(frame.assign(state=np.where(gone, "failed", "done")), "AB").missing
    assert crashed is not None
    assert crashed.beyond == ()


def test_worst_ranks_are_those_of_the_ranked_runs() -> None:
    rng = np.random.default_rng(5)
    runs = Runs(words((2,)), full((2,), 8))
    y = rng.normal(size=16)
    gone = np.flatnonzero(runs.index[:, 0] == 1)[:3]
    diverged = np.isin(np.arange(16), gone)
    y[gone] = np.nan
    (test,) = worst_ranks(fit_response(Dataset(runs, "y", y, goal="min")), diverged)
    filled = np.where(diverged, 100.0, y)
    ranks = stats.rankdata(filled)
    f, p = stats.f_oneway(ranks[runs.index[:, 0] == 0], ranks[runs.index[:, 0] == 1])
    assert (test.f, test.p) == pytest.approx((f, p))
    assert lost_optimizer(goal=None).worst_rank == ()


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
    assert found.aliases[0] == ("I", "ABCD")
    assert ("A", "BCD") in found.aliases
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
    options = TableOptions(ceiling=112)
    runs = table_runs(frame, options)
    assert runs.keys == tuple("ABCDEF")
    rounding = 0.005
    for response in published.columns.drop("Avg"):
        observed = table_dataset(frame, runs, response, options)
        bounds = {e.term: e for e in analyze_censored(observed, AnalysisOptions(), 112).effects}
        for term, value in published[response].items():
            bound = bounds[str(term)]
            assert bound.low - rounding <= value <= bound.high + rounding, (response, term)


def test_the_noise_factor_is_sure_to_harm_in_the_published_table() -> None:
    frame = read_table(PAPER / "full_factorial.csv", print)
    options = TableOptions(ceiling=112)
    observed = table_dataset(frame, table_runs(frame, options), "B56", options)
    bounds = {e.term: e for e in analyze_censored(observed, AnalysisOptions(), 112).effects}
    assert bounds["F"].low == pytest.approx(20.33, abs=0.01)
    assert bounds["F"].sign == "+"
    observed = table_dataset(frame, table_runs(frame, TableOptions()), "B56")
    open_ended = analyze_censored(observed, AnalysisOptions(drop=("F",)), None)
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
    assert found.aliases[0] == ("I", "−ABCD")
    assert ("AB", "−CD") in found.aliases
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
    observed = dataset(frame, TableOptions(("A", "B"), ceiling=20))
    found = analyze_censored(observed, AnalysisOptions(transform="log"), 20)
    bounds = {e.term: e for e in found.effects}
    low = (2 * np.log(10) - np.log(1.5) - np.log(2.5)) / 2
    high = (2 * np.log(20) - np.log(0.5) - np.log(1.5)) / 2
    assert (bounds["B"].low, bounds["B"].high) == pytest.approx((low, high))
    assert found.label == "ln y"
    with pytest.raises(DoeError, match="needs values, and 'y' has limits"):
        analyze_censored(observed, AnalysisOptions(transform="auto"), 20)
    negative = dataset(frame.assign(y=["-1", "2", ">10", "4"]), TableOptions(("A", "B")))
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
        observed = dataset(rows, TableOptions(("A", "B"), block="day", ceiling=9.0))
        effects.append(analyze_censored(observed, AnalysisOptions(), 9.0).effects)
    assert effects[0] == effects[1]


def test_limits_of_three_levels_are_refused_with_a_sentence() -> None:
    frame = pd.DataFrame({"opt": ["a", "b", "c"] * 2, "y": [1, 2, ">5", 2, 3, 4]})
    observed = dataset(frame, TableOptions(("opt",)))
    with pytest.raises(DoeError, match="between two levels; opt has more: take two of them"):
        analyze_censored(observed, AnalysisOptions(), None)


def test_a_lost_value_lies_between_the_ends_that_were_observed() -> None:
    """Whatever the range is: 17.3 is no power of two, by which values are scaled."""
    index = full((2, 2), 2)
    y = np.array([0.0, 17.3, 4.0, 9.0, 2.0, 15.0, 6.0, np.nan])
    data = seen([factor(key, [0, 1]) for key in "AB"], index, y)
    missing = analyze(data).missing
    assert missing is not None
    bound = next(bound for bound in missing.in_range if bound.term == "A")
    filled = [replace(data, y=np.nan_to_num(y, nan=end)) for end in (0.0, 17.3)]
    ends = [analyze(whole).effects[0].effect for whole in filled]
    assert (bound.low, bound.high) == pytest.approx(tuple(ends))
