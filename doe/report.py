"""From a study's directory to everything that a report shows; nothing is drawn here."""

from __future__ import annotations

import math
from pathlib import Path
from typing import NamedTuple

from doe.analysis.across import Across, across
from doe.analysis.analyze import Analysis, analyze
from doe.analysis.case import AnalysisOptions
from doe.errors import DoeError
from doe.history import Curve, learning_curves
from doe.overview import Overview, overview
from doe.paper import Cell, Paper, cells_of, group_effects, paper
from doe.responses import response_values
from doe.results import observations, study_runs
from doe.store import StudyDir
from doe.study import Study
from doe.terms import parse_term


class Report(NamedTuple):
    """A study, its analyses and its tables, as far as it has run."""

    state: Overview
    options: AnalysisOptions
    layout: Paper
    cells: tuple[Cell, ...]
    """Configurations in standard order."""
    analyses: dict[str, Analysis]
    refused: dict[str, str]
    """Response -> why there is no analysis of it."""
    across: Across | None
    group_effects: dict[str, Across]
    """Effects on each group of responses of the paper's layout."""
    curves: dict[str, dict[str, Curve]]
    values: dict[str, tuple[float | None, ...]]
    """Response -> its value in each run, in run order."""

    @property
    def study(self) -> Study:
        """The study reported on."""
        return self.state.study

    @property
    def provisional(self) -> bool:
        """Whether runs are still to come, so that every number may change."""
        return bool(self.state.counts["pending"] or self.state.counts["running"])

    @property
    def headline_responses(self) -> tuple[str, ...]:
        """Responses that a report begins with: the averages, else the first metric."""
        answers = self.study.responses
        names = tuple(answers.averages) or answers.metrics[:1]
        return tuple(name for name in names if name in self.analyses)


def gather(
    directory: Path, options: AnalysisOptions, drop: tuple[str, ...] | None = None
) -> Report:
    """Read a study and analyse every response; `drop` replaces the factors left out of effects.

    Raises
    ------
    DoeError
        If there is no study, or an option does not fit it.
    """
    state = overview(directory)
    study, answers = state.study, state.study.responses
    names = (*answers.averages, *answers.metrics, *answers.further)
    layout = paper(study)
    if drop is not None:
        for key in drop:
            parse_term(key, study.keys)
        layout = layout._replace(drop=drop)
    analyses: dict[str, Analysis] = {}
    refused: dict[str, str] = {}
    runs = study_runs(study, state.views)
    for name in names:
        try:
            analyses[name] = analyze(observations(study, state.views, runs, [name])[0], options)
        except DoeError as error:
            refused[name] = str(error)
    rows = [response_values(study, seen) for seen in state.views]
    values = {name: [row[name] for row in rows] for name in names}
    return Report(
        state=state,
        options=options,
        layout=layout,
        cells=cells_of(state.views, values),
        analyses=analyses,
        refused=refused,
        across=across(list(analyses.values())) if analyses else None,
        group_effects=group_effects(study, layout, analyses),
        curves=learning_curves(StudyDir(directory), study, state.views),
        values={name: tuple(_finite(v) for v in column) for name, column in values.items()},
    )


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
