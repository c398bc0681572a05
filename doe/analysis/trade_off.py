"""Several goals of one study: front, constraints, desirability, and the best of the models."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import product

import numpy as np
from msgspec import Struct

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import OFF, Runs
from doe.analysis.desirability import Desirability, desirability, score
from doe.analysis.fitted import FittedResponse
from doe.analysis.goals import (
    Candidates,
    ParetoPoint,
    WithinLimits,
    candidates,
    front_sentence,
    observed,
    pareto,
    violation,
    within_limits,
)
from doe.errors import DoeError, nearest
from doe.goals import Constraint, Desire
from doe.numbers import to_figures
from doe.terms import FACTORS, is_squared

MOST_PLACES = 8192
"""Configurations of a model among which the best is sought."""
STEPS = (41, 21, 11, 9, 7, 5, 3)
"""Values of a factor with squares, as many as there is room for."""
ROUNDS = 3
"""How often the search is repeated around the best place, with a third of the distance."""


class TradeOff(Struct, frozen=True):
    """Joint answer of several responses."""

    responses: tuple[str, ...]
    goals: tuple[str | None, ...]
    alpha: float
    pareto: tuple[ParetoPoint, ...]  # configurations that ran
    sentence: str
    within_limits: tuple[WithinLimits, ...]  # by each response without a limit; empty without any
    desirability: Desirability | None  # of those that keep the constraints


def trade_off(
    responses: Sequence[FittedResponse],
    constraints: Sequence[Constraint] = (),
    desires: Mapping[str, Desire] | None = None,
    excluded: Sequence[int] = (),
    *,
    everywhere: bool = True,
) -> TradeOff:
    """Weigh several responses of the same runs against each other.

    Parameters
    ----------
    responses
        Fits of two responses or more, each with a goal.
    excluded
        Configurations that cannot run.
    everywhere
        Whether the models may be asked about configurations without runs.

    Raises
    ------
    DoeError
        If there are fewer, one has no goal, or a constraint or desirability names none of them.
    """
    _check(responses, constraints, desires or {})
    alpha = responses[0].alpha
    ran = observed(responses)
    names = tuple(response.data.response for response in responses)
    points = pareto(ran, constraints, alpha)
    limited = {constraint.response for constraint in constraints}
    aims = [r for r in responses if r.data.response not in limited] if constraints else []
    best = []
    for aim in aims:
        best.append(within_limits(ran, constraints, aim, alpha, ran=True))
        region = _region(ran, _aim(aim, constraints), excluded) if everywhere else None
        if region is not None:
            best.append(within_limits(region, constraints, aim, alpha, ran=False))
    wanted = None
    eligible = ran.only(violation(ran, constraints) <= 0)
    if desires and len(eligible.cells):
        scored = partial(_score, desires=desires, constraints=constraints)
        region = _region(ran, scored, excluded) if everywhere else None
        wanted = desirability(eligible, region, desires, alpha)
    return TradeOff(
        responses=names,
        goals=tuple(response.goal for response in responses),
        alpha=alpha,
        pareto=points,
        sentence=front_sentence(points, names, alpha),
        within_limits=tuple(best),
        desirability=wanted,
    )


def _check(
    responses: Sequence[FittedResponse],
    constraints: Sequence[Constraint],
    desires: Mapping[str, Desire],
) -> None:
    names = [response.data.response for response in responses]
    if len(names) < 2:
        raise DoeError(
            f"got {' '.join(names) or 'no response'} alone; a trade-off is between two responses "
            "or more"
        )
    for name in (*(c.response for c in constraints), *desires):
        if name not in names:
            raise DoeError(
                f"{name!r} was not analysed{nearest(name, names)}; there are {', '.join(names)}"
            )
    if aimless := [r.data.response for r in responses if not r.goal]:
        raise DoeError(f"{aimless[0]} has no goal; give it one, min or max")


def _aim(aim: FittedResponse, constraints: Sequence[Constraint]) -> Callable[[Candidates], Floats]:
    """Score configurations by one response, those beyond a limit below all others."""
    sign = 1.0 if aim.goal == "max" else -1.0

    def scored(of: Candidates) -> Floats:
        own = sign * of.u[of.responses.index(aim)]
        beyond = violation(of, constraints)
        return np.where(beyond > 0, -1e12 * (1.0 + beyond), own)

    return scored


def _score(
    of: Candidates, desires: Mapping[str, Desire], constraints: Sequence[Constraint]
) -> Floats:
    """Score configurations by their desirability, those beyond a limit below all others."""
    beyond = violation(of, constraints)
    return np.where(beyond > 0, -beyond, score(of, desires))


# Configurations without runs ----------------------------------------------------------------------


def _region(
    ran: Candidates, scored: Callable[[Candidates], Floats], excluded: Sequence[int]
) -> Candidates | None:
    """Return the place of the models with the largest score; None where all places ran.

    Numbers with a square in some model take any value of their range, all else its levels.
    """
    runs, bent = ran.runs, _bent(ran.responses)
    others = math.prod(size for i, size in enumerate(runs.sizes) if i not in bent)
    steps = next((n for n in STEPS if n ** len(bent) * others <= MOST_PLACES), 0)
    if steps == 0 or (not bent and runs.every == len(ran.cells)):
        return None
    axes: list[Floats] = [
        np.linspace(-1.0, 1.0, steps) if i in bent else np.arange(size, dtype=np.float64)
        for i, size in enumerate(runs.sizes)
    ]
    best, width = None, 2.0 / (steps - 1)
    for _ in range(ROUNDS if bent else 1):
        places = np.array(list(product(*axes)))
        best = _best(ran, _allowed(places, runs, bent, excluded), bent, scored)
        if best is None:
            return None
        width /= 3.0
        near = width * np.arange(-2, 3)
        axes = [
            np.unique(np.clip(at + near, -1.0, 1.0)) if i in bent else np.array([at])
            for i, at in enumerate(best)
        ]
    assert best is not None
    return _at(ran, _snapped(best, runs, bent)[None, :], bent)


def _bent(responses: Sequence[FittedResponse]) -> frozenset[int]:
    """Factors with a square in some model."""
    squares = [t for r in responses for t in r.fit.model.terms if t > FACTORS]
    count = len(responses[0].runs.factors)
    return frozenset(i for i in range(count) if any(is_squared(term, i) for term in squares))


def _at(ran: Candidates, places: Floats, bent: frozenset[int]) -> Candidates:
    """Candidates at places: positions of factors with squares, numbers of the others' levels."""
    off = np.array([i in bent for i in range(places.shape[1])])
    index = np.where(off, OFF, places).astype(np.int64)
    position = np.where(off, places, 0.0) if bent else None
    runs = Runs(ran.runs.factors, index, position)
    return candidates(ran.responses, runs, runs.cells)


def _best(
    ran: Candidates,
    places: Floats,
    bent: frozenset[int],
    scored: Callable[[Candidates], Floats],
) -> Floats | None:
    """Return the place with the largest score; None where the models say nothing of any."""
    if not len(places):
        return None
    of = _at(ran, places, bent)
    if not len(of.cells):
        return None
    cell = int(of.cells[int(np.argmax(scored(of)))])
    levels = np.array(of.runs.cell_levels(cell), dtype=np.float64)
    return np.where(levels == OFF, of.runs.cell_positions(cell), levels) if bent else levels


def _allowed(places: Floats, runs: Runs, bent: frozenset[int], excluded: Sequence[int]) -> Floats:
    """Leave out places that are excluded at every level of the factors with squares."""
    if not excluded:
        return places
    gone = set(excluded)
    weights = np.cumprod([1, *runs.sizes[:-1]])
    ends = [range(size) if i in bent else (0,) for i, size in enumerate(runs.sizes)]
    added = np.array([np.dot(levels, weights) for levels in product(*ends)])
    fixed = np.array([0 if i in bent else 1 for i in range(len(runs.sizes))])
    start: Ints = (places * fixed @ weights).astype(np.int64)
    kept = [not gone.issuperset((first + added).tolist()) for first in start.tolist()]
    return np.asarray(places[np.array(kept)])


def _snapped(place: Floats, runs: Runs, bent: frozenset[int]) -> Floats:
    """Move positions to values of three figures, of whole numbers to the nearest."""
    snapped = place.copy()
    for i in bent:
        factor = runs.factors[i]
        value = factor.value_at(float(place[i]))
        whole = all(isinstance(level, int) for level in factor.levels)
        value = float(round(value)) if whole else float(to_figures(value, 3))
        snapped[i] = np.clip(factor.position_of(np.array([value]))[0], -1.0, 1.0)
    return snapped
