"""A short calibration of small designs; `make calibrate` has them all."""

from __future__ import annotations

import functools
import re
from pathlib import Path

import numpy as np
import pytest

from benchmarks import DOCUMENT
from benchmarks.calibrate import POWERS, RATES, complaints, measured
from benchmarks.simulated import ACTIVE, ERRORS, NAMED, Plan, simulated
from doe.analysis.analyze import fit_response
from doe.analysis.estimators.dispersion import estimate
from doe.design.power import DesignSize, power
from doe.views import tables

COUNT = 60
pytestmark = pytest.mark.slow


def test_rates_of_a_small_design_stay_in_their_bands() -> None:
    rates = measured(NAMED["2³ × 2"], "normal", COUNT)
    assert len(rates) >= 25
    assert complaints({("2³ × 2", "normal", ""): rates}, COUNT) == []


@functools.cache
def rates_of(plan: str, draw: str, planted: str) -> dict[str, float]:
    """The rates of some data sets, which several tests look at."""
    return measured(NAMED[plan], draw, COUNT, planted, permutations=0)


@pytest.mark.parametrize(
    ("plan", "draw", "planted"),
    [
        ("2³ × 4 in blocks", "normal", ""),
        ("2⁴ × 2 in two blocks each", "normal", ""),
        ("2³ × 4 in blocks", "normal", "spread"),
        ("2³ × 4 in blocks", "normal", "skewed"),
        ("2⁴ × 1, order 2", "normal", "skewed"),
        ("2³ × 4 in blocks", "normal", "tied"),
        ("2³ × 3, order 1", "normal", "interaction"),
        ("2² × 3 × 2 in blocks, 2 missing", "normal", ""),
        ("2³ with 4 centre runs", "normal", ""),
        ("L18", "normal", ""),
        ("2³ × 4", "normal", "by value"),
        ("2³ × 2", "normal", "covariate"),
        ("2³ × 4", "normal", "together"),
    ],
)
def test_rates_stay_in_their_bands(plan: str, draw: str, planted: str) -> None:
    rates = rates_of(plan, draw, planted)
    assert complaints({(plan, draw, planted): rates}, COUNT) == []


def test_the_power_that_is_foretold_is_that_of_the_analysis() -> None:
    """An effect of three standard errors in a 2³ of four blocks, by its own p and by Holm's."""
    size = DesignSize(8, 4, 1, 7)
    effect = ACTIVE * 2.0 / np.sqrt(size.runs)
    rates = rates_of("2³ × 4 in blocks", "normal", "")
    for name, alpha in (("A by its own p", 0.05), ("A after Holm", 0.05 / size.terms)):
        foretold = power(effect, 1.0, size, alpha)
        spread = np.sqrt(foretold * (1 - foretold) / COUNT)
        assert rates[name] == pytest.approx(foretold, abs=3 * spread), name


def test_rates_in_blocks_with_skewed_errors_stay_in_their_bands() -> None:
    rates = rates_of("2³ × 4 in blocks", "exponential", "")
    known = "any term of the dispersion after Holm"  # too many calls; the document says so
    assert [
        line
        for line in complaints({("2³ × 4 in blocks", "exponential", ""): rates}, COUNT)
        if not line.startswith(known)
    ] == []
    assert rates[known] < 0.25


@pytest.mark.parametrize("factors", [3, 4])
def test_two_runs_of_a_cell_in_blocks_call_no_false_dispersion(factors: int) -> None:
    rng, name = np.random.default_rng(0), "any term of the dispersion after Holm"
    plan = Plan("2³ × 2", (2,) * factors, 2, blocks=1)
    calls = 0
    for _ in range(300):
        found = estimate(fit_response(simulated(plan, "normal", rng)[0]))
        assert found is not None
        calls += any((effect.p_holm or 1.0) < 0.05 for effect in found.effects)
    assert complaints({(plan.name, "normal", ""): {name: calls / 300}}, 300) == []


def test_a_rate_that_is_off_is_told() -> None:
    off = {"any inert term after Holm": 0.20, "interval of an effect": 0.78, "A after Holm": 0.01}
    lines = complaints({("2³ × 2", "normal", ""): off}, COUNT)
    assert [line.partition(",")[0] for line in lines] == list(off)
    fine = {"any inert term after Holm": 0.0, "interval of an effect": 1.0, "A after Holm": 0.5}
    assert complaints({("2³ × 2", "normal", ""): fine}, COUNT) == []
    blind = {("2⁴ × 3, 6 missing", "normal", "spread"): {"check: equal variance": 0.0}}
    assert len(complaints(blind, COUNT)) == 1


def test_the_document_has_every_rate_for_every_kind_of_error() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    part = text[text.index("<!-- calibration -->") : text.index("<!-- end of power -->")]
    assert all(f"| {name} |" in part for name in (*RATES, *POWERS))
    assert all(f" {draw} |" in part for draw in ERRORS)


HOLDS_FOR_CERTAIN, LOOKS, STREAMS = "bounds", "(stopping.md#error-rates)", "| seeds | design |"
SURFACES, GOALS = "confidence region", "bootstrap interval of D"
PRINTED = {
    "effects_table ci_low": "interval of an effect",
    "effects_table p": "p of an inert term",
    "effects_table p_holm": "any inert term after Holm",
    "effects_table p_bh": "share of false ones among terms called after BH",
    "scales_table p_holm": "any inert term after Holm",
    "scales_table ratio_low": "two scales: interval of a ratio",
    "scales_table log_p_holm": "two scales: any inert term after Holm, log",
    "anova_table p": "p of an inert term",
    "anova_table p_random": "p of an inert term, blocks as random",
    "anova_table p_holm": "any inert term after Holm",
    "anova_table p_bh": "share of false ones among terms called after BH",
    "parts_table ci_low": "linear or quadratic part",
    "parts_table p": "linear or quadratic part",
    "variation_table share_low": STREAMS,
    "variation_table variance_low": STREAMS,
    "level_means_table ci_low": "mean at a level",
    "differences_table low": "Tukey's intervals of a factor, all at once",
    "differences_table p_tukey": "any pair of levels by Tukey",
    "differences_table p": "p of a pair of levels alone",
    "best_table mcb_low": "Hsu's intervals, all at once",
    "beats_table low": STREAMS,
    "findings_table p": "check: normality",
    "robust_table p": "p of an inert term",
    "robust_table p_hc3": "HC3's p of an inert term",
    "robust_table p_permutation": "permutation p of an inert term",
    "robust_table p_maxt": "any inert term by permutation max-T",
    "robust_table p_wild": "any inert term by wild bootstrap",
    "robust_table boot_low": "wild bootstrap interval of an effect",
    "dispersion_table p": "p of a term of the dispersion",
    "dispersion_table p_holm": "any term of the dispersion after Holm",
    "rates_table p_exact": "Fisher's p that a factor loses runs",
    "rates_table p_firth": "Firth's p that a factor loses runs",
    "rates_table p_holm": "any factor after Holm loses runs",
    "pairs_table p": "Fisher's p that a pair of levels loses runs",
    "pairs_table p_holm": "any pair of levels after Holm loses runs",
    "bounds_table low": HOLDS_FOR_CERTAIN,
    "censored_table low": HOLDS_FOR_CERTAIN,
    "decision_table low": LOOKS,
    "decision_table p": LOOKS,
    "coefficients_table low": "interval of an effect",
    "coefficients_table p": "p of an inert term",
    "axes_table low": SURFACES,
    "optimum_table low": SURFACES,
    "counted_table low": "p of an inert term by counted items",
    "counted_table p": "p of an inert term by counted items",
    "counted_table p_holm": "any inert term by counted items with Holm",
    "counted_table p_bh": "p of an inert term by counted items",
    "desirability_table low": GOALS,
    "equivalence_table low": "two one-sided tests of effects",
    "equivalence_table p": "two one-sided tests of effects",
    "equivalence_table p_all": "two one-sided tests of effects",
    "covariates_table p": "p of a covariate without influence",
    "worst_ranks_table p": "p of an inert term on ranks, diverged runs last",
    "worst_ranks_table p_holm": "any inert term on ranks after Holm",
    "by_response_table p": "three responses: share of false ones after BH over all",
}
"""Columns of tables that hold a p value or the lower end of an interval -> their calibration."""
FUNCTION = re.compile(r"^def (\w+)(.*?)(?=^def |\Z)", re.MULTILINE | re.DOTALL)
COLUMN = re.compile(r'Column\(\s*"?(\w+)"?((?:[^()]|\([^()]*\))*)\)')


def test_every_p_value_and_interval_that_a_table_prints_is_calibrated() -> None:
    printed = {
        f"{function} {'p' if key == 'name' else key}"
        for file in Path(tables.__file__).parent.glob("*.py")
        for function, body in FUNCTION.findall(file.read_text(encoding="utf-8"))
        for key, rest in COLUMN.findall(body)
        if '"p"' in rest or re.search(r"(^|_)low$", key)
    }
    assert printed == set(PRINTED)
    text = DOCUMENT.read_text(encoding="utf-8")
    for rate in PRINTED.values():
        assert rate in RATES or rate in text
