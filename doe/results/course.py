"""The course of a study that may stop early: what its looks decide, and what is to be expected."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from msgspec import structs

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import Dataset
from doe.analysis.fit import fit
from doe.analysis.model import default_terms, make_model
from doe.analysis.options import DEFAULTS
from doe.analysis.pvalues import none_for_nan
from doe.analysis.sequential import EARLY_ORDER, Start, TermDecision, decide, futures, looks_at
from doe.analysis.spending import Rule
from doe.analysis.transform import AS_IT_IS, FIXED_SCALES, Transformation, choose, share_of
from doe.analysis.within import CloseToBest, closest
from doe.errors import DoeError
from doe.study.values import Study
from doe.terms import terms_up_to


class Judged(NamedTuple):
    """One term of one response, with its chances of being decided."""

    response: str
    state: TermDecision
    chance: float | None
    chance_in_all: float | None


class Scaled(NamedTuple):
    """A response on the scale of the looks."""

    y: Floats
    transform: Transformation = AS_IT_IS
    middle: float = 0.0
    """Mean at the first look, at which effects are taken back."""

    def returned(self, state: TermDecision) -> TermDecision:
        """Return what is known of a term in units of the response."""
        if self.transform.name == "none":
            return state
        ends = {
            name: None if value is None else self.transform.difference(value, self.middle)
            for name in ("effect", "low", "high")
            for value in (getattr(state, name),)
        }
        return structs.replace(state, se=None, **ends)


class Course(NamedTuple):
    """A study under its rule: what its looks decide, and what is to be expected."""

    study: Study
    rule: Rule
    complete: int
    """Portions."""
    portion: Ints
    """Of each run."""

    def close_to_best(self, data: Sequence[Dataset]) -> tuple[CloseToBest, ...]:
        """Return the configuration of each response that is known to be closest to the best."""
        assert self.study.stopping is not None
        return tuple(
            closest(d, self.portion, self.rule, len(data), self.study.stopping.within) for d in data
        )

    def decided(
        self, data: Sequence[Dataset], masks: Sequence[int]
    ) -> tuple[list[Judged], float | None]:
        """Return the terms of all responses, and the replicates that are expected in the end."""
        rule, complete, family = self.rule, self.complete, len(masks) * len(data)
        runs = data[0].runs
        model = None if rule.two_sided else self._model(masks)
        scaled = [self._on_scale(d) for d in data]
        looks = [
            looks_at(own.y, runs, self.portion, rule, model) if complete in rule.looks else []
            for own in scaled
        ]
        sizes = [self.study.responses.matters_of(d.response) or 0.0 for d in data]
        matters = [
            own.transform.effect_of(size, own.middle)
            for own, size in zip(scaled, sizes, strict=True)
        ]
        states = [
            decide(own, masks, family, rule, size) for own, size in zip(looks, matters, strict=True)
        ]
        chances = np.full((2, len(data), len(masks)), np.nan)
        expected = rule.replicates(complete) if complete in rule.looks else None
        if all(looks) and complete < rule.portions:
            size = runs.count // complete
            start = Start(
                complete,
                np.array([[s.effect or 0.0 for s in own] for own in states]),
                np.array([own[-1].sigma for own in looks]),
                np.array(matters),
                np.array([[s.verdict != "open" for s in own] for own in states]),
                sum(own.df for own in looks[0][-1].terms.values()),
                np.array([[s.df for s in own] for own in states]),
                _spreads(states, [own[-1].sigma for own in looks], runs.count),
                _correlation(data, np.stack([own.y for own in scaled]), model),
            )
            future = futures(start, size, family, rule)
            chances[:] = future[:, 0].mean(axis=0), future[:, -1].mean(axis=0)
            over = np.asarray(future.all(axis=(2, 3)))
            if not start.decided.all():
                more = 1.0 + float((~over[:, :-1]).sum(axis=1).mean())
                expected = (complete + more) / rule.per_replicate
            chances[:, start.decided] = np.nan
        judged = [
            Judged(d.response, scaled[i].returned(s), *none_for_nan(chances[:, i, j]))
            for i, d in enumerate(data)
            for j, s in enumerate(states[i])
        ]
        return judged, expected

    def _on_scale(self, data: Dataset) -> Scaled:
        """Return a response on its declared scale; as it is where results find that, or have none
        there.

        The middle is that of the first look, so that no later run changes what matters there.
        """
        name = DEFAULTS.transform_of(data.scale)
        known = ~np.isnan(data.y)
        y = data.y[known]
        if name not in FIXED_SCALES or self.rule.two_sided or not len(y):
            return Scaled(data.y)
        try:
            share = share_of(y, data.unit, data.items, data.response)
            transform = choose(name, y, data.response, None, share)
        except DoeError:  # said by the analysis
            return Scaled(data.y)
        z = np.full(len(data.y), np.nan)
        z[known] = transform.scale.forward(y)
        first = known & (self.portion <= self.rule.first)
        return Scaled(z, transform, float(z[first if first.any() else known].mean()))

    def _model(self, masks: Sequence[int]) -> list[int]:
        """Main effects, two-factor interactions and the terms that are asked about."""
        k = len(self.study.keys)
        return sorted({*terms_up_to(k, min(EARLY_ORDER, k)), *masks})


def _spreads(
    states: Sequence[Sequence[TermDecision]], sigmas: Sequence[float], runs: int
) -> Floats:
    """Variance of each effect over σ² / runs; that of two levels where it is not known."""
    return np.array(
        [
            [(s.se / sigma) ** 2 * runs if s.se and sigma else 4.0 for s in own]
            for own, sigma in zip(states, sigmas, strict=True)
        ]
    )


def _correlation(data: Sequence[Dataset], y: Floats, model: Sequence[int] | None) -> Floats:
    """Correlation of the responses' residuals, over the runs with a value of each."""
    observed = np.flatnonzero(~np.isnan(y).any(axis=0))
    runs = data[0].runs.only(observed)
    terms = default_terms(runs) if model is None else model
    residuals = [fit(own[observed], make_model(runs, terms), pooled=True).residual for own in y]
    norms = [float(np.linalg.norm(r)) for r in residuals]
    if len(data) == 1 or not all(norms):
        return np.eye(len(data))
    return np.corrcoef(np.stack(residuals))
