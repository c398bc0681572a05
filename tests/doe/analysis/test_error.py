"""What tests are against: pure error, the residual, or nothing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from factorial_tables import PLASMA, by_term, study, table

from doe.numbers import about


@pytest.mark.parametrize("order", [None, 1, 2])
def test_replicates_that_agree_to_the_last_digit_are_no_error(order: int | None) -> None:
    once = np.array([0.1, 0.2, 0.30000000000000004, 0.7, 1.1, 1.9, 2.3, 9.1])
    found = study(table("ABC", np.tile(once, 2)), "ABC", order=order)
    assert (found.df_error, found.sigma) == (0, None)
    assert any("no error to test against" in warning for warning in found.warnings)
    assert all(e.se is None and e.ci_low is None for e in found.effects)
    assert all(e.p is None or e.p > 1e-6 for e in found.effects)
    assert next(row for row in found.anova.rows if row.source == "Error").f is None
    assert found.best.critical is None


def test_an_effect_of_rounding_alone_gets_no_stars() -> None:
    y = np.tile([0.1, 0.3, 0.1 + 1e-17, 0.3], 3)
    found = study(table("AB", np.where(np.arange(12) == 2, np.nextafter(0.1, 1), y)), "AB")
    assert all(e.p is None or e.p > 0.05 for t, e in by_term(found).items() if t != "A")


def test_a_small_real_error_is_still_an_error() -> None:
    y = 1e6 + np.random.default_rng(0).normal(size=16) * 1e-3
    assert study(table("ABC", y), "ABC").df_error == 8


def test_few_degrees_of_pure_error_are_named_and_the_residual_is_offered() -> None:
    rng = np.random.default_rng(1)
    frame = pd.concat([table("ABCD", rng.normal(size=16))] * 2, ignore_index=True).iloc[:17]
    frame = frame.assign(y=rng.normal(size=17), day=range(17))
    pure = study(frame, "ABCD", order=1)
    assert pure.df_error == 1
    (warning,) = (w for w in pure.warnings if "pure error" in w)
    assert "on 1 degree of freedom" in warning
    assert "the residual of the model has 12" in warning
    pooled = study(frame, "ABCD", order=1, error="residual")
    assert (pooled.df_error, pooled.anova.error) == (12, "residual")
    assert pooled.warnings[-1].startswith("Tests are against the residual; its lack of fit")
    lack = next(row for row in pure.anova.rows if row.source == "Lack of fit")
    said = f"F = {about(lack.f)} on 11 and 1 degrees of freedom, p = {lack.p:.4f}"
    assert said in pooled.warnings[-1]
    rows = {row.source: row for row in pooled.anova.rows}
    assert "Lack of fit" not in rows
    assert rows["Error"].df == 12


def test_the_residual_as_error_agrees_with_r() -> None:
    # summary(lm(y ~ A + B + C)) on the plasma etch data
    found = study(table("ABC", PLASMA), "ABC", order=1, error="residual")
    assert found.sigma == pytest.approx(97.91, abs=0.005)
    assert by_term(found)["A"].t == pytest.approx(-2.076, abs=5e-4)
    assert by_term(found)["C"].p == pytest.approx(4.24e-05, abs=5e-08)
