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
from doe.analysis.analyze import core
from doe.analysis.contrasts import cell_index, estimable, names_of
from doe.analysis.estimators.robust import permutation
from doe.analysis.fit import fit
from doe.analysis.lenth import lenth, reference, scale_estimates

KEYS = "ABCDEF"
RESPONSES = 17
REPLICATES = 4
AIM = 50


def _study() -> tuple[pd.DataFrame, np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    cells = np.tile(np.arange(64), REPLICATES)
    block = np.repeat(np.arange(REPLICATES), 64)
    coded = np.array([[2 * (c >> i & 1) - 1 for i in range(6)] for c in cells])
    y = rng.normal(size=(RESPONSES, len(cells))) + coded[:, 0]
    frame = pd.DataFrame({f"x{key}": coded[:, i] for i, key in enumerate(KEYS)})
    frame["block"] = block
    for i in range(RESPONSES):
        frame[f"y{i}"] = y[i]
    return frame, coded.astype(np.int8), block, y


def _ours(coded: np.ndarray, block: np.ndarray, y: np.ndarray) -> list[object]:
    """Effects, ANOVA and Lenth of all responses, from coded levels to frozen values."""
    cells = cell_index(coded)
    model = estimable(cells, len(KEYS), len(KEYS), block)
    names = names_of(model.masks, KEYS)
    shown = [True] * len(names)
    return [
        core(fit(one, cells, len(KEYS), block, model), names, shown, "block", 0.05) for one in y
    ]


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
    frame, coded, block, y = _study()
    seconds = side_by_side(
        {
            "doe.analysis": lambda: _ours(coded, block, y),
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
    return [against, _limits(coded, block, y)]


def _limits(coded: np.ndarray, block: np.ndarray, y: np.ndarray) -> Section:
    cells = cell_index(coded)
    one = fit(y[0], cells, 6, block, estimable(cells, 6, 6, block))
    large = np.random.default_rng(1).normal(size=1 << 16)
    order = np.arange(1 << 16)
    keys = "ABCDEFGHIJKLMNOP"

    def saturated() -> object:
        model = estimable(order, 16, 16, None)
        names = names_of(model.masks, keys)
        whole = fit(large, order, 16, None, model)
        return core(whole, names, [True] * len(names), None, 0.05)

    def saturated_cold() -> object:
        reference.cache_clear()
        return saturated()

    def cold_lenth() -> object:
        reference.cache_clear()
        return lenth(2.0 * one.coef, [str(i) for i in range(63)], 0.05)

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
