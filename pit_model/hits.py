"""One fit of all arcs of a clip: common acceleration, and hits at times between frames."""

from collections.abc import Sequence
from itertools import pairwise
from math import inf
from typing import NamedTuple

import numpy as np

from pit_model.arcs import Arc, Bools, Detections, Floats, Ints, falls, find_arcs

LEAST = 4
"""Minimum number of confirming frames once the acceleration is known."""
AGREE = 0.03
"""Relative difference of accelerations, beyond their errors, within which arcs agree."""
OUTLIER = 4.0
"""Detections farther from the fit than this many medians are excluded."""
ALONG = 0.87
"""Cosine of the angle (30°) within which a velocity jump is attributed to a level floor or a
wall."""


class Hit(NamedTuple):
    """A jump of the velocity, at a floor, a wall or a hand."""

    time: float
    """Time in frames, between two of them."""
    position: Floats
    """(2,), pixels."""
    before: Floats
    """(2,): velocity in pixels per frame."""
    after: Floats
    restitution: float | None
    """Fraction of the approach speed that remains; None if the impact was not passive."""


class Flights(NamedTuple):
    """State of the ball in the T frames of a clip; -1 or NaN where unknown."""

    arc: Ints
    """(T,): number of the arc in each frame."""
    choice: Ints
    """(T,): the confirming detection; an arc may pass through frames without one."""
    position: Floats
    """(T, 2): fitted, in pixels."""
    velocity: Floats
    """(T, 2): fitted, in pixels per frame."""
    hits: list[Hit]
    acceleration: Floats
    """(2,), pixels per frame²."""
    acceleration_error: float
    """Standard error of its magnitude."""
    scatter: float
    """Root mean square of detections about the fit along one axis, in pixels."""

    @property
    def confirmed(self) -> Bools:
        """(T,): whether a detection confirms an arc."""
        return self.choice >= 0

    @property
    def arcs(self) -> int:
        """Number of arcs."""
        return int(self.arc.max(initial=-1)) + 1

    @property
    def gravity(self) -> float:
        """Magnitude of the acceleration in pixels per frame²; NaN without an arc."""
        return float(np.linalg.norm(self.acceleration))

    @property
    def restitution(self) -> float | None:
        """Restitution over all hits by least squares, ``Σ v⁻v⁺ / Σ v⁻²``; None without any."""
        clean = [hit for hit in self.hits if hit.restitution is not None]
        speeds = np.array([_towards(hit, _normal(hit, self.acceleration)) for hit in clean])
        if not clean:
            return None
        return float(-(speeds[:, 0] * speeds[:, 1]).sum() / (speeds[:, 0] ** 2).sum())


class Chain:
    """Arcs that follow each other hit by hit: ``p₀ + v₀ s + a s²/2 + Σ Δv_k max(t − τ_k, 0)``."""

    def __init__(self, arcs: Sequence[Arc], detections: Detections, acceleration: Floats) -> None:
        self.frames: Ints = np.concatenate([arc.frames for arc in arcs])
        self.choice: Ints = np.concatenate([arc.choice for arc in arcs])
        self.time = detections.time[self.frames]
        self.points = detections.position[self.frames, self.choice]
        self.origin = float(self.time[0])
        self.ends = [detections.time[[x.frames[-1], y.frames[0]]] for x, y in pairwise(arcs)]
        self.hits = np.array([meeting(x, y)[0] for x, y in pairwise(arcs)])
        starts = [_state(arc, self.origin, acceleration) for arc in arcs]
        self.state = starts[0]  # (2, 2): position and velocity at the origin
        self.jumps = np.array([y[1] - x[1] for x, y in pairwise(starts)]).reshape(-1, 2)

    def at(self, time: Floats, acceleration: Floats) -> tuple[Floats, Floats]:
        """Return position and velocity (n, 2) at some times; at a hit, those after it."""
        s = (time - self.origin)[:, None]
        late = (time[:, None] - self.hits).clip(0)  # (n, hits)
        position = self.state[0] + self.state[1] * s + acceleration * s**2 / 2 + late @ self.jumps
        velocity = self.state[1] + acceleration * s + (time[:, None] >= self.hits) @ self.jumps
        return position, velocity

    def slopes(self) -> tuple[Floats, Floats]:
        """Return derivatives (2n, …) by state, jumps and hit times, and by the acceleration."""
        n, hits = len(self.time), len(self.hits)
        s = self.time - self.origin
        late = (self.time[:, None] - self.hits).clip(0)
        own = np.zeros((2, n, 2, 2 + hits))  # axis, time, axis, column
        shared = np.zeros((2, n, 2))
        by_time = np.zeros((2, n, hits))
        for axis in (0, 1):
            own[axis, :, axis] = np.column_stack([np.ones(n), s, late])
            shared[axis, :, axis] = s**2 / 2
            by_time[axis] = -1.0 * (late > 0) * self.jumps[:, axis]
        columns = np.concatenate([own.reshape(2 * n, -1), by_time.reshape(2 * n, hits)], 1)
        return columns, shared.reshape(2 * n, 2)

    def keep(self, fits: Bools) -> None:
        """Keep some of the detections, unless a part between two hits would have none."""
        part = (self.time[:, None] >= self.hits).sum(1)
        if (np.bincount(part[fits], minlength=len(self.hits) + 1) >= LEAST - 1).all():
            self.frames, self.choice = self.frames[fits], self.choice[fits]
            self.time, self.points = self.time[fits], self.points[fits]

    def move(self, step: Floats) -> None:
        """Change state, jumps and hit times by a step of the fit."""
        hits = len(self.hits)
        by_axis = step[: 2 * (2 + hits)].reshape(2, 2 + hits)
        self.state = self.state + by_axis[:, :2].T
        self.jumps = self.jumps + by_axis[:, 2:].T
        low, high = (np.array([end[i] for end in self.ends]) for i in (0, 1))
        moved = self.hits + step[2 * (2 + hits) :].clip(-1, 1)
        self.hits = moved.clip(low - 1, high + 1) if hits else moved


def fit_flights(detections: Detections, tolerance: float) -> Flights:
    """Find the arcs among detections and fit them together.

    The acceleration is first what most arcs of five and more frames agree on. With it shorter arcs
    are found, arcs that meet are joined, and all is fitted by Gauss–Newton steps.
    """
    arcs = find_arcs(detections, tolerance)
    if not arcs:
        return _nothing(len(detections.time))
    acceleration = _consensus(arcs, detections)
    for _ in range(2):
        arcs = find_arcs(detections, tolerance, acceleration, LEAST)
        if not arcs:
            return _nothing(len(detections.time))
        chains = join(arcs, detections, acceleration, tolerance)
        acceleration, error, scatter = _fit(chains, acceleration)
        for _ in range(2):
            _trim(chains, acceleration)
            acceleration, error, scatter = _fit(chains, acceleration)
    longest = max(float(chain.time[-1] - chain.time[0]) for chain in chains)
    if not falls(acceleration, longest, tolerance):
        return _nothing(len(detections.time))  # so without outliers
    return _collect(chains, detections, acceleration, error, scatter)


def meeting(before: Arc, after: Arc) -> tuple[float, float]:
    """Return the time at which two arcs of equal acceleration come closest, and their distance."""
    gap = after.at(np.array([before.origin]))[0] - before.at(np.array([before.origin]))[0]
    shift = before.origin - after.origin
    speed = after.coefficients[1] + after.coefficients[2] * shift - before.coefficients[1]
    square = float(speed @ speed)
    if square == 0:
        return inf, inf
    delay = -float(gap @ speed) / square
    return before.origin + delay, float(np.linalg.norm(gap + delay * speed))


def join(
    arcs: Sequence[Arc], detections: Detections, acceleration: Floats, tolerance: float
) -> list[Chain]:
    """Put arcs that meet between their frames into one chain."""
    groups = [[arcs[0]]]
    for before, after in pairwise(arcs):
        time, distance = meeting(before, after)
        low, high = detections.time[[before.frames[-1], after.frames[0]]]
        meets = low - 1 <= time <= high + 1 and distance < tolerance
        groups[-1].append(after) if meets else groups.append([after])
    return [Chain(group, detections, acceleration) for group in groups]


def _fit(chains: Sequence[Chain], acceleration: Floats) -> tuple[Floats, float, float]:
    """Gauss–Newton over all chains: the acceleration, its standard error and the scatter.

    Each chain's own parameters are projected out, so that the acceleration is solved for first.
    """
    for _ in range(12):
        normal, right = np.zeros((2, 2)), np.zeros(2)
        parts = []
        square, free = 0.0, -2
        for chain in chains:
            own, shared = chain.slopes()
            miss = (chain.points - chain.at(chain.time, acceleration)[0]).T.ravel()
            inverse = np.linalg.pinv(own, rcond=1e-9)
            rest = shared - own @ (inverse @ shared)
            normal += rest.T @ rest
            right += rest.T @ miss
            parts.append((inverse, shared, miss))
            square += float(miss @ miss)
            free += len(miss) - own.shape[1]
        change = np.linalg.lstsq(normal, right, rcond=None)[0]
        for chain, (inverse, shared, miss) in zip(chains, parts, strict=True):
            chain.move(inverse @ (miss - shared @ change))
        acceleration = acceleration + change
    scatter = float(np.sqrt(square / max(free, 1)))
    along = acceleration / np.linalg.norm(acceleration)
    error = scatter * float(np.sqrt(along @ np.linalg.pinv(normal) @ along))
    return acceleration, error, scatter


def _trim(chains: Sequence[Chain], acceleration: Floats) -> None:
    """Drop detections that lie off the fit by `OUTLIER` of its typical error or more."""
    misses = [
        np.linalg.norm(chain.points - chain.at(chain.time, acceleration)[0], axis=1)
        for chain in chains
    ]
    limit = OUTLIER * float(np.median(np.concatenate(misses)))
    for chain, miss in zip(chains, misses, strict=True):
        chain.keep(miss <= limit)


def _consensus(arcs: Sequence[Arc], detections: Detections) -> Floats:
    """Average the acceleration over the arcs that agree with the one supported by most frames."""
    errors, weights = [], []
    for arc in arcs:
        s = detections.time[arc.frames] - arc.origin
        miss = detections.position[arc.frames, arc.choice] - arc.at(detections.time[arc.frames])
        columns = np.stack([np.ones_like(s), s, s**2 / 2], 1)
        spread = np.linalg.inv(columns.T @ columns)[2, 2]
        errors.append(np.sqrt((miss**2).mean() * spread) + 1e-9)
        weights.append(1 / spread)
    downwards = np.array([arc.coefficients[2, 1] for arc in arcs])
    frames = np.array([len(arc.frames) for arc in arcs])
    error = np.array(errors)
    apart = np.abs(downwards[:, None] - downwards)
    agree: Bools = apart < 4 * np.hypot(error[:, None], error) + AGREE * downwards
    members = agree[(agree @ frames).argmax()]
    every = np.array([arc.coefficients[2] for arc in arcs])
    return np.asarray(np.average(every[members], axis=0, weights=np.array(weights)[members]))


def _collect(
    chains: Sequence[Chain],
    detections: Detections,
    acceleration: Floats,
    error: float,
    scatter: float,
) -> Flights:
    flights = _nothing(len(detections.time))
    hits = []
    arcs = 0
    for chain in chains:
        inside = np.arange(chain.frames[0], chain.frames[-1] + 1)
        time = detections.time[inside]
        flights.position[inside], flights.velocity[inside] = chain.at(time, acceleration)
        flights.arc[inside] = arcs + (time[:, None] >= chain.hits).sum(1)
        flights.choice[chain.frames] = chain.choice
        arcs += len(chain.hits) + 1
        position, after = chain.at(chain.hits, acceleration)
        for k, time_of_hit in enumerate(chain.hits):
            hit = Hit(float(time_of_hit), position[k], after[k] - chain.jumps[k], after[k], None)
            ratio = np.divide(*_towards(hit, _normal(hit, acceleration))[::-1])
            hits.append(hit._replace(restitution=float(-ratio) if -1 <= ratio < 0 else None))
    return flights._replace(
        hits=hits, acceleration=acceleration, acceleration_error=error, scatter=scatter
    )


def _nothing(frames: int) -> Flights:
    none = np.full((frames, 2), np.nan)
    number = np.full(frames, -1)
    unknown = np.full(2, np.nan)
    return Flights(number, number.copy(), none, none.copy(), [], unknown, np.nan, np.nan)


def _state(arc: Arc, origin: float, acceleration: Floats) -> Floats:
    """Return position and velocity (2, 2) of an arc at another time."""
    velocity = arc.coefficients[1] + acceleration * (origin - arc.origin)
    return np.stack([arc.at(np.array([origin]))[0], velocity])


def _normal(hit: Hit, acceleration: Floats) -> Floats:
    """Return the direction (2,) in which a hit acted: up, sideways or, at a slope, along the
    jump."""
    jump = (hit.after - hit.before) / np.linalg.norm(hit.after - hit.before)
    down = acceleration / np.linalg.norm(acceleration)
    for normal in (down, np.array([-down[1], down[0]])):
        if abs(float(jump @ normal)) > ALONG:
            return normal
    return np.asarray(jump)


def _towards(hit: Hit, normal: Floats) -> tuple[float, float]:
    """Return the speed along a direction before and after a hit."""
    return float(hit.before @ normal), float(hit.after @ normal)
