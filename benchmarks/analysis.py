"""The statistics against the statsmodels formula route, and their own limits."""

from __future__ import annotations

import statistics
from collections.abc import Callable

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multitest import multipletests

from benchmarks import Section, median_ratio, side_by_side
from doe.analysis.anova import anova, sums_of_squares
from doe.analysis.dataset import FactorColumn, Runs
from doe.analysis.effects import half_normal_plot, term_tests, two_level_effects
from doe.analysis.estimators.robust import permutation
from doe.analysis.fit import Fit, fit
from doe.analysis.lenth import lenth, reference, scale_estimates
from doe.analysis.model import Model, make_model
from doe.terms import terms_up_to

KEYS = "ABCDEF"
RESPONSES = 17
REPLICATES = 4
AIM = 50
ALPHA = 0.05


def _study() -> tuple[pd.DataFrame, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    cells = np.tile(np.arange(64), REPLICATES)
    block = np.repeat(np.arange(REPLICATES), 64)
    index = cells[:, None] >> np.arange(6) & 1
    y = rng.normal(size=(RESPONSES, len(cells))) + 2.0 * index[:, 0] - 1.0
    frame = pd.DataFrame({f"x{key}": 2 * index[:, i] - 1 for i, key in enumerate(KEYS)})
    frame["block"] = block
    for i in range(RESPONSES):
        frame[f"y{i}"] = y[i]
    return frame, index, block, y


def _model(index: np.ndarray, block: np.ndarray | None, keys: str) -> Model:
    """The model of all terms of two-level factors."""
    factors = tuple(FactorColumn(key, key, (False, True)) for key in keys)
    return make_model(Runs(factors, index, block=block), list(terms_up_to(len(keys))))


def _answers(one: Fit) -> object:
    """Effects with tests, analysis of variance and half-normal plot of a fit."""
    plot = half_normal_plot(one, ALPHA)
    kind = one.kind
    sums = sums_of_squares(one, kind)
    tests = term_tests(one, sums, plot)
    block = None if one.block is None else "block"
    return two_level_effects(one, tests, plot, ALPHA), anova(one, kind, sums, block, ALPHA), plot


def _ours(index: np.ndarray, block: np.ndarray, y: np.ndarray) -> list[object]:
    """Effects, ANOVA and Lenth of all responses, from level numbers to frozen values."""
    model = _model(index, block, KEYS)
    return [_answers(fit(one, model)) for one in y]


def _theirs(frame: pd.DataFrame, adjust: bool) -> list[object]:
    """The same by statsmodels: formula, fit, intervals, ANOVA, Lenth's PSE, and adjusted p."""
    right = "C(block) + " + "*".join(f"x{key}" for key in KEYS)
    found: list[object] = []
    for i in range(RESPONSES):
        result = smf.ols(f"y{i} ~ {right}", frame).fit()
        intervals = result.conf_int()
        pse = scale_estimates(2.0 * result.params.to_numpy()[REPLICATES:])
        p = result.pvalues.to_numpy()[REPLICATES:]
        methods = ("holm", "fdr_bh") if adjust else ()
        adjusted = [multipletests(p, method=method)[1] for method in methods]
        table = anova_lm(result, typ=1)
        found.append((result.tvalues, intervals, adjusted, table, pse))
    return found


def run() -> list[Section]:
    """Compare with statsmodels, then time permutations and a saturated design of 2^16 runs."""
    frame, index, block, y = _study()
    seconds = side_by_side(
        {
            "doe.analysis": lambda: _ours(index, block, y),
            "statsmodels: ols formula, fit, anova_lm": lambda: _theirs(frame, adjust=False),
            "the same and multipletests (Holm, BH)": lambda: _theirs(frame, adjust=True),
        },
        5,
    )
    ours = seconds["doe.analysis"]
    rows = tuple(
        (name, f"{1000 * statistics.median(times):.1f} ms", f"{median_ratio(times, ours):.0f}")
        for name, times in seconds.items()
    )
    against = Section(
        f"Effects, ANOVA and Lenth: {RESPONSES} responses, 63 terms, 256 runs in 4 blocks",
        ("route", "median", "ratio"),
        rows,
        f"Aim: at least {AIM} times faster than the formula route. `doe.analysis` includes both "
        "adjustments of p in all cases.",
    )
    return [against, _limits(index, block, y)]


def _limits(index: np.ndarray, block: np.ndarray, y: np.ndarray) -> Section:
    one = fit(y[0], _model(index, block, KEYS))
    large = np.random.default_rng(1).normal(size=1 << 16)
    every = np.arange(1 << 16)[:, None] >> np.arange(16) & 1

    def saturated() -> object:
        return _answers(fit(large, _model(every, None, "ABCDEFGHIJKLMNOP")))

    def saturated_cold() -> object:
        reference.cache_clear()
        return saturated()

    def cold_lenth() -> object:
        reference.cache_clear()
        return lenth(2.0 * one.coef[-63:], [str(i) for i in range(63)], ALPHA)

    cases: dict[str, tuple[Callable[[], object], str]] = {
        "10,000 permutations x 63 terms, max-T": (lambda: permutation(one, 10_000, 1), "1 s"),
        "2^16 runs, 16 factors, saturated": (saturated_cold, "2 s"),
        "the same, critical values at hand": (saturated, "2 s"),
        "Lenth for 63 effects, first time": (cold_lenth, "–"),
    }
    seconds = side_by_side({name: case for name, (case, _) in cases.items()}, 3)
    rows = tuple(
        (name, f"{statistics.median(seconds[name]):.2f} s", limit)
        for name, (_, limit) in cases.items()
    )
    return Section("Limits of the analysis", ("work", "median", "aim, at most"), rows)
