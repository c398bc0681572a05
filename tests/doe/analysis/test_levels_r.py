"""Factors with levels against R 4: aov, car::Anova, emmeans, TukeyHSD, car::vif, lme4."""

from __future__ import annotations

from typing import Any

import pytest
from level_tables import ANSWERS, case_of_r, fitted

from doe.analysis.analyze import Analysis, analyze
from doe.analysis.anova import AnovaRow, anova_rows, sums_of_squares
from doe.analysis.estimators.robust import hc3
from doe.analysis.fit import Fit
from doe.analysis.means import LevelMean, level_differences, level_means, term_means
from doe.analysis.model import CURVATURE
from doe.analysis.options import AnalysisOptions
from doe.analysis.random_blocks import random_blocks
from doe.terms import parse_term


def close(value: float | None, expected: float | None) -> bool:
    """Equal to 1e-8, relative, or absolute below one; None where R has none."""
    if value is None or expected is None:
        return value is None and expected is None
    return value == pytest.approx(expected, rel=1e-8, abs=1e-10)


def analysis_of(name: str, **options: Any) -> tuple[dict[str, Any], Analysis]:
    case, observed = case_of_r(name)
    terms = tuple(case["terms"]) if "terms" in case else None
    error = "residual" if pooled(case) else "pure"
    given = {"permutations": 0} | options
    return case, analyze(observed, AnalysisOptions(terms=terms, error=error, robust=True, **given))


def pooled(case: dict[str, Any]) -> bool:
    """Whether R tests against the residual; its models give centre runs a mean of their own."""
    return "centre" not in case


def fit_of(name: str) -> tuple[dict[str, Any], Fit]:
    case, observed = case_of_r(name)
    return case, fitted(observed, case.get("terms"), pooled=pooled(case))


def check_rows(
    rows: tuple[AnovaRow, ...], expected: list[dict[str, Any]], with_block: bool
) -> None:
    known = {row.source.replace(":", ""): row for row in rows}
    words = {"block": "Block", "centre": "Curvature", "Residuals": "Error"}
    for line in expected:
        row = known.pop(words.get(line["source"], line["source"].replace(":", "")))
        if row.source == "Block" and not with_block:
            continue
        assert row.df == line["df"], row
        assert close(row.ss, line["ss"]), row
        if row.source != "Block":  # blocks are not tested
            assert close(row.f, line["f"]), row
            assert close(row.p, line["p"]), row
    assert set(known) <= {"Total"}


TABLES = {"I": "aov", "II": "type2", "III": "type3"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [(name, kind) for name in sorted(ANSWERS) for kind in TABLES if TABLES[kind] in ANSWERS[name]],
)
def test_analysis_of_variance(name: str, kind: str) -> None:
    case, fit = fit_of(name)
    assert fit.df_residual == case["df"]
    assert close(fit.sigma, case["sigma"])
    check_rows(
        anova_rows(fit, sums_of_squares(fit, kind)), case[TABLES[kind]], with_block=kind == "I"
    )


def test_types_two_and_three_stand_in_the_analysis() -> None:
    for name in ("missing", "excluded", "unequal"):
        case, found = analysis_of(name)
        assert found.anova.kind == "III"
        assert not found.anova.balanced
        check_rows(found.anova.rows, case["type3"], with_block=False)
        assert found.anova.type2 is not None
        check_rows(found.anova.type2, case["type2"], with_block=False)
    for name in ("two_by_three", "blocks"):
        case, found = analysis_of(name)
        assert found.anova.balanced
        assert found.anova.type2 is None


def test_summary_figures() -> None:
    case, found = analysis_of("two_by_three")
    for figure in ("r2", "r2_adjusted", "r2_predicted"):
        assert close(getattr(found.anova, figure), case[figure])


@pytest.mark.parametrize("name", [name for name in sorted(ANSWERS) if "means" in ANSWERS[name]])
def test_level_means(name: str) -> None:
    case, fit = fit_of(name)
    keys = fit.runs.keys
    for term, lines in case["means"].items():
        mask = parse_term(term, keys)
        found = {mean.level: mean for mean in term_means(fit, mask)}
        if mask.bit_count() == 1:
            assert tuple(found.values()) == level_means(fit, mask.bit_length() - 1)
        for line in lines:
            mean: LevelMean = found.pop(line["level"])
            assert mean.cells == mean.of
            assert close(mean.mean, line["mean"])
            assert close(mean.se, line["se"])
            assert close(mean.ci_low, line["low"])
            assert close(mean.ci_high, line["high"])
        assert not found


@pytest.mark.parametrize("name", [name for name in sorted(ANSWERS) if "pairs" in ANSWERS[name]])
def test_differences_of_levels(name: str) -> None:
    case, fit = fit_of(name)
    for key, lines in case["pairs"].items():
        pairs = level_differences(fit, fit.runs.keys.index(key))
        found = {f"{pair.level} - {pair.other}": pair for pair in pairs}
        for line in lines:
            text = line["pair"].replace("(", "").replace(")", "").replace("lr", "")
            pair = found.pop(text)
            assert close(pair.difference, line["d"])
            assert close(pair.se, line["se"])
            assert close(pair.t, line["t"])
            assert pair.p_tukey == pytest.approx(line["p"], rel=1e-8, abs=2e-8)  # of ptukey
            assert pair.ci_low == pytest.approx(line["low"], rel=1e-8, abs=1e-8)
            assert pair.ci_high == pytest.approx(line["high"], rel=1e-8, abs=1e-8)
        assert not found


def test_tukey_of_a_balanced_factor() -> None:
    case, fit = fit_of("two_by_three")
    found = {f"{p.level}-{p.other}": p for p in level_differences(fit, 1)}
    for line in case["tukey"]:
        assert close(found[line["pair"]].difference, line["d"])
        assert found[line["pair"]].p_tukey == pytest.approx(line["p"], abs=1e-8)


def test_empty_cells_leave_the_means_of_cells_that_ran() -> None:
    case, fit = fit_of("empty")
    expected = {line["what"]: line for line in case["shared"]}
    for mean, cells in zip(level_means(fit, 0), (5, 6, 5), strict=True):
        assert (mean.cells, mean.of) == (cells, 6)
        assert close(mean.mean, expected[mean.level]["value"])
        assert close(mean.se, expected[mean.level]["se"])
    for pair, cells in zip(level_differences(fit, 0), (5, 4, 5), strict=True):
        line = expected[f"{pair.level} - {pair.other}"]
        assert (pair.cells, pair.of) == (cells, 6)
        assert close(pair.difference, line["value"])
        assert close(pair.se, line["se"])


@pytest.mark.parametrize("name", ["two_by_three", "missing", "unequal"])
def test_hc3(name: str) -> None:
    case, fit = fit_of(name)
    found = hc3(fit)
    if case["hc3"] is None:  # a run decides its own fit
        assert found == {}
        return
    by_name = {fit.model.name(mask).replace(":", ""): p for mask, p in found.items()}
    skipped = {"A"} if name == "two_by_three" else set()  # equal leverage: the t test itself
    for line in case["hc3"]:
        if line["source"] not in ("Residuals", "block", *skipped):
            assert close(by_name[line["source"].replace(":", "")], line["p"])
    assert not skipped & set(by_name)


@pytest.mark.parametrize("name", [name for name in sorted(ANSWERS) if "vif" in ANSWERS[name]])
def test_variance_inflation(name: str) -> None:
    case, found = analysis_of(name)
    expected = {k.replace(":", ""): v for k, v in case["vif"].items()}
    assert {plan.term.replace(":", "") for plan in found.design.terms} == set(expected) - {"block"}
    for plan in found.design.terms:
        assert close(plan.gvif, expected[plan.term.replace(":", "")])


@pytest.mark.parametrize("name", ["excluded", "unequal"])
def test_parts_of_a_numeric_factor(name: str) -> None:
    case, found = analysis_of(name)
    lines = case["parts"]["lr"]
    by_part = {part.part: part for part in found.parts if part.factor == "lr"}
    for part, line in zip(("linear", "quadratic"), lines, strict=False):
        assert close(by_part[part].f, line["t"] ** 2)
        assert close(by_part[part].p, line["p"])
    if len(lines) == 3:  # one degree is left, the cubic one
        assert close(by_part["rest"].p, lines[2]["p"])
        assert by_part["rest"].df == 1


@pytest.mark.parametrize("name", ["centre", "centre_blocks"])
def test_curvature(name: str) -> None:
    case, found = analysis_of(name)
    assert found.curvature is not None
    line = case["curvature"]
    assert close(found.curvature.difference, line["d"])
    assert close(found.curvature.se, line["se"])
    assert close(found.curvature.t, line["t"])
    assert close(found.curvature.p, line["p"])
    _, fit = fit_of(name)
    assert fit.model.df(CURVATURE) == 1


def test_lack_of_fit_against_pure_error() -> None:
    case, observed = case_of_r("additive")
    found = analyze(observed, AnalysisOptions(terms=("A", "B")))
    rows = {row.source: row for row in found.anova.rows}
    assert rows["Lack of fit"].df == case["lack"]["df"]
    for figure in ("ss", "f", "p"):
        assert close(getattr(rows["Lack of fit"], figure), case["lack"][figure])
    assert rows["Error"].df == case["pure"]["df"] == found.df_error
    assert close(rows["Error"].ss, case["pure"]["ss"])


@pytest.mark.parametrize("name", ["blocks", "unequal"])
def test_random_blocks(name: str) -> None:
    case, fit = fit_of(name)
    found = random_blocks(fit, 0.05)
    assert found is not None
    block, error = case["random"]["variances"]
    assert found.variance_block == pytest.approx(block, rel=1e-6)  # lme4 stops there
    assert found.variance_error == pytest.approx(error, rel=1e-6)
    if name == "blocks":  # where blocks are complete, Wald's F is Kenward and Roger's
        expected = {k.replace(":", ""): v for k, v in case["random"]["f"].items()}
        for term in found.terms:
            assert term.f == pytest.approx(expected[term.term.replace(":", "")], rel=1e-6)
            assert term.df_error == pytest.approx(fit.df_residual)


def test_the_half_normal_contrasts_add_up_to_the_sequential_sums() -> None:
    for name in sorted(ANSWERS):
        case, fit = fit_of(name)
        found = analysis_of(name)[1].half_normal
        sums: dict[str, float] = {}
        for contrast in found.contrasts:
            square = contrast.value**2 * fit.n / 4.0
            sums[contrast.term] = sums.get(contrast.term, 0.0) + square
        rows = {row.source: row.ss for row in anova_rows(fit, sums_of_squares(fit, "I"))}
        assert sums
        assert set(sums) <= set(rows), name
        if name.startswith("centre"):  # its contrasts are effects, which corners alone estimate
            continue
        assert all(close(sums[term], rows[term]) for term in sums), name
        for line in case.get("aov", []):
            if line["source"].replace(":", "") in sums:
                assert close(sums[line["source"].replace(":", "")], line["ss"])
