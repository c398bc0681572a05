"""How the estimates of a study under way settle, from replicate to replicate."""

from __future__ import annotations

from typing import NamedTuple

from doe.analysis.analyze import analyze
from doe.analysis.options import AnalysisOptions
from doe.errors import DoeError
from doe.results.status import Overview
from doe.results.subject import study_datasets

MOST_REPLICATES = 12


class Settling(NamedTuple):
    """A main effect by the runs of the first replicates."""

    response: str
    factor: str
    replicates: int
    effect: float
    ci_low: float | None
    ci_high: float | None


def settling(
    state: Overview, responses: tuple[str, ...], options: AnalysisOptions
) -> list[Settling]:
    """Return the main effects of two-level factors after one, two and more replicates.

    Empty of a study without a second replicate. A replicate counts once one of its runs is done.
    """
    begun = sorted({s.run.replicate for s in state.statuses if s.state == "done"})[:MOST_REPLICATES]
    if len(begun) < 2:
        return []
    rows: list[Settling] = []
    for number in begun:
        included = [s for s in state.statuses if s.run.replicate <= number]
        for data in study_datasets(state.study, included, responses).values():
            try:
                analysis = analyze(data, options)
            except DoeError:  # too few runs yet
                continue
            rows += [
                Settling(data.response, e.term, number, e.effect, e.ci_low, e.ci_high)
                for e in analysis.effects
                if e.mask.bit_count() == 1
            ]
    return rows
