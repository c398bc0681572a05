"""Videos as cameras record them: each has its own world, ball and background.

Networks that are trained on these know no fixed gravity, radius or brightness: they see what
`regime.network_input` makes of a video, as the tracker does.
"""

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter
from torch import Tensor

from pit_model.config import Units
from pit_model.regime import levels, network_input
from pit_model.simulate import Flight, simulate

Image = NDArray[np.float32]

EXPOSURES = np.linspace(-0.5, 0.5, 7)
"""Moments of an exposure, as fractions of it, at which a moving ball is drawn."""


class Ball(NamedTuple):
    """Appearance of a ball."""

    radius: float
    """Pixels."""
    contrast: float
    """Brightness above the background."""
    shade: float
    """Loss of brightness from the centre to the rim."""
    exposure: float
    """Fraction of the frame interval in which the shutter is open."""


class Blob(NamedTuple):
    """A large object in uniform motion: a hand, a shadow."""

    start: NDArray[np.float64]
    velocity: NDArray[np.float64]
    axes: tuple[float, float]
    """Half the length and half the width in pixels."""
    angle: float
    brightness: float
    edge: float
    """Width of its edge in pixels: shadows have a soft one."""


def draw_film(
    rng: np.random.Generator, size: int, frames: int, leaves: bool
) -> tuple[Tensor, Flight]:
    """Draw a video at random: its frames (T, S, S) in the network's regime, and its flight.

    Parameters
    ----------
    leaves
        Whether the ball may leave the picture. Frames that do not show its centre have no position
        and no velocity: they are not a number.
    """
    ball = Ball(
        radius=float(np.exp(rng.uniform(np.log(1.2), np.log(size / 11)))),
        contrast=rng.uniform(0.2, 0.9),
        shade=rng.uniform(0, 0.7),
        exposure=rng.choice([0.0, rng.uniform(0.05, 0.7)]),
    )
    flight = draw_flight(rng, size, frames, ball.radius, leaves)
    scene = _with_blobs(rng, background(rng, size), frames)
    scene = np.stack([_with_ball(*at, ball) for at in zip(scene, *flight[:2], strict=True)])
    dark = rng.random() < 0.5
    film = torch.from_numpy(take(rng, 1 - scene if dark else scene))
    outside = ((flight.position < -0.5) | (flight.position > size - 0.5)).any(1)
    for part in flight[:2]:
        part[outside] = np.nan
    measured = levels(film, dark, subtract=rng.random() < 0.5)
    return network_input(film, dark, measured), flight


def draw_flight(
    rng: np.random.Generator, size: int, frames: int, radius: float, leaves: bool
) -> Flight:
    """Simulate a ball in a random world: gravity, restitution, speed and walls."""
    room = size * (rng.uniform(1.0, 1.4) if leaves and rng.random() < 0.6 else 1.0)
    units = Units(
        size=size,
        scale=1.0,
        gravity=float(np.exp(rng.uniform(np.log(0.02), np.log(5.0)))),
        v_max=float(np.exp(rng.uniform(np.log(1.0), np.log(size / 4)))),
        radius=radius,
        low=radius,
        high=room - radius,
        restitution=rng.uniform(0.5, 0.95),
    )
    start = rng.uniform(units.low, units.high, 2)
    flight = simulate(start, rng.uniform(-units.v_max, units.v_max, 2), frames, units)
    return flight._replace(position=flight.position - rng.uniform(0, room - size, 2))


def background(rng: np.random.Generator, size: int) -> Image:
    """Draw a static background: an even grey, a texture, noise, a gradient; with bars or
    without."""
    grey = rng.uniform(0, 0.35)
    kind = rng.integers(4)
    plane = np.full((size, size), grey)
    if kind == 1:
        plane += rng.uniform(0.03, 0.15) * _texture(rng, size, rng.uniform(0.7, 6))
    elif kind == 2:
        plane += rng.uniform(0.05, 0.4) * rng.normal(size=(size, size))
    elif kind == 3:
        angle = rng.uniform(0, 2 * np.pi)
        y, x = np.mgrid[:size, :size] / size - 0.5
        plane += rng.uniform(0.1, 0.4) * (np.cos(angle) * x + np.sin(angle) * y)
        plane += rng.uniform(0, 0.08) * _texture(rng, size, rng.uniform(0.7, 6))
    for _ in range(rng.integers(4) if rng.random() < 0.5 else 0):
        first, width = rng.integers(size), rng.integers(1, 7)
        bar = plane if rng.random() < 0.5 else plane.T
        bar[:, first : first + width] = rng.uniform(0, 1)
    return plane.clip(0, 1).astype(np.float32)


def take(rng: np.random.Generator, scene: Image) -> Image:
    """Record a scene (T, S, S): defocus, response, noise, eight bits."""
    sharp = rng.choice([0.0, rng.uniform(0.2, 1.0)])
    light = gaussian_filter(scene, (0, sharp, sharp)).clip(0, 1) ** rng.uniform(0.6, 1.6)
    noise = rng.choice([0.0, rng.uniform(0.0, 0.1)])
    noisy = light + noise * rng.normal(size=light.shape)
    return np.asarray(np.rint(255 * noisy.clip(0, 1)) / 255, np.float32)


def _texture(rng: np.random.Generator, size: int, grain: float) -> Image:
    """Return smooth noise of standard deviation 1."""
    smooth = gaussian_filter(rng.normal(size=(size, size)), grain, mode="wrap")
    return np.asarray(smooth / smooth.std(), np.float32)


def _with_blobs(rng: np.random.Generator, still: Image, frames: int) -> Image:
    """Move up to two blobs across a background: (S, S) to (T, S, S)."""
    size = len(still)
    scene = np.repeat(still[None], frames, axis=0)
    y, x = np.mgrid[:size, :size]
    for _ in range(rng.integers(1, 3) if rng.random() < 0.4 else 0):
        blob = Blob(
            start=rng.uniform(0, size, 2),
            velocity=rng.uniform(-2.5, 2.5, 2),
            axes=(rng.uniform(size / 6, size / 3), rng.uniform(size / 16, size / 6)),
            angle=rng.uniform(0, np.pi),
            brightness=rng.uniform(0, 0.9),
            edge=rng.choice([1.0, rng.uniform(2, 8)]),
        )
        for t, frame in enumerate(scene):
            along = x - blob.start[0] - t * blob.velocity[0]
            across = y - blob.start[1] - t * blob.velocity[1]
            u = along * np.cos(blob.angle) + across * np.sin(blob.angle)
            v = across * np.cos(blob.angle) - along * np.sin(blob.angle)
            distance = (1 - np.hypot(u / blob.axes[0], v / blob.axes[1])) * blob.axes[1]
            cover = (distance / blob.edge + 0.5).clip(0, 1)
            frame += cover * (blob.brightness - frame)
    return scene


def _with_ball(
    frame: Image, position: NDArray[np.float64], velocity: NDArray[np.float64], ball: Ball
) -> Image:
    """Blend a ball into a frame (S, S), smeared along its path while the shutter is open."""
    size = len(frame)
    y, x = np.mgrid[:size, :size]
    moments = EXPOSURES * ball.exposure if ball.exposure else np.zeros(1)
    cover, light = np.zeros((2, size, size))
    for moment in moments:
        centre = position + moment * velocity
        distance = np.hypot(x - centre[0], y - centre[1])
        disc = (ball.radius + 0.5 - distance).clip(0, 1)
        cover += disc / len(moments)
        light += disc * (1 - ball.shade * (distance / ball.radius).clip(0, 1) ** 2) / len(moments)
    behind = frame[cover > 0.2].mean() if (cover > 0.2).any() else 0.0
    return (frame * (1 - cover) + (behind * cover + ball.contrast * light)).clip(0, 1)
