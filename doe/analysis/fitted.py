"""One response with its fitted model: what every further analysis starts from."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import Dataset, Runs
from doe.analysis.effects import Effect, TermTest
from doe.analysis.fit import Fit, refitted
from doe.analysis.model import make_model
from doe.analysis.options import AnalysisOptions
from doe.analysis.pvalues import significant
from doe.analysis.transform import Transformation
from doe.terms import contains


@dataclass(frozen=True)
class FittedResponse:
    """One response, its model and the tests of its terms."""

    data: Dataset  # all runs that were planned
    fit: Fit  # of those with a value, on the analysed scale
    effects: tuple[Effect, ...]  # of the terms of two-level factors that are shown
    tests: tuple[TermTest, ...]  # of all terms that are shown
    transform: Transformation
    options: AnalysisOptions

    @property
    def runs(self) -> Runs:
        """All runs that were planned."""
        return self.data.runs

    @property
    def observed_runs(self) -> Ints:
        """Numbers of the runs with a value, in the order of `fit`."""
        return self.fit.observed_runs

    @property
    def keys(self) -> tuple[str, ...]:
        """Factor keys."""
        return self.runs.keys

    @property
    def alpha(self) -> float:
        """Level of tests and intervals."""
        return self.options.alpha

    @property
    def goal(self) -> str | None:
        """Better direction: min, max, or None if unknown."""
        return self.data.goal

    @cached_property
    def active(self) -> frozenset[int]:
        """Terms that are significant at false discovery rate α; of exact runs all that differ."""
        if self.fit.exact:
            return frozenset(test.mask for test in self.tests if test.ss > 0)
        return frozenset(t.mask for t in self.tests if significant(t.p_bh, self.alpha))

    @cached_property
    def reduced(self) -> Fit:
        """The active terms and all their parts, fitted again.

        Strong heredity: a term stays only with every term that it contains, which keeps the
        model's predictions independent of how levels are coded.
        """
        terms = self.fit.model.terms
        active = self.active
        wanted = [t for t in terms if t in active or any(contains(a, t) for a in active)]
        return refitted(
            self.fit, model=make_model(self.fit.runs, wanted, curved=not self.fit.pooled)
        )

    @property
    def y(self) -> Floats:
        """The response of all planned runs on the analysed scale; NaN where there is none."""
        y = np.full(self.runs.count, np.nan)
        y[self.observed_runs] = self.fit.y
        return y

    @property
    def observed(self) -> Floats:
        """Values of the runs that have one, on the scale of the response."""
        return self.data.y[self.observed_runs]

    def uncut(self, u: Floats) -> Floats:
        """Take values of u to the scale of the response."""
        return np.asarray(self.transform.scale.back(self.fit.shift + self.fit.unit * u))

    def back(self, u: Floats) -> Floats:
        """Take values of u to the scale of the response, cut where it cannot be."""
        return self.transform.to_response(self.fit.shift + self.fit.unit * u, self.fit.y)
