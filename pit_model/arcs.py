"""Arcs of free flight among detections: consensus of samples first, then one fit of all arcs.

A ball between two hits flies along ``p(t) = p₀ + v t + a t²/2`` with the same acceleration a in
every arc of a clip. At a hit its position is continuous and its velocity jumps, so that a chain of
arcs is ``p₀ + v₀ t + a t²/2 + Σ Δv_k max(t − τ_k, 0)``: exact flight with hits at times τ_k between
frames, without any knowledge of floor, walls or restitution.

Samples are enumerated, not drawn, so that the same clip gives the same arcs. Times are in frames,
positions in pixels, y points downwards.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Ints = NDArray[np.int64]

STEPS = (1, 2, 3, 5, 8, 13)
"""Frames between the detections of a sample: small for short arcs, large for accuracy."""
REACH = 30
"""Frames on each side of a sample that vote for it."""
MISSES = 2
"""Frames in a row that may lack a detection within an arc."""
BEYOND = 2.0
"""Tolerances for a frame beyond the ends of an arc, where a fit is less exact."""
TILT = 0.27
"""Largest sideways part of the acceleration: a camera tilted by 15 degrees."""
CHUNK = 2048
"""Samples per batch."""


class Detections(NamedTuple):
    """Up to K candidate positions of a ball in each of T frames, the most likely first."""

    time: Floats
    """(T,) in frames."""
    position: Floats
    """(T, K, 2), NaN where there are fewer."""
    confidence: Floats
    """(T, K), 0 to 1."""


class Arc(NamedTuple):
    """Free flight through some detections."""

    frames: Ints
    """(n,) numbers of the frames that confirm it, in order."""
    choice: Ints
    """(n,): index of the confirming detection in each frame."""
    origin: float
    """Origin of the time in the coefficients."""
    coefficients: Floats
    """(3, 2): position, velocity and acceleration at the origin."""

    def at(self, time: Floats) -> Floats:
        """Return positions (T, 2) at some times."""
        return _path(self.coefficients, time - self.origin)


class Sample(NamedTuple):
    """M hypotheses of free flight, each through two or three detections."""

    seed: Ints
    """(M,): the frame of the origin of their time."""
    choice: Ints
    """(M,): the detection in that frame."""
    coefficients: Floats
    """(M, 3, 2)."""


def find_arcs(
    detections: Detections,
    tolerance: float,
    acceleration: Floats | None = None,
    least: int = 5,
) -> list[Arc]:
    """Find arcs without common frames, those with most support first; return them in order of time.

    Parameters
    ----------
    tolerance
        Distance in pixels within which a detection confirms an arc.
    acceleration
        (2,), if known; every arc has its own otherwise.
    least
        Frames that have to confirm an arc. It has to bend downwards as well (`falls`): what rests
        or glides is not known to fly. Even motion through most of its detections must not have more
        support: the rims of a ball that rolls are detected in turn, now one and now the other.
    """
    sample = _sample(detections, tolerance, acceleration)
    free = np.ones(len(detections.time), bool)
    score = _support(sample, detections, free, tolerance, least)
    even = _even_support(detections, tolerance, least)
    arcs = []
    while len(score) and (best := int(score.argmax())) >= 0 and score[best] > 0:
        arc = _grow(sample, best, detections, free, tolerance, acceleration)
        if (
            arc is None
            or len(arc.frames) < least
            or not _falls(arc, detections.time, tolerance)
            or np.median(even[arc.frames, arc.choice]) > score[best]
        ):
            score[best] = 0
            continue
        arcs.append(arc)
        first, last = arc.frames[0], arc.frames[-1]
        free[first : last + 1] = False
        near = (sample.seed >= first - 2 * REACH) & (sample.seed <= last + 2 * REACH) & (score > 0)
        rest = Sample(*(part[near] for part in sample))
        votes = _support(rest, detections, free, tolerance, least)
        score[near] = np.where(free[rest.seed], votes, 0)
    return sorted(arcs, key=lambda arc: int(arc.frames[0]))


def _path(coefficients: Floats, s: Floats) -> Floats:
    """Evaluate ``c₀ + c₁ s + c₂ s²/2``: coefficients (…, 3, 2) and times (…, n) to (…, n, 2)."""
    c = coefficients[..., None, :]
    s = s[..., None]
    out: Floats = c[..., 0, :, :] + c[..., 1, :, :] * s + c[..., 2, :, :] * s**2 / 2
    return out


def _sample(detections: Detections, tolerance: float, acceleration: Floats | None) -> Sample:
    """Put a parabola through every two (acceleration known) or three detections of equal
    spacing."""
    time, position, _ = detections
    frames, most = position.shape[:2]
    seeds, choices, coefficients = [], [], []
    ends = (-1, 1) if acceleration is None else (1,)
    for step in STEPS:
        seed = np.arange(step if len(ends) == 2 else 0, max(frames - step, 0))
        every = np.stack(np.meshgrid(*[np.arange(most)] * (1 + len(ends))), -1)
        for choice in every.reshape(-1, 1 + len(ends)):
            start = position[seed, choice[0]]  # (n, 2)
            s = np.stack([time[seed + end * step] - time[seed] for end in ends], -1)  # (n, ends)
            moved = (
                np.stack(
                    [
                        position[seed + end * step, k]
                        for end, k in zip(ends, choice[1:], strict=True)
                    ],
                    1,
                )
                - start[:, None]
            )  # (n, ends, 2)
            if acceleration is None:
                solved = np.linalg.solve(np.stack([s, s**2 / 2], -1), moved)  # (n, 2, 2)
                velocity, bend = solved[:, 0], solved[:, 1]
                slack = 4 * tolerance / step**2
                flies = (bend[:, 1] > 0) & (np.abs(bend[:, 0]) < TILT * bend[:, 1] + slack)
            else:
                bend = np.broadcast_to(acceleration, start.shape)
                velocity = moved[:, 0] / s - bend * s / 2
                flies = np.isfinite(velocity).all(1)
            seeds.append(seed[flies])
            choices.append(np.full(int(flies.sum()), choice[0]))
            coefficients.append(np.stack([start, velocity, bend], 1)[flies])
    return Sample(*map(np.concatenate, (seeds, choices, coefficients)))


def _support(
    sample: Sample, detections: Detections, free: Bools, tolerance: float, least: int
) -> Floats:
    """Sum the confidence of the detections near each sample, (M,), weighted by distance.

    It is 0 for samples that have fewer than ``least − 1`` frames on their side: growing adds few.
    """
    scores = [np.zeros(0)]
    around = np.arange(-REACH, REACH + 1)
    for first in range(0, len(sample.seed), CHUNK):
        seed = sample.seed[first : first + CHUNK]
        frame = seed[:, None] + around  # (M, R)
        there = (frame >= 0) & (frame < len(free))
        frame = frame.clip(0, len(free) - 1)
        s = detections.time[frame] - detections.time[seed, None]
        path = _path(sample.coefficients[first : first + CHUNK], s)
        error, choice = _nearest(detections, frame, path)
        near = (error < tolerance) & there & free[frame]
        weight = detections.confidence[frame, choice] * (1 - (error / tolerance) ** 2)
        votes = _unbroken(near)
        scores.append(np.where(votes, weight, 0).sum(1) * (votes.sum(1) >= least - 1))
    return np.concatenate(scores)


def _even_support(detections: Detections, tolerance: float, least: int) -> Floats:
    """Return the support of the best even motion through each detection, (T, K)."""
    sample = _sample(detections, tolerance, np.zeros(2))
    everywhere = np.ones(len(detections.time), bool)
    support = np.zeros(detections.confidence.shape)
    score = _support(sample, detections, everywhere, tolerance, least)
    np.maximum.at(support, (sample.seed, sample.choice), score)
    return support


def _nearest(detections: Detections, frame: Ints, path: Floats) -> tuple[Floats, Ints]:
    """Return the distance to the nearest detection of each frame (infinite if none) and its
    index."""
    distance = np.linalg.norm(detections.position[frame] - path[..., None, :], axis=-1)
    distance = np.where(np.isnan(distance), np.inf, distance)
    choice = distance.argmin(-1)
    return np.take_along_axis(distance, choice[..., None], -1)[..., 0], choice


def _unbroken(near: Bools) -> Bools:
    """Keep what is connected to the middle column of (M, 2R + 1) with gaps of at most `MISSES`."""
    middle = near.shape[1] // 2
    kept = near.copy()
    for side in (slice(middle, None), slice(middle, None, -1)):
        part = near[:, side]
        gap = ~part
        broken = np.zeros_like(part)
        broken[:, MISSES:] = gap[:, MISSES:]
        for back in range(1, MISSES + 1):
            broken[:, MISSES:] &= gap[:, MISSES - back : part.shape[1] - back]
        kept[:, side] &= ~np.logical_or.accumulate(broken, 1)
    return kept


def _grow(
    sample: Sample,
    number: int,
    detections: Detections,
    free: Bools,
    tolerance: float,
    acceleration: Floats | None,
) -> Arc | None:
    """Fit a sample to all frames that agree with it, repeatedly until none is added."""
    time = detections.time
    seed, coefficients = int(sample.seed[number]), sample.coefficients[number]
    origin = float(time[seed])
    frames = np.arange(len(time))
    inside, dropped = np.zeros((2, len(time)), bool)
    limit = np.full(len(time), tolerance)
    for _ in range(20):
        error, choice = _nearest(detections, frames, _path(coefficients, time - origin))
        near = (error < limit) & free & ~dropped
        if not near.any():
            return None
        dropped |= inside & ~near
        seed = int(frames[near][np.abs(frames[near] - seed).argmin()])
        low, high = _run(near, seed)
        near[:low] = near[high + 1 :] = False
        if np.array_equal(near, inside):
            break
        inside = near
        if inside.sum() < (3 if acceleration is None else 2):
            return None
        limit = np.where((frames < low) | (frames > high), BEYOND, 1.0) * tolerance
        points = detections.position[inside, choice[inside]]
        coefficients = _fit(time[inside] - origin, points, acceleration)
    return Arc(frames[inside], choice[inside], origin, coefficients)


def _run(near: Bools, seed: int) -> tuple[int, int]:
    """Return the first and last frame connected to `seed` with gaps of at most `MISSES` frames."""
    there = np.flatnonzero(near)
    breaks = np.flatnonzero(np.diff(there) > MISSES + 1)
    part = int(np.searchsorted(there[breaks], seed, side="left"))
    starts, ends = np.r_[there[0], there[breaks + 1]], np.r_[there[breaks], there[-1]]
    return int(starts[part]), int(ends[part])


def _fit(s: Floats, points: Floats, acceleration: Floats | None) -> Floats:
    """Least squares of free flight: times (n,) and points (n, 2) to (3, 2)."""
    columns = np.stack([np.ones_like(s), s, s**2 / 2], 1)
    if acceleration is None:
        return np.asarray(np.linalg.lstsq(columns, points, rcond=None)[0], float)
    rest = points - columns[:, 2:] * acceleration
    return np.vstack([np.linalg.lstsq(columns[:, :2], rest, rcond=None)[0], acceleration])


def falls(acceleration: Floats, duration: float, tolerance: float) -> bool:
    """Return whether a path bends downwards, and no more to a side than `TILT` allows.

    Its middle lies ``a T²/8`` off even motion: down by more than the tolerance, and to a side by no
    more than the tolerance beyond a tilted camera's share.
    """
    aside, down = abs(acceleration[0]) * duration**2 / 8, acceleration[1] * duration**2 / 8
    return bool(down > tolerance and aside < TILT * down + tolerance)


def _falls(arc: Arc, time: Floats, tolerance: float) -> bool:
    duration = time[arc.frames[-1]] - time[arc.frames[0]]
    return falls(arc.coefficients[2], float(duration), tolerance)
