"""The statistics against the statsmodels formula route, and their own limits."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np
import pandas as pd
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm
from statsmodels.stats.multitest import multipletests

from benchmarks import Section
from doe.analysis.analyze import core
from doe.analysis.contrasts import cell_index, estimable, names_of
from doe.analysis.fit import fit
from doe.analysis.lenth import lenth, reference, scale_estimates
from doe.analysis.robust import permutation

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


def _theirs(frame: pd.DataFrame) -> list[object]:
    """The same by statsmodels: formula, fit, intervals, adjusted p, ANOVA, and Lenth's PSE."""
    right = "C(block) + " + "*".join(f"x{key}" for key in KEYS)
    found: list[object] = []
    for i in range(RESPONSES):
        result = smf.ols(f"y{i} ~ {right}", frame).fit()
        intervals = result.conf_int()
        pse = scale_estimates(2.0 * result.params.to_numpy()[REPLICATES:])
        p = result.pvalues.to_numpy()[REPLICATES:]
        adjusted = [multipletests(p, method=method)[1] for method in ("holm", "fdr_bh")]
        table = anova_lm(result, typ=1)
        found.append((result.tvalues, intervals, adjusted, table, pse))
    return found


def _seconds(cases: dict[str, Callable[[], object]], repeats: int) -> dict[str, list[float]]:
    """Wall seconds of each case in every repeat, cases in turns so that noise hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for case in cases.values():
        case()
    for _ in range(repeats):
        for name, case in cases.items():
            start = time.perf_counter()
            case()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def run() -> list[Section]:
    """Compare with statsmodels, then time permutations and a saturated design of 2^16 runs."""
    frame, coded, block, y = _study()
    both = _seconds({"doe": lambda: _ours(coded, block, y), "sm": lambda: _theirs(frame)}, 5)
    ratio = statistics.median(a / b for a, b in zip(both["sm"], both["doe"], strict=True))
    against = Section(
        f"Effects, ANOVA and Lenth: {RESPONSES} responses, 63 terms, 256 runs in 4 blocks",
        ("route", "median", "ratio"),
        (
            ("doe.analysis", f"{1000 * statistics.median(both['doe']):.1f} ms", "1"),
            (
                "statsmodels: ols formula, fit, anova_lm",
                f"{1000 * statistics.median(both['sm']):.0f} ms",
                f"{ratio:.0f}",
            ),
        ),
        f"Aim: at least {AIM} times faster than the formula route; median ratio of turns.",
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
    seconds = _seconds({name: case for name, (case, _) in cases.items()}, 3)
    rows = tuple(
        (name, f"{statistics.median(seconds[name]):.2f} s", limit)
        for name, (_, limit) in cases.items()
    )
    return Section("Limits of the analysis", ("work", "median", "aim, at most"), rows)
