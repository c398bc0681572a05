"""Ending hopeless runs early, replayed on the curves of the reference study: ``make calibrate``.

The rules are not part of `doe run`; docs/stopping.md says why.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy import stats

from benchmarks import STOPPING, write_table
from benchmarks.stopping import STUDY, Rows, markdown
from doe.results.curves import epoch_lines, line_responses
from doe.results.dataset import scan_study
from doe.results.responses import response_values
from doe.store.files import StudyDir

RATE, CONTROLS, FEWEST, SHUFFLES = 0.05, 0.2, 20, 40
"""Declared rate; share of runs that are never ended; finished runs that a rule needs; replays."""

Floats = np.ndarray
Rule = Callable[[Floats, Floats, float, float, float], bool]
"""Values at an epoch and at the end of finished runs, the value of this run, the limit, a rate."""


def by_regression(values: Floats, ends: Floats, now: float, limit: float, rate: float) -> bool:
    """Whether the lower prediction bound of the end, from logarithms, is beyond the limit."""
    X = np.column_stack([np.ones(len(values)), np.log(values)])
    slope = np.linalg.lstsq(X, np.log(ends), rcond=None)[0]
    spread = (np.log(ends) - X @ slope).std(ddof=2) * np.sqrt(1.0 + 1.0 / len(values))
    low = slope @ [1.0, np.log(now)] + stats.t.ppf(rate, len(values) - 2) * spread
    return bool(np.exp(low) > limit)


def by_rank(values: Floats, ends: Floats, now: float, limit: float, rate: float) -> bool:
    """Whether hardly a finished run that ended within the limit stood worse at this epoch."""
    good = np.sort(values[ends <= limit])
    rank = int(np.ceil((1.0 - rate) * (len(good) + 1)))
    return rank <= len(good) and now > good[rank - 1]


RULES: dict[str, tuple[Rule, float]] = {
    "prediction bound": (by_regression, 0.0),
    "the same, a fifth never ended": (by_regression, CONTROLS),
    "rank among good runs": (by_rank, 0.0),
}


class Replayed(NamedTuple):
    """A study with runs ended early."""

    saved: float
    """Share of epochs."""
    false: float
    """Share of the runs within δ of the best that were ended."""


def replay(curves: Floats, y: Floats, delta: float, name: str, seed: int) -> Replayed:
    """Replay the runs in their order; with a `seed` above 0 in a random one."""
    rng, (rule, controls) = np.random.default_rng(seed), RULES[name]
    order = rng.permutation(len(y)) if seed else np.arange(len(y))
    curves, y, epochs = curves[order], y[order], curves.shape[1]
    control = rng.random(len(y)) < controls
    ends = np.full(len(y), epochs)
    for i in range(len(y)):
        finished = np.flatnonzero(ends[:i] == epochs)
        known = finished[control[finished]] if controls else finished
        if len(known) < FEWEST or control[i]:
            continue
        limit = float(y[finished].min()) + delta
        rate = RATE / (epochs - 1)  # over the epochs at which it may end
        for epoch in range(epochs - 1):
            if rule(curves[known, epoch], y[known], curves[i, epoch], limit, rate):
                ends[i] = epoch + 1
                break
    good = y <= y.min() + delta
    return Replayed(1.0 - ends.mean() / epochs, float((ends[good] < epochs).mean()))


def stored(response: str) -> tuple[Floats, Floats]:
    """Best value up to each epoch of each run, in run order, and its value at the end."""
    study, statuses = scan_study(STUDY)
    lines = epoch_lines(StudyDir(STUDY), statuses)
    each = [
        [dict(line_responses(study, e))[response] for e in lines[s.run.run_id]] for s in statuses
    ]
    ends = np.array([response_values(study, status)[response] for status in statuses])
    order = np.argsort([status.run.run_order for status in statuses])
    return np.minimum.accumulate(np.array(each), axis=1)[order], ends[order]


def main() -> None:
    """Replay all rules and write the table into the document."""
    rows: Rows = []
    for response in ("enc_avg", "dec_avg"):
        curves, y = stored(response)
        for delta in (0.5, 1.0, 2.0):
            for name in RULES:
                once, *others = (replay(curves, y, delta, name, s) for s in range(SHUFFLES + 1))
                mean = np.mean(others, axis=0)
                good = int((y <= y.min() + delta).sum())
                rows.append(
                    (
                        *(response, f"{delta:g} px, {good}", name),
                        *(f"{saved:.0%}, {false:.0%}" for saved, false in (once, mean)),
                    )
                )
    columns = ("response", "δ, runs within", "rule", "in order: saved, false", "shuffled")
    write_table("hopeless", markdown(columns, rows), STOPPING)
    print(markdown(columns, rows))


if __name__ == "__main__":
    main()
