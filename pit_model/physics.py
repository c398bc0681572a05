"""The differentiable ballistic model: three landmarks in, a physical trajectory out.

Velocity-Verlet with wall collisions, in pixels and frames (Δt = 1). Every decision is a
`torch.where` over whole batches. The simulator shares nothing with this module but `Units`.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from pit_model.config import Units


class Trajectory(NamedTuple):
    """What the model says about the three frames of each window."""

    position: Tensor
    """(..., 3, 2), pixels."""
    velocity: Tensor
    """(..., 3, 2), pixels per frame."""
    bounce: Tensor
    """(..., 3), 1 where the step to this frame met a wall; always 0 for the first."""


def trajectory(landmarks: Tensor, units: Units) -> Trajectory:
    """Fit the motion of a ball under gravity to three landmarks, (..., 3, 2) as (x, y) pixels.

    Two Verlet steps start from the first landmark with the forward difference
    ``v = p_t − p_{t−1}``. Where neither step meets a wall, the result is replaced by the parabola
    through the outer landmarks: ``v_mid = (p_{t+1} − p_{t−1}) / 2`` and ``v_{t−1} = v_mid − g``.
    """
    gravity = landmarks.new_tensor([0.0, units.gravity])
    first, second, third = landmarks.unbind(-2)
    start = second - first
    middle, speed_middle, hit_middle = verlet_step(first, start, gravity, units)
    last, speed_last, hit_last = verlet_step(middle, speed_middle, gravity, units)

    v = (third - first) / 2 - gravity
    smooth_position = torch.stack([first, first + v + gravity / 2, first + 2 * v + 2 * gravity], -2)
    smooth_velocity = torch.stack([v, v + gravity, v + 2 * gravity], -2)

    bounced = (hit_middle | hit_last)[..., None, None]
    bounce = torch.stack([torch.zeros_like(hit_middle), hit_middle, hit_last], -1)
    return Trajectory(
        torch.where(bounced, torch.stack([first, middle, last], -2), smooth_position),
        torch.where(bounced, torch.stack([start, speed_middle, speed_last], -2), smooth_velocity),
        bounce.to(landmarks.dtype),
    )


def verlet_step(
    position: Tensor, velocity: Tensor, gravity: Tensor, units: Units
) -> tuple[Tensor, Tensor, Tensor]:
    """Advance (..., 2) states by a frame: drift, half kick, walls, half kick.

    A component that would leave [r, W − r] is put back on the wall, and its velocity becomes
    ``−e·v``. The third value says which states met a wall, (...).
    """
    ahead = position + velocity + gravity / 2
    half = velocity + gravity / 2
    outside = (ahead < units.low) | (ahead > units.high)
    on_wall = ahead.clamp(units.low, units.high)
    reflected = torch.where(outside, -units.restitution * half, half)
    return torch.where(outside, on_wall, ahead), reflected + gravity / 2, outside.any(-1)
