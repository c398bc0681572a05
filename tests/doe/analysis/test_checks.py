"""Checks of the assumptions: what they can see, and how often they cry on clean data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from factorial_tables import dataset, study, table
from level_tables import factor, full, seen, words

from doe.analysis.analyze import Analysis, analyze, fit_response
from doe.analysis.dataset import OFF, Dataset, Runs
from doe.analysis.diagnostics import Finding, between_groups, diagnose
from doe.analysis.options import AnalysisOptions
from doe.analysis.tables import TableOptions


def checks(found: Analysis) -> dict[str, Finding]:
    return {finding.check: finding for finding in found.diagnostics.findings}


def clean(rng: np.random.Generator, keys: str, replicates: int) -> pd.DataFrame:
    n = replicates << len(keys)
    order = rng.permutation(n)
    frame = table(keys, 20 + rng.normal(size=n))
    return frame.assign(run_order=order + 1, slot=[f"gpu{i % 4}" for i in order])


def test_a_spread_that_few_runs_of_a_cell_cannot_show_is_seen_by_factor() -> None:
    rng = np.random.default_rng(3)
    frame = table("ABCDEF", rng.normal(size=192))
    clean = checks(study(frame, "ABCDEF"))
    assert clean["spread by factor"].ok
    frame["y"] *= np.where(frame["C"] == 1, 1.0, 2.0)
    found = checks(study(frame, "ABCDEF"))
    assert found["equal variance"].ok  # 64 cells of three runs each
    assert not found["spread by factor"].ok
    assert "between the levels of C: transform" in found["spread by factor"].advice


def test_a_saturated_design_is_checked_without_its_matrix() -> None:
    """Of 2^16 runs that has 32 GB."""
    frame = table("ABCD", np.random.default_rng(1).normal(size=16))
    fitted = fit_response(dataset(frame, TableOptions(factors=tuple("ABCD"))), AnalysisOptions())
    assert fitted.fit.model.solved_by_transform
    assert not diagnose(fitted).residuals
    assert "X" not in vars(fitted.fit.model)


def test_distances_have_no_structural_zero() -> None:
    # anova(lm(d ~ level)) of (2.5, 3/sqrt(2), 5.5) and (0.75, 0.5/sqrt(2), 4.25), and as
    # levene.test(correction.method = "zero.removal") of the R package lawstat
    frame = pd.DataFrame({"A": [0, 1] * 4, "y": [1, 3, 2, 3.5, 5, 4, 9, 8]})
    found = checks(study(frame, "A"))
    assert found["equal variance"].statistic == pytest.approx(0.94423, abs=5e-6)
    assert found["spread by factor"].p == pytest.approx(0.38622, abs=5e-6)


@pytest.mark.slow
def test_three_replicates_show_unequal_spread() -> None:
    rng = np.random.default_rng(1)
    by_cell = by_factor = 0
    for _ in range(60):
        frame = table("ABCD", rng.normal(size=48))
        frame["y"] *= np.where(frame["B"] == 1, 5.0, 1.0)
        found = checks(study(frame, "ABCD"))
        by_cell += found["equal variance"].p < 0.05
        by_factor += found["spread by factor"].p < 0.05
    assert by_cell / 60 > 0.15
    assert by_factor / 60 > 0.7


def test_two_replicates_are_enough_to_compare_levels() -> None:
    frame = table("ABCD", np.random.default_rng(2).normal(size=32))
    frame["y"] *= np.where(frame["C"] == 1, 12.0, 1.0)
    found = checks(study(frame, "ABCD"))
    assert "equal variance" not in found
    assert "between the levels of C" in found["spread by factor"].advice


@pytest.mark.slow
@pytest.mark.parametrize(("keys", "replicates"), [("ABC", 2), ("AB", 4)])
def test_clean_data_raise_any_alarm_at_the_level_of_one_test(keys: str, replicates: int) -> None:
    rng = np.random.default_rng(7)
    alarms = 0
    for _ in range(120):
        findings = study(clean(rng, keys, replicates), keys).diagnostics.findings
        alarms += not all(f.ok for f in findings)
    assert alarms / 120 <= 0.11


def test_every_check_gives_its_p_and_the_one_over_all_checks() -> None:
    findings = study(clean(np.random.default_rng(0), "ABC", 2), "ABC").diagnostics.findings
    tested = [f for f in findings if f.p is not None]
    assert len(tested) >= 6
    assert all(f.p_holm is not None and f.p_holm >= f.p for f in tested)


@pytest.mark.slow
def test_a_factor_goes_with_the_slot_by_chance_only_rarely() -> None:
    rng = np.random.default_rng(3)
    named = sum(
        not checks(study(clean(rng, "AB", 2), "AB"))["slot confounding"].ok for _ in range(150)
    )
    assert named / 150 < 0.03
    coded = np.array([[-1.0], [1.0]] * 8)
    share, p = between_groups(coded, np.arange(16) % 2)
    assert share[0] == pytest.approx(1.0)
    assert p[0] < 0.001


def test_a_sorted_table_says_nothing_of_drift() -> None:
    frame = table("ABC", np.random.default_rng(1).normal(size=16)).sort_values("y")
    found = checks(study(frame, "ABC"))["drift"]
    assert (found.ok, found.p) == (True, None)
    assert "is not known" in found.advice


def test_drift_says_that_it_may_be_chance() -> None:
    frame = clean(np.random.default_rng(4), "ABC", 2)
    frame["y"] += frame["run_order"]
    found = checks(study(frame, "ABC"))["drift"]
    assert not found.ok
    assert "If data, code and machines did not change between runs, this is chance" in found.advice


def test_of_two_mirrored_replicates_neither_is_called_the_odd_one() -> None:
    frame = table("ABC", np.random.default_rng(5).normal(size=16))
    frame.loc[3, "y"] += 60
    found = checks(study(frame, "ABC"))["outliers"]
    assert set(found.runs) == {"row 4", "row 12"}
    assert "row 4 and row 12, the two runs of A1B1C0: they differ" in found.advice
    assert "far from the rest" not in found.advice
    four = table("ABC", np.random.default_rng(5).normal(size=32))
    four.loc[3, "y"] += 60
    alone = checks(study(four, "ABC"))["outliers"]
    assert alone.runs == ("row 4",)
    assert "Look at row 4: far from the rest of its configuration. Do not drop it" in alone.advice


def test_a_run_without_replicates_is_far_from_the_model_and_not_from_its_own_configuration() -> (
    None
):
    frame = table("ABCDE", np.random.default_rng(5).normal(size=32))
    frame.loc[3, "y"] += 60
    found = checks(study(frame, "ABCDE", order=1))["outliers"]
    assert found.runs == ("row 4",)
    assert found.advice.startswith("Look at row 4: far from the model. Do not drop it")


@pytest.mark.slow
def test_box_cox_intervals_cover() -> None:
    rng = np.random.default_rng(6)
    covered = 0
    for _ in range(200):
        frame = table("ABC", np.exp(3 + 0.4 * rng.normal(size=16)))
        profile = study(frame, "ABC").diagnostics.boxcox
        assert profile is not None
        covered += profile.low <= 0.0 <= profile.high
    assert covered / 200 >= 0.90


# Factors of more levels --------------------------------------------------------------------------

WILD = [10.03, 11.36, 11.22, 9.49, 60.0, 9.47, 10.57, 9.94, 10.75, 8.15, 11.57, 9.9]
WILD += [10.68, 9.86, 9.62, 10.46, 10.82, 9.8, 9.85, 10.69, 9.13, 8.49, 10.39, 9.33]
WILD += [8.08, 9.19, 9.53, 8.81, 8.51, 10.04, 10.9, 9.77, 9.26, 10.38, 10.72, 9.7]


def levels_checks(y: Sequence[float], **facts: object) -> dict[str, Finding]:
    """Checks of a 3 x 2 x 2 study of three runs each."""
    runs = Runs(words((3, 2, 2)), full((3, 2, 2), 3), **facts)  # type: ignore[arg-type]
    return checks(analyze(Dataset(runs, "y", np.asarray(y), goal="max")))


def test_one_wild_value_among_three_levels_is_told() -> None:
    # m <- lm(y ~ A * B * C); shapiro.test(resid(m)); max(abs(rstudent(m)))
    found = levels_checks(WILD)
    assert found["normality"].statistic == pytest.approx(0.4517918395, rel=1e-8)
    assert found["normality"].p == pytest.approx(1.88624809e-10, rel=1e-4)
    assert found["outliers"].statistic == pytest.approx(45.6797373304, rel=1e-9)
    assert found["outliers"].runs == ("row 5",)
    assert not found["box-cox"].ok


def test_spread_is_compared_over_all_levels_of_a_factor() -> None:
    # anova(lm(d ~ factor(C))) and (d ~ cell) of distances from the medians, without these
    found = levels_checks(WILD)
    assert found["spread by factor"].statistic == pytest.approx(1.1869444580, rel=1e-8)
    assert found["equal variance"].statistic == pytest.approx(1.1358368832, rel=1e-8)
    assert found["equal variance"].p == pytest.approx(0.4129738248, rel=1e-6)
    rng = np.random.default_rng(2)
    y = rng.normal(size=36) * np.array([1.0, 1.0, 12.0])[full((3, 2, 2), 3)[:, 0]]
    assert "between the levels of A" in levels_checks(y)["spread by factor"].advice


def test_a_factor_of_three_levels_goes_with_the_host() -> None:
    rng = np.random.default_rng(3)
    hosts = tuple(f"node{i}" for i in full((3, 2, 2), 3)[:, 0])
    found = levels_checks(rng.normal(size=36), host=hosts)["host confounding"]
    assert not found.ok
    assert "Factor A is confounded with the host" in found.advice
    mixed = tuple(f"node{i}" for i in rng.integers(0, 3, size=36))
    assert levels_checks(rng.normal(size=36), host=mixed)["host confounding"].ok


def test_other_facts_of_the_runs_are_checked_as_hosts_are() -> None:
    rng = np.random.default_rng(4)
    kind = rng.integers(0, 2, size=36)
    facts = {"gpu": tuple("AH"[i] + "100" for i in kind), "seconds": ("1",) * 18 + ("2",) * 18}
    found = levels_checks(rng.normal(size=36) + 6.0 * kind, facts=facts)
    assert "Residuals differ between gpus" in found["gpu"].advice
    assert "seconds" not in found  # what a run took is no surrounding


def test_shares_of_three_levels_between_groups() -> None:
    """Light and Margolin's share: 0 beyond chance where groups are drawn, 1 where they are it."""
    rng = np.random.default_rng(5)
    index = full((3,), 200)
    alike = np.mean([between_groups(index, rng.permutation(600) % 4)[0] for _ in range(50)])
    assert alike == pytest.approx(0.0, abs=0.002)
    share, p = between_groups(index, index[:, 0])
    assert share == pytest.approx(1.0)
    assert p < 1e-12


def test_corners_beside_centre_runs_say_nothing_of_normality() -> None:
    """Their residuals are all alike: an alarm in half of clean studies."""
    rng = np.random.default_rng(1)
    index = np.vstack([full((2, 2, 2)), np.full((4, 3), OFF)])
    data = seen([factor(key, [0, 1], "linear") for key in "ABC"], index, rng.normal(size=12))
    assert "normality" not in checks(analyze(data, AnalysisOptions(order=2)))


def test_the_advice_on_unequal_spread_is_what_holds_in_the_design() -> None:
    rng = np.random.default_rng(3)
    frame = table("ABC", 20 + rng.normal(size=64))
    frame["y"] += np.where(frame["A"] == 1, 1.0, 6.0) * rng.normal(size=64)
    even = checks(study(frame, "ABC"))["spread by factor"]
    assert not even.ok
    assert "tests of terms are nearly valid" in even.advice
    assert "robust" not in even.remedies
    kept = frame[(frame["A"] == 1) | (frame["day"] <= 3)]
    uneven = checks(study(kept, "ABC"))["spread by factor"]
    assert not uneven.ok
    assert "judge terms by HC3" in uneven.advice
    assert "robust" in uneven.remedies
