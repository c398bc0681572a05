"""Exact flight of many balls at once, and its least-squares fit to landmarks.

Every wall hit is solved for in closed form, as in the simulator, but over whole batches and with
the derivatives by the first position and velocity, which a fit needs. The two axes are independent.

Units are pixels and frames; y points downwards. Tensors end in the two coordinates (x, y).
"""

from math import inf
from typing import NamedTuple

import torch
from torch import Tensor

from pit_model.config import Units

HITS = 8
"""Wall hits followed along each axis. A ball whose last one is on the floor rests from there on: of
the hops in nine frames the ninth is 0.005 px high at 224 px."""
REST = 0.05
"""Shortest hop in frames; a shorter one counts as rest."""
STARTS = 3
"""Number of starting values of a fit that are refined."""
ITERATIONS = 4
"""Levenberg–Marquardt steps of a fit."""
_SLOWEST = 1e-6  # px/frame: a ball that grazes a wall more slowly has no usable derivative


class World(NamedTuple):
    """Forces and walls along x and y: four tensors of shape (2,)."""

    acceleration: Tensor
    restitution: Tensor
    low: Tensor
    high: Tensor


class Flight(NamedTuple):
    """Positions and velocities of balls at T times."""

    position: Tensor
    """(..., T, 2), pixels."""
    velocity: Tensor
    """(..., T, 2), pixels per frame; just after the hit where a hit falls on the time itself."""
    hits: Tensor
    """(..., K, 2): times of the hits along each axis in order, inf where there are no more."""
    slopes: tuple[Tensor, Tensor]
    """Derivatives of position and velocity by the first (position, velocity): (..., T, 2, 2)."""


class Fit(NamedTuple):
    """The flight that fits landmarks best; gradients flow from all fields but the hits."""

    position: Tensor
    """(..., T, 2), pixels."""
    velocity: Tensor
    """(..., T, 2), pixels per frame."""
    bounce: Tensor
    """(..., T): 1 where a wall was hit since the time before, else 0; 0 at the first."""
    hits: Tensor
    """(..., K, 2): times of the hits along each axis in order, inf where there are no more."""


def world_of(units: Units, like: Tensor) -> World:
    """Return the world of a run, in the type and on the device of a tensor."""
    e, low, high = ((value,) * 2 for value in (units.restitution, units.low, units.high))
    return World(*(like.new_tensor(row) for row in ((0.0, units.gravity), e, low, high)))


def fly(
    position: Tensor, velocity: Tensor, times: Tensor, world: World, hits: int = HITS
) -> Flight:
    """Simulate balls from positions and velocities (..., 2) at time 0.

    Parameters
    ----------
    times
        (..., T), rising from 0 or later; leading axes are broadcast against those of the balls.
    hits
        How many wall hits are followed along each axis.
    """
    times = times[..., None]  # (..., T, 1)
    eye = torch.eye(2, dtype=position.dtype, device=position.device)
    dp, dv = (row.expand(*position.shape, 2) for row in eye)
    zero = torch.zeros_like(position)
    arc = _Arc(zero, position, velocity, world.acceleration.expand_as(position), dp * 0, dp, dv)
    states = _along(arc, times)
    hit_times = []
    for left in reversed(range(hits)):
        arc, hit = _next_arc(arc, world, times[..., -1, :], is_last=left == 0)
        if hit.device.type == "cpu" and not hit.any():  # a GPU would have to be waited for
            break
        hit_times.append(torch.where(hit, arc.since, inf))
        later = (times >= arc.since[..., None, :]) & hit[..., None, :]
        states = [
            torch.where(later if new.ndim == later.ndim else later[..., None], new, old)
            for new, old in zip(_along(arc, times), states, strict=True)
        ]
    where, speed, dwhere, dspeed = states
    none = position.new_full((*position.shape[:-1], 0, 2), inf)
    return Flight(
        torch.clamp(where, world.low, world.high),
        speed,
        torch.stack(hit_times, -2) if hit_times else none,
        (dwhere, dspeed),
    )


def fit(landmarks: Tensor, world: World) -> Fit:
    """Fit exact flight to landmarks (..., T, 2) by least squares, along each axis separately.

    Minimises ``Σ (z − f(θ))²`` over θ, position and velocity at the first frame. Several starts are
    tried: the velocity between each two neighbours, flown back to the first frame; the parabola
    through all; rest. The best few are improved by Levenberg–Marquardt steps. Gradients are those
    of the last Gauss–Newton step, ``dθ/dz = (JᵀJ)⁻¹Jᵀ``, exact in free flight and where the
    landmarks lie on a flight.
    """
    z = landmarks.detach()
    times = torch.arange(z.shape[-2], dtype=z.dtype, device=z.device)
    with torch.no_grad():
        theta = _solve(z, times, world)
        flight = fly(theta[..., 0], theta[..., 1], times, world)
        gain = _gain(flight.slopes[0], _on_wall(theta, world))
    # zero in value: the gradient of the fit
    change = (gain * (landmarks - z)[..., None]).sum(-3)[..., None, :, :]  # (..., 1, 2, 2)
    along, along_speed = flight.slopes
    return Fit(
        flight.position + (along * change).sum(-1),
        flight.velocity + (along_speed * change).sum(-1),
        bounces(flight.hits, times).to(z.dtype),
        flight.hits,
    )


def bounces(hits: Tensor, times: Tensor) -> Tensor:
    """Return whether a wall was hit in each ``(t_{i−1}, t_i]``: hits (..., K, 2) to (..., T)."""
    so_far = (hits[..., None, :, :] <= times[:, None, None]).sum((-2, -1))  # (..., T)
    return so_far.diff(dim=-1, prepend=so_far[..., :1]) > 0


class _Arc(NamedTuple):
    """Free flight from an instant on; derivatives are by the first position and velocity."""

    since: Tensor
    p: Tensor
    v: Tensor
    a: Tensor
    """(..., 2) each: when it began, with which position and velocity, and the acceleration."""
    dsince: Tensor
    dp: Tensor
    dv: Tensor
    """(..., 2, 2) each."""


def _along(arc: _Arc, times: Tensor) -> list[Tensor]:
    """Return position, velocity and their derivatives on an arc at all times."""
    t = times - arc.since[..., None, :]  # (..., T, 2)
    p, v, a = (x[..., None, :] for x in (arc.p, arc.v, arc.a))
    dsince, dp, dv = (x[..., None, :, :] for x in (arc.dsince, arc.dp, arc.dv))
    speed = v + a * t
    dwhere = dp + dv * t[..., None] - speed[..., None] * dsince
    dspeed = dv - a[..., None] * dsince
    return [p + v * t + a * t**2 / 2, speed, dwhere, dspeed.expand_as(dwhere)]


def _next_arc(arc: _Arc, world: World, end: Tensor, is_last: bool) -> tuple[_Arc, Tensor]:
    """Advance to the next hit where there is one before `end`; return where there was, (..., 2).

    At the wall ``ds = −(dp + s dv) / v`` after a flight of s, and the velocity becomes −e·v.
    """
    _, e, low, high = world
    to_wall, at_wall, wall = _next_hit(arc.p, arc.v, arc.a, low, high)
    hit = arc.since + to_wall <= end
    to_wall, at_wall = torch.where(hit, to_wall, 0), torch.where(hit, at_wall, 1)
    dt = -(arc.dp + to_wall[..., None] * arc.dv) / at_wall[..., None]
    short = 2 * e * at_wall < REST * arc.a
    rests = (wall == high) & (arc.a > 0) & (short | is_last)
    after = _Arc(
        arc.since + to_wall,
        wall.expand_as(arc.p),
        torch.where(rests, 0, -e * at_wall),
        torch.where(rests, 0, arc.a),
        arc.dsince + dt,
        torch.zeros_like(arc.dp),
        torch.where(rests[..., None], 0, -e[..., None] * (arc.dv + arc.a[..., None] * dt)),
    )
    pairs = zip(after, arc, strict=True)
    kept = (torch.where(hit if x.ndim == hit.ndim else hit[..., None], x, y) for x, y in pairs)
    return _Arc(*kept), hit


def _next_hit(
    p: Tensor, v: Tensor, a: Tensor, low: Tensor, high: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the time to the next wall (inf if none), the velocity there and the wall, each (...,
    2).

    With d the way to the wall, ``a s²/2 + v s = d`` is solved for its first root s ≥ 0 in the form
    that does not cancel; the speed at the wall is ``√(v² ± 2 a d)``.
    """
    to_low, to_high = (p - low).clamp_min(0), (high - p).clamp_min(0)
    square = v * v - 2 * a * to_low
    rises = (v < 0) & (square >= 0) & low.isfinite()
    speed_low = square.clamp_min(0).sqrt()
    speed_high = (v * v + 2 * a * to_high).sqrt()
    up = 2 * to_low / (speed_low - v)
    down = torch.where(v > 0, 2 * to_high / (v + speed_high), (speed_high - v) / a)
    lies = (v == 0) & (to_high == 0)
    down = torch.where(((v > 0) | (a > 0)) & high.isfinite() & ~lies, down, inf)
    at_wall = torch.where(rises, -speed_low.clamp_min(_SLOWEST), speed_high.clamp_min(_SLOWEST))
    return torch.where(rises, up, down), at_wall, torch.where(rises, low, high)


def _solve(z: Tensor, times: Tensor, world: World) -> Tensor:
    """Return the best first position and velocity along each axis: (..., 2, 2)."""
    start = _starts(z, times, world)  # (..., H, 2, 2)
    z = z[..., None, :, :]  # (..., 1, T, 2)

    def try_out(theta: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        flight = fly(theta[..., 0], theta[..., 1], times, world)
        miss = z - flight.position
        return (miss**2).sum(-2), miss, flight.slopes[0]

    cost, _, _ = try_out(start)  # (..., H, 2)
    best = cost.topk(min(STARTS, cost.shape[-2]), -2, largest=False).indices
    theta = start.gather(-3, best[..., None].expand(*best.shape, 2))
    cost, miss, slope = try_out(theta)
    damping = torch.full_like(cost, 1e-3)
    for _ in range(ITERATIONS):
        gain = _gain(slope, _on_wall(theta, world), damping)
        step = (gain * miss[..., None]).sum(-3)  # (..., H, 2, 2)
        tried = theta + step
        held = torch.clamp(tried[..., 0], world.low, world.high)
        tried = torch.stack([held, tried[..., 1]], -1)
        new_cost, new_miss, new_slope = try_out(tried)
        better = new_cost < cost
        cost, damping = (
            torch.where(better, new_cost, cost),
            torch.where(better, damping / 3, damping * 5),
        )
        theta = torch.where(better[..., None], tried, theta)
        miss = torch.where(better[..., None, :], new_miss, miss)
        slope = torch.where(better[..., None, :, None], new_slope, slope)
    best = cost.argmin(-2, keepdim=True)  # (..., 1, 2)
    return theta.gather(-3, best[..., None].expand(*best.shape, 2))[..., 0, :, :]


def _starts(z: Tensor, times: Tensor, world: World) -> Tensor:
    """Return initial positions and velocities to start a fit from, (..., T + 1, 2, 2)."""
    acceleration, e, low, high = world
    speed = z.diff(dim=-2) - acceleration / 2
    mirror = World(acceleration, 1 / e.clamp_min(0.1), low, high)
    back = fly(torch.clamp(z[..., :-1, :], low, high), -speed, times[:-1, None], mirror, 3)
    paired = torch.stack([back.position[..., 0, :], -back.velocity[..., 0, :]], -1)
    t = times[:, None] - times.mean()
    level = z - acceleration * times[:, None] ** 2 / 2
    slope = (level * t).sum(-2) / (t * t).sum()
    straight = torch.stack([level.mean(-2) - slope * times.mean(), slope], -1)
    rest = torch.stack([z[..., 0, :], torch.zeros_like(z[..., 0, :])], -1)
    starts = torch.cat([paired, straight[..., None, :, :], rest[..., None, :, :]], -3)
    return torch.stack([torch.clamp(starts[..., 0], low, high), starts[..., 1]], -1)


def _on_wall(theta: Tensor, world: World) -> Tensor:
    """Return whether the first position is held by a wall, (..., 2)."""
    return (theta[..., 0] <= world.low) | (theta[..., 0] >= world.high)


def _gain(slope: Tensor, fixed: Tensor, damping: Tensor | None = None) -> Tensor:
    """Return ``(JᵀJ + λ diag)⁻¹ Jᵀ``, the derivative of the first state by landmarks: (..., T, 2,
    2).

    Where the first position is fixed, the velocity alone moves.
    """
    damping = torch.zeros_like(fixed, dtype=slope.dtype) if damping is None else damping
    jp, jv = (slope * ~_between(fixed)).unbind(-1)  # (..., T, 2) each
    grow = 1 + damping
    pp = (jp * jp).sum(-2) * grow
    vv = (jv * jv).sum(-2) * grow
    pv = (jp * jv).sum(-2)
    tiny = torch.finfo(slope.dtype).eps
    pp, vv = pp + tiny, vv + tiny
    determinant = (pp * vv - pv * pv).clamp_min(tiny * tiny)
    pp, vv, pv = (x[..., None, :] for x in (pp / determinant, vv / determinant, pv / determinant))
    return torch.stack([vv * jp - pv * jv, pp * jv - pv * jp], -1)


def _between(fixed: Tensor) -> Tensor:
    """Mark the derivative by the position where it is fixed: (..., 2) to (..., 1, 2, 2)."""
    return torch.stack([fixed, torch.zeros_like(fixed)], -1)[..., None, :, :]
