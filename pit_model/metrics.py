"""The fifteen metrics of a tracker, summed on the device and read once.

Errors are means over windows, the three frames of a window and, for positions and velocities, the
two coordinates of the absolute difference, in image pixels (per frame): a tracker stuck at the
centre of a 224-pixel image scores about 57 pixels.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

from pit_model.dataset import Batch, windows


class Track(Protocol):
    """What a tracker says at one scale on N windows of three frames, in image pixels and frames."""

    @property
    def soft(self) -> Tensor:
        """(N, 3, 2): position of the soft-argmax."""

    @property
    def hard(self) -> Tensor:
        """(N, 3, 2): position of the hard argmax."""

    @property
    def position(self) -> Tensor:
        """(N, 3, 2): position of the physics module."""

    @property
    def velocity(self) -> Tensor:
        """(N, 3, 2): velocity of the physics module, pixels per frame."""

    @property
    def bounce(self) -> Tensor:
        """(N, 3): bounce flag of the physics module."""


class Kind(NamedTuple):
    """A kind of metric, of which there is one at each scale."""

    unit: str
    said: Callable[[Track], Tensor]
    """What the tracker says, (N, 3, …)."""
    true: Callable[[Batch], Tensor]
    """What it should say, (K, L, …)."""


KINDS = {
    "B": Kind("px", lambda track: track.soft, lambda batch: batch.position),
    "H": Kind("px", lambda track: track.hard, lambda batch: batch.position),
    "P": Kind("px", lambda track: track.position, lambda batch: batch.position),
    "V": Kind("px/frame", lambda track: track.velocity, lambda batch: batch.velocity),
    "bounce": Kind("", lambda track: track.bounce, lambda batch: batch.bounce),
}
"""Soft, hard and physics position, velocity, bounce flag."""


class Totals(NamedTuple):
    """Summed errors so far. Adding to them never waits for the device."""

    sums: Tensor
    """(kinds, scales) in double precision."""
    windows: int


def metric_names(scales: Sequence[int]) -> tuple[str, ...]:
    """Names of the metrics: ``B56, B112, B224, H56, …, bounce224`` for the paper's scales."""
    return tuple(f"{kind}{scale}" for kind in KINDS for scale in scales)


def no_totals(device: torch.device | str = "cpu", scales: int = 3) -> Totals:
    """Return the totals of no window at all."""
    return Totals(torch.zeros(len(KINDS), scales, dtype=torch.float64, device=device), 0)


def add(totals: Totals, tracks: Sequence[Track], batch: Batch) -> Totals:
    """Add the errors of a batch: `tracks` holds one entry per scale, coarse to fine.

    The windows of the tracks are in the order of `dataset.windows`: chunk by chunk, then in time.
    """
    errors = [
        torch.stack([_mean_error(kind.said(track), windows(kind.true(batch))) for track in tracks])
        for kind in KINDS.values()
    ]
    count = len(windows(batch.bounce))
    return Totals(totals.sums + count * torch.stack(errors), totals.windows + count)


def read(totals: Totals, scales: Sequence[int]) -> dict[str, float]:
    """Divide by the number of windows: one transfer from the device, all metrics by name."""
    means = (totals.sums / totals.windows).flatten().tolist()
    return dict(zip(metric_names(scales), means, strict=True))


def _mean_error(said: Tensor, true: Tensor) -> Tensor:
    """ℓ1: the mean over windows, frames and coordinates of |said − true|, a scalar."""
    return (said - true).abs().double().mean()
