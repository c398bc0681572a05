"""What stopping when it is decided saves: the reference study replayed, and simulated studies."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

import doe
from benchmarks import Section
from doe.analysis.sequential import DRAWS, FIRST_LOOK, Rule, Start, critical, futures
from doe.results.dataset import scan_study
from doe.results.decision import decision
from doe.study.values import Stopping
from doe.terms import terms_up_to

STUDY = Path(__file__).parents[1] / "runs" / "pit-small"
ALPHA = 0.05
POWER = 0.9
MATTERS = (1.0, 2.0, 3.0, 5.0)
"""Pixels below which an effect is not worth knowing, in the replay."""


# A study that has run, replayed -------------------------------------------------------------------


class Replay(NamedTuple):
    """Where a study would have stopped, and what it would have said then."""

    decided: dict[int, int]
    """Terms decided after so many complete replicates, from the first look on."""
    terms: int
    """Terms to decide, over all responses."""
    runs: int
    """Runs at which it would have stopped; all of them where some term stays open."""
    open: tuple[str, ...]
    """Terms that are open then."""
    effects: tuple[str, ...]
    """Terms that it calls an effect then."""
    lacking: tuple[str, ...]
    """Terms that it does not call an effect then, while the analysis of all runs does."""
    denied: tuple[str, ...]
    """Terms that it calls an effect then, while the analysis of all runs does not."""


def replay(directory: Path, responses: Sequence[str], matters: float) -> Replay:
    """Replay a complete study in its order as if run with ``--until decided``.

    It is looked at after each replicate from the second on, at most as many as it has. Main effects
    and two-factor interactions of all `responses` together are the family that is to be decided;
    below `matters`, in the unit of the responses, an effect is not worth knowing. The analysis of
    all runs is that of ``doe analyze``, which calls what has Holm's p below alpha. Terms go by
    their names, with the response before them where there are several.
    """
    study, statuses = scan_study(directory)
    most = max(status.run.replicate for status in statuses)
    answers = replace(study.responses, matters=dict.fromkeys(responses, matters))
    rule = Stopping(most, responses=tuple(responses))
    reached = decision(replace(study, responses=answers, stopping=rule), statuses)
    assert reached is not None

    def named(response: str, term: str) -> str:
        return term if len(responses) == 1 else f"{response} {term}"

    at = {named(t.response, t.term): t.state.decided_at or math.inf for t in reached.terms}
    end = int(min(max(at.values()), most))
    calls = {named(t.response, t.term) for t in reached.terms if t.state.verdict == "effect"}
    effects = tuple(name for name in at if name in calls and at[name] <= end)
    whole = [
        named(response, effect.term)
        for response in responses
        for effect in doe.analyze(directory, response).analysis.effects
        if effect.p_holm is not None and effect.p_holm < ALPHA
    ]
    return Replay(
        decided={n: sum(when <= n for when in at.values()) for n in range(FIRST_LOOK, most + 1)},
        terms=len(at),
        runs=end * reached.runs_each,
        open=tuple(name for name, when in at.items() if when > end),
        effects=effects,
        lacking=tuple(name for name in at if name in whole and name not in effects),
        denied=tuple(name for name in effects if name not in whole),
    )


def replay_section() -> Section:
    """The reference study in its order, response by response."""
    rows = []
    for response in ("enc_avg", "dec_avg"):
        for matters in MATTERS:
            stop = replay(STUDY, [response], matters)
            rows.append(
                (
                    *(response, f"{matters:g} px"),
                    " / ".join(map(str, stop.decided.values())),
                    f"{stop.runs}" + (", some open" if stop.open else ""),
                    *(", ".join(terms) or "–" for terms in stop[-3:]),
                )
            )
    return Section(
        "The reference study replayed in its order",
        ("response", "matters", "decided", "runs", "effects by then", "more in all", "not in all"),
        tuple(rows),
        "21 main effects and two-factor interactions of each response, looks after 2, 3 and 4 "
        "replicates of 64 runs, beside the analysis of all runs (Holm's p below 0.05).",
    )


# Simulated studies --------------------------------------------------------------------------------


def _truth(rng: np.random.Generator, terms: int, matters: float) -> np.ndarray:
    """True effects of many studies: half of the terms inert, the others 1 to 4 times `matters`."""
    size = rng.uniform(1.0, 4.0, (DRAWS, terms)) * matters
    return size * rng.choice([-1.0, 1.0], size.shape) * (rng.random(size.shape) < 0.5)


def fixed_power(truth: np.ndarray, sigma: float, cells: int, n: int, matters: float) -> float:
    """Chance that one look after n replicates decides every term."""
    rng = np.random.default_rng(1)
    df, terms = (cells - 1) * (n - 1), truth.shape[1]
    variance = sigma**2 * rng.chisquare(df, (DRAWS, 1)) / df
    estimate = truth + 2.0 * sigma / math.sqrt(n * cells) * rng.standard_normal(truth.shape)
    reach = critical(ALPHA / terms, float(df)) * 2.0 * np.sqrt(variance / (n * cells))
    size = np.abs(estimate)
    return float(((size > reach) | (size + reach < matters)).all(axis=1).mean())


class Saved(NamedTuple):
    """A fixed and a sequential design of the same power."""

    fixed: int
    most: int
    power: tuple[float, float]
    mean: float
    """Replicates on average at the σ that both are made for."""
    mean_below: float
    """The same where σ turns out anywhere between half of that and all of it."""


def saved(factors: int, most: int, spending: str = "obrien-fleming") -> Saved:
    """Find σ for which `most` looks reach the power; compare with the fixed design that does."""
    cells, terms, matters = 1 << factors, len(terms_up_to(factors, 2)), 1.0
    truth = _truth(np.random.default_rng(0), terms, matters)
    rule = Rule(most, ALPHA, spending)

    def course(sigma: float) -> np.ndarray:
        start = Start(0, truth, sigma, np.zeros(terms, dtype=np.int64))
        return np.asarray(futures(start, cells, terms, rule, matters).all(axis=2))

    def mean(over: np.ndarray) -> float:
        return float(rule.looks[0] + (~over[:, :-1]).sum(axis=1).mean())

    low, high = 0.01, 100.0
    for _ in range(25):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if course(middle)[:, -1].mean() >= POWER else (low, middle)
    reached = course(low)
    fixed = next(n for n in range(2, 99) if fixed_power(truth, low, cells, n, matters) >= POWER)
    below = [mean(course(low * factor)) for factor in np.geomspace(0.5, 1.0, 9)]
    powers = (fixed_power(truth, low, cells, fixed, matters), float(reached[:, -1].mean()))
    return Saved(fixed, most, powers, mean(reached), float(np.mean(below)))


def savings_section() -> Section:
    """Shares of trainings saved at equal power."""
    rows = []
    for factors in (3, 4, 6):
        for most in (4, 6, 8):
            s = saved(factors, most)
            rows.append(
                (
                    f"2^{factors}",
                    *(str(s.fixed), str(s.most)),
                    f"{s.power[0]:.2f}, {s.power[1]:.2f}",
                    f"{s.mean:.1f}",
                    f"{1 - s.mean / s.fixed:.0%}",
                    f"{s.mean_below:.1f}",
                    f"{1 - s.mean_below / s.fixed:.0%}",
                )
            )
    return Section(
        "Replicates of a fixed and of a sequential design that decide every term with 90 %",
        ("design", "fixed", "at most", "power", "mean", "saved", "mean, less σ", "saved"),
        tuple(rows),
        "Half of the terms inert, the others 1 to 4 times what matters; 2000 studies a line. "
        "σ as planned, then σ between half of that and all of it, which a fixed design cannot use.",
    )


def run() -> list[Section]:
    """Replay and simulate."""
    return [replay_section(), savings_section()]
