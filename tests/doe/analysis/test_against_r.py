"""Figures of R 4 for the plasma etch data; each expectation stands below the call that gave it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from factorial_tables import PLASMA, THREE_BLOCKS, by_term, study, table, two_level_fit

from doe.analysis.estimators.dispersion import Dispersion
from doe.analysis.estimators.robust import hc3
from doe.analysis.missing import firth


def test_full_model() -> None:
    found = study(table("ABC", PLASMA), "ABC")
    effects = by_term(found)
    # summary(lm(y ~ A*B*C))
    assert effects["AC"].p == pytest.approx(1.93395766759e-04, rel=1e-8)
    assert effects["C"].t == pytest.approx(12.9000195621161, rel=1e-8)
    assert found.r2 == pytest.approx(0.966089969874, rel=1e-8)
    assert found.anova.r2_adjusted == pytest.approx(0.936418693514, rel=1e-8)
    # 1 - sum((resid(m)/(1-hatvalues(m)))^2) / sum((y-mean(y))^2)
    assert found.anova.r2_predicted == pytest.approx(0.864359879498, rel=1e-8)
    # confint(m) * 2
    assert effects["AB"].ci_low == pytest.approx(-79.5978252244, rel=1e-8)
    assert effects["AB"].ci_high == pytest.approx(29.8478252244, rel=1e-8)
    # p.adjust(p, "holm"), p.adjust(p, "BH")
    assert effects["A"].p_holm == pytest.approx(1.33930523549e-02, rel=1e-8)
    assert effects["AC"].p_holm == pytest.approx(1.16037460055e-03, rel=1e-8)
    assert effects["B"].p_holm == 1.0
    assert effects["AB"].p_bh == pytest.approx(5.69043748214e-01, rel=1e-8)
    assert effects["AC"].p_bh == pytest.approx(6.76885183656e-04, rel=1e-8)


def test_replicate_as_block() -> None:
    # summary(aov(y ~ rep + A*B*C))
    found = study(table("ABC", PLASMA), "ABC", block="day")
    rows = {row.source: row for row in found.anova.rows}
    assert rows["Block"].ss == pytest.approx(3875.0625, rel=1e-8)
    assert rows["A"].f == pytest.approx(20.44291, abs=5e-6)
    assert rows["AC"].p == pytest.approx(0.00024532, abs=5e-9)
    assert (rows["Error"].df, rows["Error"].ms) == (7, pytest.approx(2020.777, abs=5e-4))
    assert found.anova.blocking is not None
    # (3875.0625 - 2020.7767857) / 8, and by hand from the mean squares
    assert found.anova.blocking.variance == pytest.approx(231.7857143, rel=1e-8)
    gain = (3875.0625 + 2 * 7 * 2020.77678571) / (15 * 2020.77678571)
    assert found.anova.blocking.efficiency == pytest.approx(gain, rel=1e-8)


def test_unbalanced_types_two_and_three_with_blocks() -> None:
    frame = table("ABC", PLASMA).drop(index=[15, 2]).reset_index(drop=True)
    found = study(frame, "ABC", block="day")
    # drop1(lm(y ~ rep + A*B*C), . ~ ., test = "F")
    third = {row.source: row for row in found.anova.rows}
    assert third["A"].ss == pytest.approx(34830.1875, rel=1e-8)
    assert third["BC"].ss == pytest.approx(204.1875, rel=1e-8)
    assert third["C"].p == pytest.approx(3.5432e-05, rel=1e-4)
    assert (third["Error"].ss, third["Error"].df) == (pytest.approx(7053, rel=1e-8), 5)
    # RSS(y ~ rep + B*C) - RSS(y ~ rep + B*C + A), and AB after rep + A*C + B*C
    assert found.anova.type2 is not None
    second = {row.source: row for row in found.anova.type2}
    assert second["A"].ss == pytest.approx(32000, rel=1e-8)
    assert second["AB"].ss == pytest.approx(2883, rel=1e-8)


def test_reduced_model_splits_lack_of_fit() -> None:
    # anova(lm(y ~ A+B+C), lm(y ~ A*B*C))
    found = study(table("ABC", PLASMA), "ABC", order=1)
    rows = {row.source: row for row in found.anova.rows}
    assert (rows["Lack of fit"].df, rows["Lack of fit"].ss) == (4, pytest.approx(97022.25))
    assert rows["Lack of fit"].f == pytest.approx(10.76799, abs=5e-6)
    assert rows["Lack of fit"].p == pytest.approx(0.002633, abs=5e-7)
    assert found.df_error == 8
    assert found.sigma == pytest.approx(np.sqrt(18020.5 / 8))


def test_diagnostics() -> None:
    found = study(table("ABC", PLASMA), "ABC")
    checks = {f.check: f for f in found.diagnostics.findings}
    # shapiro.test(resid(m))
    assert checks["normality"].statistic == pytest.approx(0.9426140381, rel=1e-7)
    assert checks["normality"].p == pytest.approx(0.382275987, rel=1e-6)
    # rstudent(m)[1:4], cooks.distance(m)[1:4]
    first = found.diagnostics.residuals[:4]
    assert [r.studentized for r in first] == pytest.approx(
        [-0.7849912870566, 0.2661277720032, 0.4524384753830, 0.0976211838298], rel=1e-8
    )
    assert [r.cook for r in first] == pytest.approx(
        [0.08090785494298, 0.01001637024500, 0.02841208623512, 0.00135956272024], rel=1e-8
    )
    # optimise() and uniroot() of -4 * (log(SSE/8) - 2*(lambda - 1)*mean(log(y))) on 8 df
    profile = found.diagnostics.boxcox
    assert profile is not None
    assert profile.exponent == pytest.approx(0.1442871766, abs=1e-4)
    assert (profile.low, profile.high) == pytest.approx((-3.264786476, 5), abs=1e-5)
    assert profile.p_none == pytest.approx(0.6826337182, abs=1e-6)
    # anova(lm(dist ~ cell)), dist = abs(v[-2] - v[2]) of the sorted runs v of each cell
    second = study(table("AB", THREE_BLOCKS), "AB")
    spread = {f.check: f for f in second.diagnostics.findings}["equal variance"]
    assert spread.statistic == pytest.approx(0.25641, abs=5e-6)
    assert spread.p == pytest.approx(0.85373, abs=5e-6)


def test_profile_log_likelihood_is_that_of_the_data() -> None:
    found = study(table("ABC", PLASMA), "ABC").diagnostics.boxcox
    assert found is not None
    assert max(found.loglik) == pytest.approx(-30.79570685, abs=1e-3)  # $objective


def test_hc3() -> None:
    # X %*% by hand for lm(y ~ A+B+C) without runs 3 and 16, t on 10 degrees of freedom
    kept = np.delete(np.arange(16), [2, 15])
    cells, y = np.tile(np.arange(8), 2)[kept], np.array(PLASMA, float)[kept]
    assert hc3(two_level_fit(y, cells, 3, order=1)) == pytest.approx(
        {1: 1.787562385022e-01, 2: 7.965283389666e-01, 4: 1.981383117001e-03}, rel=1e-8
    )


def test_firth_on_separated_data() -> None:
    # optim() of the penalised log-likelihood, and its ratio with one coefficient at 0
    x = pd.DataFrame({"one": 1.0, "a": [-1.0, 1.0] * 8, "b": [-1.0, -1.0, 1.0, 1.0] * 4})
    lost = np.array([0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 1], float)
    b, p = firth(x.to_numpy(), lost, [np.array([1]), np.array([2])])
    assert b == pytest.approx([-1.4818711, 2.1521777, 1.4818711], abs=2e-5)
    assert p == pytest.approx([0.0039434449, 0.048292061], rel=1e-5)


def test_dispersion_by_hand() -> None:
    found = study(table("AB", THREE_BLOCKS), "AB").get(Dispersion)
    assert found is not None
    effects = {e.term: e for e in found.effects}
    # s2 = tapply(y, cell, var); mean(log(s2[A high])) - mean(log(s2[A low])); trigamma(1)
    assert effects["A"].effect == pytest.approx(-0.559615787935, rel=1e-8)
    variance = 1.64493406685 + found.kurtosis / 3
    assert effects["A"].z == pytest.approx(-0.559615787935 / np.sqrt(variance), rel=1e-8)
    assert effects["A"].ratio == pytest.approx(np.exp(-0.559615787935), rel=1e-8)
