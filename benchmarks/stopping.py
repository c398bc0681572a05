"""What stopping early saves: the reference study replayed, and simulated studies.

``make calibrate`` writes the tables into docs/stopping.md.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace
from scipy import special

import doe
from benchmarks import STOPPING, write_table
from benchmarks.looks import (
    ALPHA,
    ERRORS,
    MATTERS,
    SCALES,
    Plan,
    Solved,
    batch_looks,
    effects,
    in_parts,
    judged,
    measured,
    wholes,
)
from doe.analysis.contrasts import sign_columns
from doe.analysis.sequential import EARLY_ORDER, LEAST_DF, Start, critical, futures
from doe.analysis.spending import SHAPES
from doe.analysis.within import MISFIT, effective_pairs
from doe.design.runs import portions_per_replicate, split_words
from doe.results.dataset import scan_study
from doe.results.decision import decision
from doe.study.values import Stopping
from doe.terms import terms_up_to

STUDY = Path(__file__).parents[1] / "runs" / "pit-small"
POWER = 0.9
PIXELS = (1.0, 2.0, 3.0, 5.0)
"""Pixels below which an effect is not worth knowing, in the replay."""
RULES = {
    "replicates, O'Brien–Fleming": Stopping(2, spending="obrien-fleming", rule=1),
    **{f"parts, {shape}": Stopping(2, spending=shape) for shape in SHAPES},  # type: ignore[arg-type]
}


Rows = list[tuple[str, ...]]


def markdown(columns: tuple[str, ...], rows: Rows) -> str:
    """A table of a document."""
    lines = [columns, ("---",) * len(columns), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


# A study that has run, replayed -------------------------------------------------------------------


class Replay(NamedTuple):
    """Where a study would have stopped, and what it would have said then."""

    decided: dict[float, int]
    """Terms decided after so many complete replicates, at each look."""
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


def replay(
    directory: Path, responses: Sequence[str], matters: float, rule: Stopping | None = None
) -> Replay:
    """Replay a complete study as if run with ``--until decided`` and so many replicates at most.

    It is looked at as `rule` says, futility aside. Main effects
    and two-factor interactions of all `responses` together are the family that is to be decided;
    below `matters`, in the unit of the responses, an effect is not worth knowing. The analysis of
    all runs is that of ``doe analyze``, which calls what has Holm's p below alpha. Terms go by
    their names, with the response before them where there are several.
    """
    study, statuses = scan_study(directory)
    most = max(status.run.replicate for status in statuses)
    answers = replace(study.responses, matters=dict.fromkeys(responses, matters))
    rule = replace(
        rule or Stopping(2), max_replicates=most, responses=tuple(responses), futility=0.0
    )
    study = replace(study, responses=answers, stopping=rule)
    reached = decision(study, statuses)
    assert reached is not None
    each = portions_per_replicate(study)
    looks = [n / each for n in range(round(reached.first * each), most * each + 1)]

    def named(response: str, term: str) -> str:
        return term if len(responses) == 1 else f"{response} {term}"

    at = {named(t.response, t.term): t.state.decided_at or math.inf for t in reached.terms}
    end = min(max(at.values()), most)
    calls = {named(t.response, t.term) for t in reached.terms if t.state.verdict == "effect"}
    effects = tuple(name for name in at if name in calls and at[name] <= end)
    whole = [
        named(response, effect.term)
        for response in responses
        for effect in doe.analyze(directory, response).analysis.effects
        if effect.p_holm is not None and effect.p_holm < ALPHA
    ]
    return Replay(
        decided={n: sum(when <= n for when in at.values()) for n in looks},
        terms=len(at),
        runs=round(end * reached.runs_each),
        open=tuple(name for name, when in at.items() if when > end),
        effects=effects,
        lacking=tuple(name for name in at if name in whole and name not in effects),
        denied=tuple(name for name in effects if name not in whole),
    )


def replay_table() -> str:
    """The reference study in its order, response by response."""
    rows: Rows = []
    cases = itertools.product(("enc_avg", "dec_avg"), PIXELS, RULES.items())
    for response, matters, (name, rule) in cases:
        stop = replay(STUDY, [response], matters, rule)
        still = f", {len(stop.open)} open" if stop.open else ""
        terms = (", ".join(names) or "–" for names in stop[-3:])
        rows.append((response, f"{matters:g} px", name, f"{stop.runs}{still}", *terms))
    columns = ("response", "matters", "rule", "runs", "effects by then", "more in all")
    return markdown((*columns, "not in all"), rows)


def close_replay_table() -> str:
    """When the reference study would have known a configuration close to the best."""
    rows: Rows = []
    for response in ("enc_avg", "dec_avg"):
        best = doe.analyze(STUDY, response).analysis.best
        assert best is not None
        means = {cell.config: cell.mean for cell in best.cells}
        for within in PIXELS:
            study, statuses = scan_study(STUDY)
            rule = Stopping(4, responses=(response,), within=within)
            reached = decision(replace(study, stopping=rule), statuses)
            assert reached is not None
            (close,) = reached.close
            runs = round(close.replicates * reached.runs_each)
            away = means[close.config] - best.cells[0].mean
            claim = (close.config, f"{close.gap:.2f} px", f"{away:.2f} px")
            known = f"{runs}" if close.is_known else f"{runs}, not known"
            rows.append((response, f"{within:g} px", known, *claim))
    columns = (
        "response",
        "within",
        "runs",
        "configuration",
        "bound",
        "mean of all runs above best",
    )
    return markdown(columns, rows)


# Simulated studies --------------------------------------------------------------------------------

SHARES = np.geomspace(0.5, 1.0, 5)
"""σ over what the study was planned for, where that was too large."""
LINES = ((3, 0, 8), (4, 0, 8), (6, 0, 4), (6, 6, 4), (6, 3, 4))
"""Factors, named terms (0 for main effects and two-factor interactions), replicates at most."""


def fixed_runs(factors: int, named: int, sigma: float, *, two_sided: bool) -> int:
    """Runs, in parts of replicates, of which one look decides every term with the power."""
    columns = len(terms_up_to(factors, 2))
    terms, part = named or columns, in_parts(factors, 2).size
    truth = effects(np.random.default_rng(0), "bench", (terms, 4000))
    for runs in range(part, 1000 * part, part):
        df = runs - columns - math.ceil(runs / (1 << factors))
        if df < LEAST_DF:
            continue
        rng = np.random.default_rng(1)
        se = 2.0 * sigma * np.sqrt(rng.chisquare(df, 4000) / df / runs)
        size = np.abs(truth + 2.0 * sigma / math.sqrt(runs) * rng.standard_normal(truth.shape))
        wide = critical(ALPHA / terms, float(df))
        narrow = wide if two_sided else critical(2.0 * ALPHA / terms, float(df))
        if ((size > wide * se) | (size + narrow * se < MATTERS)).all(axis=0).mean() >= POWER:
            return runs
    raise AssertionError("no design has the power")


class Saved(NamedTuple):
    """A fixed and a sequential design of the same power, in runs."""

    sigma: float
    fixed: tuple[int, int]
    """With one interval for both verdicts, and with two one-sided tests."""
    mean: dict[str, tuple[float, float]]
    """Kind of effects -> mean runs at the σ planned for, and between half of that and all."""
    errors: tuple[float, float]
    """Largest shares of studies with a false effect, and with a false negligible."""
    decided: float
    """Share of studies with effects between 0 and what matters that decide all."""


def saved(plan: Plan, named: int, count: int) -> Saved:
    """Find σ for which a plan decides all with the power; compare with the fixed design."""
    low, high = 0.05, 20.0
    for _ in range(13):
        sigma = math.sqrt(low * high)
        power = measured(plan, "normal", "bench", sigma, count, 1, named).decided
        low, high = (sigma, high) if power >= POWER else (low, sigma)
    fixed = [fixed_runs(plan.factors, named, low, two_sided=both) for both in (True, False)]
    mean, rates = {}, []
    for kind in ("bench", "between"):
        by_share = [measured(plan, "normal", kind, low * s, count, 3, named) for s in SHARES]
        mean[kind] = by_share[-1].runs, float(np.mean([r.runs for r in by_share]))
        rates += by_share
    errors = max(r.effect for r in rates), max(r.negligible for r in rates)
    return Saved(low, (fixed[0], fixed[1]), mean, errors, rates[-1].decided)


def savings_table(count: int = 1500) -> str:
    """Shares of trainings saved at equal power."""
    rows: Rows = []
    for factors, named, most in LINES:
        rules = {"replicates, O'Brien–Fleming": wholes(factors, most)}
        rules |= {f"parts, {shape}": in_parts(factors, most, shape) for shape in SHAPES}
        for name, plan in rules.items():
            s = saved(plan, named, count)
            means = (*s.mean["bench"], *s.mean["between"])
            design = f"2^{factors}, {named or len(plan.masks)} terms, at most {most}"
            rows.append(
                (
                    *(design, name, f"{s.fixed[0]}, {s.fixed[1]}"),
                    *(f"{mean:.0f}, {1 - mean / s.fixed[0]:.0%}" for mean in means),
                    f"{s.decided:.0%}",
                    f"{s.errors[0]:.1%}, {s.errors[1]:.1%}",
                )
            )
    columns = ("design", "looks", "fixed", "mean, saved", "less σ", "between", "between, less σ")
    return markdown((*columns, "decided", "errors"), rows)


# Futility ---------------------------------------------------------------------------------------


class Ended(NamedTuple):
    """How studies end, means: runs, and terms that are decided by then."""

    runs: float
    terms: float


def futile_ends(plan: Plan, kind: str, sigma: float, count: int) -> tuple[Ended, Ended]:
    """Studies without and with the stop where no open term has a fair chance."""
    rng, (cell, _) = np.random.default_rng(5), plan.runs
    m, rule = len(plan.masks), plan.rule
    truth = effects(rng, kind, (m, count))
    y = plan.columns @ truth / 2.0 + sigma * rng.standard_normal((len(cell), count))
    looks = list(batch_looks(plan, y))
    verdicts = judged(plan, iter(looks), m, truth.shape)
    at = verdicts.effect + verdicts.negligible
    all_at = np.where((at > 0).all(axis=0), at.max(axis=0), rule.portions)
    ends = all_at.copy()
    for study in range(count):
        for look in looks:
            if look.n >= ends[study]:
                break
            done = (at[:, study] > 0) & (at[:, study] <= look.n)
            noise = look.se[0, study] / 2.0 * math.sqrt(look.n * plan.size)
            known = (np.array([noise]), np.array([MATTERS]), done[None])
            start = Start(look.n, look.effect[None, :, study], *known, m)
            chance = futures(start, plan.size, m, rule)[:, -1, 0].mean(axis=0)
            if chance[~done].max() < Stopping(2).futility:
                ends[study] = look.n
    return tuple(  # type: ignore[return-value]
        Ended(float(end.mean() * plan.size), float(((at > 0) & (at <= end)).mean()))
        for end in (all_at, ends)
    )


def futility_table(count: int = 500) -> str:
    """What giving up saves, and what it costs."""
    rows: Rows = []
    for factors, most, sigma in ((4, 8, 1.11), (4, 8, 1.6), (6, 4, 1.42), (6, 4, 2.0)):
        plain, stopped = futile_ends(in_parts(factors, most), "between", sigma, count)
        rows.append(
            (
                *(f"2^{factors}, at most {most}", f"{sigma:g}"),
                *(f"{e.runs:.0f}, {e.terms:.1%}" for e in (plain, stopped)),
                f"{1 - stopped.runs / plain.runs:.0%}",
            )
        )
    return markdown(("design", "σ", "runs, terms decided", "with giving up", "saved"), rows)


# Close to the best --------------------------------------------------------------------------------


class Claims(NamedTuple):
    """Studies that look for a configuration within a distance of the best."""

    claimed: float
    false: float
    """Share of studies that claim it of a configuration farther away."""
    runs: float


DELTA = 1.0
CLOSE_CASES = ("normal", "log-normal", "t, 3 df", "A triples σ", "A and B double σ")
CLOSE_CASES += ("a fifth lost", "three factors")
CLAIMED_AT_ONCE = 100
"""Studies that lose the same runs."""


def bounds_of(plan: Plan, y: np.ndarray, lost: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Bounds of how far each configuration is from the best (configurations x studies), by looks.

    As `doe.analysis.within` has them for one study; a test compares the two.
    """
    portion = plan.runs[1]
    for n in plan.rule.looks:
        rows = np.flatnonzero((portion <= n) & ~lost)
        blocks = (portion[rows, None] == np.arange(1, n + 1)).astype(float)
        solved = Solved(plan, n, lost)
        if not solved.possible:
            continue
        pure, values = solved.pure[0], y[rows]
        repeated = ((values - pure @ (pure.T @ values)) ** 2).sum(axis=0)
        bounds = np.full((1 << plan.factors, y.shape[1]), np.inf)
        left = np.ones(y.shape[1], bool)
        for order in range(EARLY_ORDER, plan.factors + 1):
            full = ModelAt(plan, rows, blocks, order)
            squares = full.squares(values)
            free, lack = len(rows) - full.X.shape[1], pure.shape[1] - full.X.shape[1]
            settled = left.copy()
            if not plan.rule.is_early(n) and lack > 0:
                f = (squares - repeated) / lack / (repeated / (len(rows) - pure.shape[1]))
                settled &= special.fdtrc(lack, len(rows) - pure.shape[1], f) >= MISFIT
            if order == plan.factors:
                settled = left.copy()
            if free >= LEAST_DF:
                bounds[:, settled] = full.bounds(
                    values[:, settled], np.sqrt(squares[settled] / free), free, n
                )
            left &= ~settled
            if not left.any():
                break
        yield n, bounds


class ModelAt:
    """The means of all configurations by terms up to an order, at some runs."""

    def __init__(self, plan: Plan, rows: np.ndarray, blocks: np.ndarray, order: int) -> None:
        hidden = split_words(plan.factors) if plan.rule.per_replicate > 1 else ()
        group = {*hidden, *(a ^ b for a in hidden for b in hidden)}
        terms = [term for term in terms_up_to(plan.factors, order) if term not in group]
        self.every = sign_columns(np.arange(1 << plan.factors), terms)
        self.X = np.column_stack([blocks, self.every[plan.runs[0][rows]]])
        self.Q, self.R = np.linalg.qr(self.X)
        self.rule = plan.rule

    def squares(self, values: np.ndarray) -> np.ndarray:
        """Sums of squares about the model (runs x studies)."""
        return np.asarray(((values - self.Q @ (self.Q.T @ values)) ** 2).sum(axis=0))

    def bounds(self, values: np.ndarray, sigma: np.ndarray, free: int, n: int) -> np.ndarray:
        """``max_c (m_c - m_s + t s_cs)`` of each configuration s."""
        terms = slice(self.X.shape[1] - self.every.shape[1], None)
        means = self.every @ np.linalg.solve(self.R, self.Q.T @ values)[terms]
        inverse = np.linalg.inv(self.R.T @ self.R)[terms, terms]
        covariance = self.every @ inverse @ self.every.T
        own = np.diag(covariance)
        se = np.sqrt(np.maximum(own[:, None] + own - 2.0 * covariance, 0.0))
        pairs = effective_pairs(covariance.tobytes(), len(own), self.rule.alpha)
        level = self.rule.negligible_levels(pairs)[self.rule.looks.index(n)] / 2.0
        t = -special.stdtrit(free, level)
        away = [
            (means - m + t * s[:, None] * sigma).max(axis=0) for m, s in zip(means, se, strict=True)
        ]
        return np.maximum(away, 0.0)


def claims(plan: Plan, case: str, sigma: float, count: int, seed: int, single: int = 0) -> Claims:
    """Simulate the aim; a `single` look after so many portions, 0 for all.

    Main effects are normal with standard deviation 1, interactions of two factors with half of
    that; "three factors" has such interactions as well, with a quarter.
    """
    rng = np.random.default_rng([seed, plan.factors])
    if single:
        plan = plan._replace(rule=replace(plan.rule, portions=single, first=single))
    cell, _ = plan.runs
    terms = terms_up_to(plan.factors, 3)
    sizes = (0.0, 1.0, 0.5, 0.25 * (case == "three factors"))
    scale = np.array([sizes[term.bit_count()] for term in terms])[:, None]
    every = sign_columns(np.arange(1 << plan.factors), terms)
    draw = case if case in ERRORS else "normal"
    totals, studies = np.zeros(3), 0
    while studies < count:
        mean = every @ (scale * rng.standard_normal((len(terms), CLAIMED_AT_ONCE))) / 2.0
        y = mean[cell] + sigma * ERRORS[draw](rng, cell, CLAIMED_AT_ONCE) / SCALES[draw]
        lost = rng.random(len(y)) < 0.2 * (case == "a fifth lost")
        least = np.full(mean.shape, np.inf)
        chosen, end = np.zeros((2, CLAIMED_AT_ONCE), int)
        for n, bounds in bounds_of(plan, y, lost):
            least = np.minimum(least, bounds)
            new = (end == 0) & (least.min(axis=0) <= DELTA)
            chosen[new], end[new] = least.argmin(axis=0)[new], n
        gap = mean.max(axis=0) - mean[chosen, np.arange(CLAIMED_AT_ONCE)]
        known, used = end > 0, np.where(end, end, plan.rule.portions) * plan.size
        totals += known.sum(), (known & (gap > DELTA)).sum(), used.sum()
        studies += CLAIMED_AT_ONCE
    return Claims(*(totals / studies).tolist())


def planned_for(plan: Plan) -> tuple[float, int]:
    """σ at which a study claims it with the power, and the runs of one look that does so too."""
    low, high = 0.05, 10.0
    for _ in range(8):
        sigma = math.sqrt(low * high)
        enough = claims(plan, "normal", sigma, 200, 1).claimed >= POWER
        low, high = (sigma, high) if enough else (low, sigma)
    sizes = range(plan.rule.per_replicate + 1, plan.rule.portions + 1)
    enough_runs = (n for n in sizes if claims(plan, "normal", low, 300, 2, n).claimed >= POWER)
    return low, next(enough_runs, plan.rule.portions) * plan.size


def close_row(plan: Plan, case: str, sigma: float, fixed: int, count: int) -> tuple[str, ...]:
    """One line of the table."""
    known = claims(plan, case, sigma, count, 3)
    less = [claims(plan, case, sigma * s, count // 5, 4).runs for s in SHARES]
    most = plan.rule.portions // plan.rule.per_replicate
    return (
        *(f"2^{plan.factors}, at most {most}", case, str(fixed)),
        *(f"{mean:.0f}, {1 - mean / fixed:.0%}" for mean in (known.runs, float(np.mean(less)))),
        *(f"{known.claimed:.0%}", f"{known.false:.2%}"),
    )


CLOSE_COLUMNS = ("design", "errors", "fixed", "mean, saved", "less σ", "claimed", "false")


def close_table(count: int = 600) -> str:
    """Runs until some configuration is known to be within a distance of the best."""
    rows: Rows = []
    for factors, most in ((4, 8), (6, 4)):
        plan = in_parts(factors, most)
        known = planned_for(plan)
        rows += [close_row(plan, case, *known, count) for case in CLOSE_CASES]
    return markdown(CLOSE_COLUMNS, rows)


TABLES = {
    "replay": replay_table,
    "close-replay": close_replay_table,
    "savings": savings_table,
    "futility": futility_table,
    "close": close_table,
}


def main() -> None:
    """Measure the named tables, or all, and write them into the document."""
    for name in sys.argv[1:] or TABLES:
        table = TABLES[name]()
        write_table(name, table, STOPPING)
        print(table, flush=True)


if __name__ == "__main__":
    main()
