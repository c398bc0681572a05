"""Differentiable ballistic models: three landmarks in, a physical trajectory out.

The paper's is velocity-Verlet with wall collisions, in pixels and frames (Δt = 1); every decision
is a `torch.where` over whole batches. Two others err less (`Config.physics`): steps that walls
reflect, and exact flight fitted to a longer window. A fourth knows nothing of the world.
"""

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from pit_model.config import Config, Units
from pit_model.flight import fit, world_of


class Trajectory(NamedTuple):
    """Result of the model for the three frames of each window."""

    position: Tensor
    """(..., 3, 2), pixels."""
    velocity: Tensor
    """(..., 3, 2), pixels per frame."""
    bounce: Tensor
    """(..., 3), 1 where the step to this frame met a wall; for the first frame 0 unless a longer
    window shows it."""


def refine(landmarks: Tensor, chunks: int, config: Config) -> Trajectory:
    """Fit the motion that the settings ask for to the N windows (N, 3, 2) of some chunks.

    Windows are ordered by chunk and then by time, as those of `Network.forward`.
    """
    units = Units.of(config)
    if config.physics == "paper":
        return trajectory(landmarks, units)
    if config.physics == "reflect":
        return reflected_trajectory(landmarks, units)
    if config.physics == "free":
        return free_trajectory(landmarks)
    return exact_trajectory(landmarks, chunks, units, config.physics_window)


def trajectory(landmarks: Tensor, units: Units) -> Trajectory:
    """Fit the paper's motion of a ball to three landmarks, (..., 3, 2) as (x, y) pixels.

    Two Verlet steps start from the first landmark with the forward difference
    ``v = p_t − p_{t−1}``. Where neither step meets a wall, the result is replaced by the parabola
    through the outer landmarks: ``v_mid = (p_{t+1} − p_{t−1}) / 2`` and ``v_{t−1} = v_mid − g``.
    """
    gravity = landmarks.new_tensor([0.0, units.gravity])
    first, second, third = landmarks.unbind(-2)
    stepped = _two_steps(first, second - first, gravity, units, reflect=False)
    return _unless_free(stepped, _parabola(first, (third - first) / 2 - gravity, gravity))


def _two_steps(
    first: Tensor, start: Tensor, gravity: Tensor, units: Units, reflect: bool
) -> Trajectory:
    middle, speed_middle, hit_middle = verlet_step(first, start, gravity, units, reflect)
    last, speed_last, hit_last = verlet_step(middle, speed_middle, gravity, units, reflect)
    return Trajectory(
        torch.stack([first, middle, last], -2),
        torch.stack([start, speed_middle, speed_last], -2),
        torch.stack([torch.zeros_like(hit_middle), hit_middle, hit_last], -1),
    )


def _parabola(first: Tensor, v: Tensor, gravity: Tensor) -> tuple[Tensor, Tensor]:
    """Position and velocity of free flight in three frames, (..., 3, 2) each."""
    position = torch.stack([first, first + v + gravity / 2, first + 2 * v + 2 * gravity], -2)
    return position, torch.stack([v, v + gravity, v + 2 * gravity], -2)


def _unless_free(stepped: Trajectory, free: tuple[Tensor, Tensor]) -> Trajectory:
    """Keep the steps where one of them met a wall, and use free flight elsewhere."""
    bounced = stepped.bounce.any(-1)[..., None, None]
    return Trajectory(
        torch.where(bounced, stepped.position, free[0]),
        torch.where(bounced, stepped.velocity, free[1]),
        stepped.bounce.to(stepped.position.dtype),
    )


def reflected_trajectory(landmarks: Tensor, units: Units) -> Trajectory:
    """Fit as `trajectory`, with two errors corrected.

    The forward difference is the velocity half a frame later, so the first one is
    ``v = p_t − p_{t−1} − g/2``. What a step overshoots a wall by is reflected, times e, instead of
    lost.
    """
    gravity = landmarks.new_tensor([0.0, units.gravity])
    first, second, third = landmarks.unbind(-2)
    stepped = _two_steps(first, second - first - gravity / 2, gravity, units, reflect=True)
    return _unless_free(stepped, _parabola(first, (third - first) / 2 - gravity, gravity))


def free_trajectory(landmarks: Tensor) -> Trajectory:
    """Fit free flight to three landmarks, (..., 3, 2), with any acceleration.

    The positions are the landmarks; gravity is their second difference, and there is no wall.
    """
    first, second, third = landmarks.unbind(-2)
    gravity = first - 2 * second + third
    middle = (third - first) / 2
    velocity = torch.stack([middle - gravity, middle, middle + gravity], -2)
    return Trajectory(landmarks, velocity, torch.zeros_like(landmarks[..., 0]))


def exact_trajectory(landmarks: Tensor, chunks: int, units: Units, window: int) -> Trajectory:
    """Fit exact flight to `window` frames around each of N windows, (N, 3, 2).

    A window of three is fitted to its own landmarks, in free flight to all three alike. For a
    longer one, each frame takes the mean of its landmarks in the windows that it stands in; at the
    ends of a chunk the longer window is shifted inwards, and a chunk that is shorter is one window.
    """
    world = world_of(units, landmarks)
    if window == landmarks.shape[-2]:
        return Trajectory(*fit(landmarks, world)[:3])
    windows = landmarks.view(chunks, -1, 3, 2)  # (K, L − 2, 3, 2)
    count = windows.shape[1] + 2
    length = min(window, count)
    fitted = fit(_frame_means(windows).unfold(1, length, 1).movedim(-1, 2), world)
    at = torch.arange(count - 2, device=landmarks.device)  # first frame of each window of three
    start = (at + 1 - length // 2).clamp(0, count - length)
    frames = (at - start)[:, None] + torch.arange(3, device=landmarks.device)  # (L − 2, 3)
    return Trajectory(*(x[:, start[:, None], frames].flatten(0, 1) for x in fitted[:3]))


def _frame_means(windows: Tensor) -> Tensor:
    """Average the position of each frame over its windows: (K, L − 2, 3, 2) to (K, L, 2)."""
    chunks, count = windows.shape[:2]
    total = windows.new_zeros(chunks, count + 2, 2)
    for j in range(3):
        total = total + functional.pad(windows[:, :, j], (0, 0, j, 2 - j))
    share = torch.ones(count, dtype=windows.dtype, device=windows.device)
    shares = sum(functional.pad(share, (j, 2 - j)) for j in range(3))
    return total / torch.as_tensor(shares)[:, None]


def verlet_step(
    position: Tensor, velocity: Tensor, gravity: Tensor, units: Units, reflect: bool = False
) -> tuple[Tensor, Tensor, Tensor]:
    """Advance (..., 2) states by a frame: drift, half kick, walls, half kick.

    A component that would leave [r, W − r] is put back on the wall, or with `reflect` as far inside
    as e times what it overshot, and its velocity becomes ``−e·v``. The third value says which
    states met a wall, (...).
    """
    ahead = position + velocity + gravity / 2
    half = velocity + gravity / 2
    outside = (ahead < units.low) | (ahead > units.high)
    put_back = ahead.clamp(units.low, units.high)
    if reflect:
        put_back = put_back + units.restitution * (put_back - ahead)
    reflected = torch.where(outside, -units.restitution * half, half)
    return torch.where(outside, put_back, ahead), reflected + gravity / 2, outside.any(-1)
