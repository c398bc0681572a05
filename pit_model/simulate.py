"""Exact flight of a ball under gravity between four walls.

The two axes are independent: along x the ball moves evenly, along y it falls with constant
acceleration, and each has its own pair of walls. Every wall hit is solved for in closed form, so
there is no time step: a corner is a hit on both axes in one frame, and a ball that comes to rest on
the floor, after infinitely many ever smaller hops, rests from that instant on.

Units are pixels and frames; y points downwards, so the floor is the upper end of the y axis.
"""

from collections.abc import Sequence
from math import floor, inf, log, log1p, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pit_model.config import Units

SPLITS = ("train", "val", "test")
"""The parts of the data; a sequence's stream of random numbers starts from its part and number."""

Floats = NDArray[np.float64]


class Flight(NamedTuple):
    """State of a ball (or, with a leading axis, of many) in each of T frames."""

    position: Floats
    """(T, 2): x and y in pixels."""
    velocity: Floats
    """(T, 2): in pixels per frame; just after the hit where a hit falls on the frame itself."""
    bounce: Floats
    """(T,): 1 where a wall was hit in (t − 1, t], else 0; 0 at the first frame."""


class Axis(NamedTuple):
    """One coordinate: walls, acceleration towards `high` and restitution."""

    low: float
    high: float
    acceleration: float
    restitution: float


class State(NamedTuple):
    """Position and velocity along one axis."""

    p: float
    v: float


def simulate(
    position: Sequence[float] | Floats,
    velocity: Sequence[float] | Floats,
    frames: int,
    units: Units,
) -> Flight:
    """Let a ball fly from an initial position (px) and velocity (px/frame) for `frames` frames."""
    axes = (
        Axis(units.low, units.high, 0.0, units.restitution),
        Axis(units.low, units.high, units.gravity, units.restitution),
    )
    p, v = np.empty((frames, 2)), np.empty((frames, 2))
    bounce = np.zeros(frames)
    for i, axis in enumerate(axes):
        state = State(float(position[i]), float(velocity[i]))
        p[0, i], v[0, i] = state
        for t in range(1, frames):
            state, hit = advance(state, axis)
            p[t, i], v[t, i] = state
            bounce[t] = max(bounce[t], hit)
    return Flight(p, v, bounce)


def simulate_split(
    split: str, count: int, frames: int, units: Units, seed: Sequence[int]
) -> Flight:
    """Simulate `count` sequences of a split from random starts; arrays have a leading axis (V,).

    Positions are uniform between the walls and velocities between −v_max and v_max on each axis.
    Sequence i draws from a stream of its own, so it does not depend on how many others there are.
    """
    flights = []
    for i in range(count):
        rng = stream(seed, split, i)
        start = rng.uniform(units.low, units.high, 2)
        flights.append(simulate(start, rng.uniform(-units.v_max, units.v_max, 2), frames, units))
    return Flight(*(np.stack(parts) for parts in zip(*flights, strict=True)))


def stream(seed: Sequence[int], split: str, sequence: int, *more: int) -> np.random.Generator:
    """Return the random numbers of one sequence; all splits, sequences and further keys differ."""
    return np.random.default_rng([*seed, SPLITS.index(split), sequence, *more])


def advance(state: State, axis: Axis, time: float = 1.0) -> tuple[State, bool]:
    """Move along one axis for `time` frames; return whether a wall was hit in (0, time]."""
    hit = False
    while not _rests(state, axis):
        to_wall, after = next_hit(state, axis)
        if to_wall > time:
            break
        hit, time, state = True, time - to_wall, after
        below_ceiling = after.v**2 < 2 * axis.acceleration * (axis.high - axis.low)
        if after.p == axis.high and below_ceiling:
            time, state = _hop(-after.v, axis, time)
    return _fly(state, axis, time), hit


def next_hit(state: State, axis: Axis) -> tuple[float, State]:
    """Time to the next wall (inf if none) and the state just after it.

    With d the way to the wall, ``a s²/2 + v s = d`` is solved for its first root s ≥ 0 in the form
    that does not cancel; the speed at the wall is ``√(v² ± 2 a d)``, and e times that afterwards.
    """
    p, v = state
    a, e = axis.acceleration, axis.restitution
    to_low = p - axis.low
    if v < 0 and v * v >= 2 * a * to_low:
        speed = sqrt(v * v - 2 * a * to_low)
        return 2 * to_low / (speed - v), State(axis.low, e * speed)
    to_high = axis.high - p
    speed = sqrt(v * v + 2 * a * to_high)
    if v > 0:
        return 2 * to_high / (v + speed), State(axis.high, -e * speed)
    if a > 0:
        return (speed - v) / a, State(axis.high, -e * speed)
    return inf, state


def _hop(speed: float, axis: Axis, time: float) -> tuple[float, State]:
    """Skip the whole hops on the floor within `time`; return the remaining time and the state.

    A hop that starts at speed u lasts ``2u/a`` and the next starts at ``e u``, so n of them last
    ``T_n = (2u/a)(1 − eⁿ)/(1 − e)``, and all of them ``(2u/a)/(1 − e)``: after that the ball rests.
    """
    a, e = axis.acceleration, axis.restitution
    first = 2 * speed / a
    if first <= (1 - e) * time:
        return time, State(axis.high, 0.0)
    if e == 1:
        n = floor(time / first)
        gone = n * first
    else:
        n = floor(log1p(-(1 - e) * time / first) / log(e))
        gone = first * (1 - e**n) / (1 - e)
    return max(time - gone, 0.0), State(axis.high, -speed * e**n)


def _rests(state: State, axis: Axis) -> bool:
    return state.v == 0 and (axis.acceleration == 0 or state.p == axis.high)


def _fly(state: State, axis: Axis, time: float) -> State:
    """Advance in free flight; the walls bound the position only against rounding."""
    if _rests(state, axis):
        return state
    p, v = state
    a = axis.acceleration
    moved = p + v * time + a * time**2 / 2
    return State(min(max(moved, axis.low), axis.high), v + a * time)
