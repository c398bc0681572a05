"""Each further analysis on data where the right answer is known."""

from __future__ import annotations

import numpy as np
import pytest
from factorial_tables import FILTRATION, PLASMA, by_term, study, table, two_level_runs
from level_tables import full, words
from scipy import stats

from doe.analysis.analyze import analyze
from doe.analysis.best import critical_value, pair_reach, with_the_best
from doe.analysis.dataset import Dataset, Runs
from doe.analysis.effects_by_response import effects_by_response
from doe.analysis.estimators.box_meyer import box_meyer
from doe.analysis.estimators.dispersion import Dispersion
from doe.analysis.estimators.robust import Robust
from doe.analysis.options import AnalysisOptions
from doe.analysis.transform import from_power, to_power
from doe.errors import DoeError
from doe.views.json import to_plain

RUNS = np.array([6, 12, 23, 14, 28, 24, 15, 29, 25, 18, 3, 1]) - 1
REACTED = np.array([56, 93, 67, 60, 77, 65, 95, 49, 44, 63, 63, 61], float)


def test_box_meyer_agrees_with_bsmd() -> None:
    # BsProb(X, y, blk=0, mFac=5, mInt=3, p=0.25, g=1.6, ng=1, nMod=10) on BM93.e1.data
    runs = two_level_runs(RUNS, 5)
    found = box_meyer(REACTED, runs, gamma=1.6)
    assert found is not None
    assert [f.probability for f in found.factors] == pytest.approx(
        [0.01096336997131, 0.96362620753872, 0.00890948675893, 0.89923623011182, 0.57746794463052],
        rel=1e-8,
    )
    assert found.models[0].factors == ("B", "D", "E")
    assert found.models[0].probability == pytest.approx(0.56331580780217, rel=1e-8)
    # the same with mInt=2, g=2
    second = box_meyer(REACTED, runs, gamma=2.0, order=2)
    assert second is not None
    assert second.factors[4].probability == pytest.approx(0.91981259442009, rel=1e-8)


def test_box_meyer_weighs_the_contrasts_of_three_levels() -> None:
    """By the marginal density of y after the mean, with Helmert's contrasts written out."""
    rng = np.random.default_rng(6)
    index = full((3, 2), 2)
    y = rng.normal(size=12) + 6.0 * (index[:, 0] == 2)
    found = box_meyer(y, Runs(words((3, 2)), index))
    assert found is not None
    assert found.models[0].factors == ("A",)
    a = np.array([[-np.sqrt(1.5), -np.sqrt(0.5)], [np.sqrt(1.5), -np.sqrt(0.5)], [0, np.sqrt(2)]])
    b = np.array([[-1.0], [1.0]])
    A, B = a[index[:, 0]], b[index[:, 1]]
    weights = {}
    for name, X in {"": None, "A": A, "B": B, "AB": np.column_stack([A, B, A * B])}.items():
        # y ~ N(0, σ² (I + γ² XX')) after the mean, σ² by Jeffreys: |V|^-½ (y'V^-1 y)^(-(n - 1)/2)
        basis = np.linalg.svd(np.ones((1, 12)))[2][1:]
        V = np.eye(11) if X is None else np.eye(11) + 4.0 * basis @ X @ X.T @ basis.T
        z = basis @ y
        odds = len(name) * np.log(0.25 / 0.75)
        weights[name] = (
            odds - 0.5 * np.linalg.slogdet(V)[1] - 5.5 * np.log(z @ np.linalg.solve(V, z))
        )
    p = np.exp(np.array(list(weights.values())) - max(weights.values()))
    p /= p.sum()
    assert [f.probability for f in found.factors] == pytest.approx([p[1] + p[3], p[2] + p[3]])


def test_hsu_critical_values() -> None:
    # one comparison is a one-sided t; Dunnett's one-sided table for 20 degrees of freedom
    assert critical_value(((0.5, 1),), 20, 0.05) == pytest.approx(stats.t.isf(0.05, 20), rel=1e-8)
    table_20 = [1.72, 2.03, 2.19, 2.30, 2.39]
    found = [critical_value(((0.5, p),), 20, 0.05) for p in range(1, 6)]
    assert found == pytest.approx(table_20, abs=5.1e-3)


def test_hsu_by_simulation_with_unequal_counts() -> None:
    rng = np.random.default_rng(4)
    counts = np.array([2, 3, 3, 6])
    truth = np.array([0.0, 0.3, 0.5, 0.5])
    covered = 0
    for _ in range(600):
        means = truth + rng.normal(size=4) / np.sqrt(counts)
        sigma = np.sqrt(rng.chisquare(10) / 10)
        low, high = with_the_best(means, pair_reach(1 / counts, float(sigma), 10, 0.05)[0])
        gap = np.array([truth[i] - np.delete(truth, i).max() for i in range(4)])
        covered += bool(((low <= gap + 1e-12) & (gap <= high + 1e-12)).all())
    assert covered / 600 >= 0.93


def test_best_configuration_of_the_plasma_etch() -> None:
    found = study(table("ABC", PLASMA), "ABC", goal="max").best
    assert found.among_best == ("A0B1C1", "A0B0C1")
    assert found.cells[0].mean == pytest.approx(1069)
    d = critical_value(((0.5, 7),), 8, 0.05)
    half = d * np.sqrt(18020.5 / 8)  # sqrt(2/n) is 1
    assert found.cells[0].mcb_high == pytest.approx(1069 - 1044.5 + half)
    assert found.cells[0].mcb_low == pytest.approx(1069 - 1044.5 - half)
    assert found.cells[2].mcb_high == 0
    lowest = study(table("ABC", PLASMA), "ABC", goal="min").best
    assert lowest.cells[0].config == "A0B0C0"
    assert lowest.cells[0].mcb_low is not None
    assert lowest.cells[0].mcb_low < 0 < (lowest.cells[0].mcb_high or 0)


def test_reduced_model_keeps_the_parents() -> None:
    rng = np.random.default_rng(0)
    frame = table("ABC", np.zeros(32))
    signs = 2 * frame[list("ABC")].to_numpy() - 1
    frame["y"] = 5 * signs[:, 0] * signs[:, 1] + rng.normal(size=32)
    reduced = study(frame, "ABC").best.reduced
    assert reduced.terms == ("A", "B", "AB")
    assert set(reduced.added) == {"A", "B"}
    assert reduced.best.config[:4] in ("A0B1", "A1B0")
    assert reduced.best.ci_low < reduced.best.mean < reduced.best.ci_high  # type: ignore[operator]


def test_dispersion_finds_the_factor_that_makes_runs_unstable() -> None:
    rng = np.random.default_rng(1)
    frame = table("ABC", np.zeros(64))
    frame["y"] = rng.normal(size=64) * np.where(frame["B"] == 1, 6.0, 1.0) + frame["day"]
    found = study(frame, "ABC", block="day").get(Dispersion)
    assert found is not None
    strongest = max(found.effects, key=lambda e: abs(e.effect))
    assert strongest.term == "B"
    assert strongest.p_holm < 0.001
    assert 4 < strongest.ratio < 130  # block means carry some of the noise into stable cells
    assert "B at high multiplies the variance" in found.sentence


def test_a_dispersion_of_an_interaction_names_no_level() -> None:
    rng = np.random.default_rng(1)
    frame = table("AB", np.zeros(64))
    frame["y"] = rng.normal(size=64) * np.where(frame["A"] == frame["B"], 1.0, 6.0)
    found = study(frame, "AB").get(Dispersion)
    assert found is not None
    assert found.sentence.startswith("the variance is ")
    assert found.sentence.endswith(" times as large where AB = −1 as where it is +1.")


def levels_study(y: np.ndarray, sizes: tuple[int, ...], replicates: int, **options: object):  # type: ignore[no-untyped-def]
    """Analyse a full factorial of factors with levels in blocks."""
    index = full(sizes, replicates)
    block = np.repeat(np.arange(replicates), len(index) // replicates)
    runs = Runs(words(sizes), index, block=block)
    return analyze(Dataset(runs, "y", y, goal="min"), AnalysisOptions(**options))  # type: ignore[arg-type]


def test_dispersion_of_a_factor_with_three_levels() -> None:
    rng = np.random.default_rng(2)
    level = full((3, 2), 10)[:, 0]
    y = rng.normal(size=60) * np.array([1.0, 1.0, 6.0])[level]
    found = levels_study(y, (3, 2), 10).get(Dispersion)
    a, b, ab = found.effects
    assert (a.term, a.df, a.z) == ("A", 2, None)
    assert a.p_holm < 0.001 < 0.05 < min(b.p_holm, ab.p_holm)
    assert a.pattern in ("a3 − a1", "a3 − a2")
    assert 10 < a.ratio < 120
    assert f"A multiplies the variance by {a.ratio:.4g}"[:30] in found.sentence
    assert found.lenth is None


@pytest.mark.slow
def test_dispersion_tests_of_three_levels_hold_their_size() -> None:
    rng = np.random.default_rng(3)
    p = []
    for _ in range(200):
        found = levels_study(rng.normal(size=30), (3, 2), 5).get(Dispersion)
        p += [effect.p for effect in found.effects]
    assert np.mean(np.array(p) < 0.05) == pytest.approx(0.05, abs=0.03)


@pytest.mark.slow
def test_dispersion_z_is_standard_normal_under_the_null() -> None:
    rng = np.random.default_rng(8)
    z = []
    for _ in range(150):
        found = study(table("AB", rng.normal(size=20)), "AB").get(Dispersion)
        assert found is not None
        z.append(found.effects[0].z)
    assert 0.8 < np.std(z) < 1.2


def test_log_effects_come_back_as_ratios() -> None:
    frame = table("AB", np.exp(np.array([0, 1, 0.5, 1.5] * 3) + 0.01 * np.arange(12) % 0.03))
    found = study(frame, "AB", transform="log")
    back = {e.term: e for e in found.response_scale}
    high, low = frame.loc[frame["A"] == 1, "y"], frame.loc[frame["A"] == 0, "y"]
    assert back["A"].kind == "ratio"
    assert back["A"].value == pytest.approx(stats.gmean(high) / stats.gmean(low), rel=1e-10)
    assert found.best.cells[0].mean == pytest.approx(stats.gmean(frame["y"][::4]), rel=1e-10)


def test_box_cox_finds_its_exponent_and_auto_follows_it() -> None:
    rng = np.random.default_rng(7)
    frame = table("ABC", np.zeros(64))
    scale = 3 + frame["A"] + 0.4 * frame["B"] + 0.2 * rng.normal(size=64)
    exact = study(frame.assign(y=np.exp(scale)), "ABC").diagnostics
    assert exact.boxcox is not None
    assert exact.boxcox.low < 0 < exact.boxcox.high < 1
    assert any("transform=log" in f.remedies for f in exact.findings)
    assert study(frame.assign(y=np.exp(scale)), "ABC", transform="auto").transform.name == "log"
    steep = frame.assign(y=2 + 40 * frame["A"] + 9 * frame["B"] + 0.5 * rng.random(64))
    plain = study(steep, "ABC", transform="auto")
    assert plain.transform.name == "none"
    assert plain.diagnostics.boxcox is not None
    assert plain.diagnostics.boxcox.low < 1 < plain.diagnostics.boxcox.high < 2
    logged = study(frame.assign(y=np.exp(scale)), "ABC", transform="auto")
    assert to_plain(logged)["transform"] == "log"
    root = study(frame.assign(y=scale**4), "ABC", transform="boxcox")
    assert root.transform.exponent == pytest.approx(0.25, abs=0.25)
    y = np.array([0.5, 2.0, 30.0])
    for exponent in (-1.0, 0.0, 0.5):
        assert from_power(to_power(y, exponent), exponent) == pytest.approx(y)
    with pytest.raises(DoeError, match="positive"):
        study(frame.assign(y=scale - 4), "ABC", transform="log")


def test_diagnostics_name_what_is_wrong() -> None:
    rng = np.random.default_rng(12)
    frame = table("ABC", rng.normal(size=32))
    frame["run_id"] = [f"run-{i}" for i in range(32)]
    frame["run_order"] = rng.permutation(32) + 1
    frame["slot"] = np.where(frame["A"] == 1, "gpu1", "gpu0")
    frame["host"] = rng.choice(["n1", "n2"], 32)
    clean = {f.check: f for f in study(frame, "ABC").diagnostics.findings}
    assert clean["drift"].ok
    assert clean["outliers"].ok
    assert clean["host"].ok
    assert not clean["slot confounding"].ok
    assert "Factor A is confounded with the slot" in clean["slot confounding"].advice
    assert clean["host confounding"].ok
    frame["y"] += 0.3 * frame["run_order"] + 30 * (frame["run_id"] == "run-9")
    frame["y"] += 8 * (frame["host"] == "n2")
    found = {f.check: f for f in study(frame, "ABC").diagnostics.findings}
    assert found["outliers"].runs == ("run-9",)
    assert "run-9" in found["outliers"].advice
    frame["y"] -= 30 * (frame["run_id"] == "run-9")
    found = {f.check: f for f in study(frame, "ABC").diagnostics.findings}
    assert not found["host"].ok
    assert not found["drift"].ok


def test_robust_methods_differ_where_one_run_is_wild() -> None:
    rng = np.random.default_rng(21)
    frame = table("AB", 10 + rng.normal(size=20) + 3 * np.tile([0, 1, 0, 1], 5))
    calm = study(frame, "AB", robust=True, permutations=999).get(Robust)
    assert calm is not None
    assert calm.rows[0].term == "A"
    assert calm.rows[0].p_permutation == pytest.approx(1 / 1000)  # none of 999 is as large
    assert calm.rows[0].p_maxt <= 2 / 1000
    assert calm.rows[0].verdicts == (True, None, True, True)
    frame.loc[1, "y"] += 200
    wild = study(frame, "AB", robust=True, permutations=999).get(Robust)
    assert wild is not None
    a = wild.rows[0]
    assert a.effect > 15
    assert a.median == pytest.approx(3, abs=1.5)
    assert a.trimmed == pytest.approx(3, abs=1.5)


def test_robust_answers_for_any_levels() -> None:
    rng = np.random.default_rng(7)
    level = full((3, 2), 4)[:, 0]
    y = rng.normal(size=24) + 3.0 * (level == 2)
    a, b, ab = levels_study(y, (3, 2), 4, robust=True, permutations=499).get(Robust).rows
    assert (a.df, b.df, ab.df) == (2, 1, 2)
    assert a.p_permutation == a.p_maxt == pytest.approx(1 / 500)
    assert a.verdicts == (True, True, True, True)
    assert a.effect is a.boot_low is a.trimmed is None
    assert b.boot_low < b.effect < b.boot_high
    assert b.p_hc3 is None is not ab.p_hc3
    assert b.median is not None


def test_a_method_without_power_does_not_veto() -> None:
    """Two runs in each of twelve cells: single residuals say little of their errors."""
    index = full((3, 2, 2), 2)
    y = np.random.default_rng(0).normal(size=24) + 2.2 * (index[:, 0] == 2)
    runs = Runs(words((3, 2, 2)), index)
    options = AnalysisOptions(robust=True, permutations=999)
    a = analyze(Dataset(runs, "y", y), options).get(Robust).rows[0]
    assert a.p < 1e-3
    assert a.p_maxt < 0.02
    assert a.p_wild > 0.1  # which would be a clear no
    assert a.verdicts == (True, True, True, None)
    assert a.agree


@pytest.mark.slow
def test_methods_agree_on_clean_data() -> None:
    rng = np.random.default_rng(2)
    unsure = 0
    for seed in range(40):
        frame = table("ABCD", rng.normal(size=32))
        found = study(frame, "ABCD", robust=True, permutations=499, seed=seed).get(Robust)
        assert found is not None
        unsure += not all(row.agree for row in found.rows)
    assert unsure <= 5


def test_robust_methods_say_when_they_are_left_out() -> None:
    frame = table("ABCD", np.random.default_rng(0).normal(size=8192))
    found = study(frame, "ABCD", robust=True)
    assert found.get(Robust) is None
    assert any("robust methods are left out: 8192 runs" in w for w in found.warnings)


def test_several_responses_are_ranked_by_evidence_and_averaged_only_where_that_is_declared() -> (
    None
):
    first = study(table("ABC", PLASMA), "ABC")
    second = study(table("ABC", [v / 10 for v in PLASMA[::-1]]), "ABC")
    one, two = by_term(first), by_term(second)
    declared = effects_by_response([first, second], averaged=True)
    averages = [abs(row.average or 0.0) for row in declared.rows]
    assert averages == sorted(averages, reverse=True)
    by_name = {row.term: row for row in declared.rows}
    assert by_name["C"].average == pytest.approx((one["C"].effect + two["C"].effect) / 2)
    found = effects_by_response([first, second])
    assert {row.average for row in found.rows} == {None}
    smallest = [min(row.p_bh) for row in found.rows]  # type: ignore[type-var]
    assert smallest == sorted(smallest)  # type: ignore[type-var]
    assert (declared.ranked_by, found.ranked_by) == ("|average effect|", "smallest adjusted p")
    flat = [e.p for row in found.rows for e in (one[row.term], two[row.term])]
    expected = stats.false_discovery_control(np.array(flat, float))
    assert [p for row in found.rows for p in row.p_bh] == pytest.approx(list(expected))
    assert found.tests == 14
    dropped = study(table("ABC", PLASMA), "ABC", drop=("A",))
    assert [e.term for e in dropped.effects] == ["B", "C", "BC"]
    assert by_term(dropped)["C"].se == one["C"].se


def test_saturated_design_is_tested_by_lenth() -> None:
    found = study(table("ABCD", FILTRATION), "ABCD", goal="max")
    effects = by_term(found)
    assert found.df_error == 0
    assert effects["A"].se is effects["A"].ci_low is effects["A"].ci_high is None
    assert {t for t, e in effects.items() if e.p is not None and e.p < 0.05} >= {"A", "C", "D"}
    assert effects["A"].t == pytest.approx(21.625 / 2.625)
    plain = to_plain(found)
    assert list(plain) == [
        *("response", "n", "factors", "block", "transform", "df_error", "sigma", "r2"),
        *("effects", "anova", "lenth", "levels", "surface", "diagnostics", "warnings"),
    ]
    assert list(plain["effects"][0]) == [
        *("term", "effect", "coef", "se", "ci_low", "ci_high"),
        *("t", "p", "p_holm", "p_bh", "ss", "percent"),
    ]
    assert list(plain["lenth"]) == ["s0", "pse", "me", "sme", "me_t", "sme_t"]
    assert list(plain["anova"][0]) == ["source", "df", "ss", "ms", "f", "p"]


def test_intervals_of_configurations_stay_where_positive_values_can_be() -> None:
    rng = np.random.default_rng(3)
    y = np.exp(np.tile([0.0, 0.0, 0.0, 3.0], 4) + 0.4 * rng.normal(size=16))
    found = study(table("AB", y), "AB").best
    assert found is not None
    for cell in found.cells:
        assert cell.ci_low is not None
        assert cell.geometric is not None
        assert 0 < cell.ci_low < cell.geometric < (cell.ci_high or 0.0)
    by_config = {cell.config: cell for cell in found.cells}
    assert by_config["A1B1"].geometric == pytest.approx(stats.gmean(y[3::4]))
    assert by_config["A1B1"].mean == pytest.approx(y[3::4].mean())
    signed = study(table("AB", y - 1.0), "AB").best  # values below 0 are possible
    assert signed is not None
    assert signed.cells[0].geometric is None


def test_predictions_of_positive_values_are_cut_at_zero() -> None:
    rng = np.random.default_rng(3)
    y = np.exp(np.tile([0.0, 0.0, 0.0, 3.0], 4) + 0.4 * rng.normal(size=16))
    bounds = [at.ci_low for at in study(table("AB", y), "AB").predictions]
    assert min(bound for bound in bounds if bound is not None) == 0.0
    signed = study(table("AB", y - 1.0), "AB").predictions
    assert min(at.ci_low or 0.0 for at in signed) < 0


def test_an_effect_of_rounding_alone_is_as_large_as_any() -> None:
    """On any processor: the second replicate takes back all that B did in the first."""
    values = np.random.default_rng(1).normal(size=8)
    analysis = study(table("ABC", [*values, *values[[2, 3, 0, 1, 6, 7, 4, 5]]]), "ABC", robust=True)
    rows = {row.term: row for row in analysis.get(Robust).rows}
    assert [rows[term].p_permutation for term in ("B", "AB", "BC", "ABC")] == [1.0] * 4
