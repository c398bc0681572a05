"""The fifteen metrics of a tracker, summed on the device and read once, and the epochs they choose.

Errors are means over windows, the three frames of a window and, for positions and velocities, the
two coordinates of the absolute difference, in image pixels (per frame): a tracker stuck at the
centre of a 224-pixel image scores about 57 pixels.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite
from typing import NamedTuple

import torch
from torch import Tensor

from pit_model.dataset import Batch, windows

NOT_ASKED = torch.empty(0)
"""Placeholder for an output that was not requested."""


@dataclass(frozen=True)
class Outputs:
    """Outputs of a tracker at one scale for N windows of three frames, in image pixels and
    frames."""

    logits: Tensor = NOT_ASKED
    """(N, 3, s, s): the heatmap before its sigmoid, of a tracker that has one."""
    soft: Tensor = NOT_ASKED
    """(N, 3, 2): sub-pixel positions, B in the metrics."""
    hard: Tensor = NOT_ASKED
    """(N, 3, 2): positions of the peaks, H in the metrics."""
    position: Tensor = NOT_ASKED
    """(N, 3, 2): positions of the physics module, P in the metrics."""
    velocity: Tensor = NOT_ASKED
    """(N, 3, 2): its velocities in pixels per frame, V in the metrics."""
    bounce: Tensor = NOT_ASKED
    """(N, 3): its bounce flags, 0 or 1."""

    @property
    def heatmap(self) -> Tensor:
        """(N, 3, s, s): σ of the logits."""
        return torch.sigmoid(self.logits)


class Kind(NamedTuple):
    """A kind of metric, with one metric at each scale."""

    unit: str
    output: Callable[[Outputs], Tensor]
    """The tracker's output, (N, 3, …)."""
    truth: Callable[[Batch], Tensor]
    """The true value, (K, L, …)."""


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
    """(kinds, scales) in double precision, where the device has it."""
    windows: int


def metric_names(scales: Sequence[int]) -> tuple[str, ...]:
    """Name the metrics: ``B56, B112, B224, H56, …, bounce224`` for the paper's scales."""
    return tuple(f"{kind}{scale}" for kind in KINDS for scale in scales)


def no_totals(device: torch.device | str = "cpu", scales: int = 3) -> Totals:
    """Return the totals of no window at all."""
    dtype = torch.float32 if torch.device(device).type == "mps" else torch.float64
    return Totals(torch.zeros(len(KINDS), scales, dtype=dtype, device=device), 0)


def add(totals: Totals, tracks: Sequence[Outputs], batch: Batch) -> Totals:
    """Add the errors of a batch: `tracks` holds one entry per scale, coarse to fine.

    The windows of the tracks are in the order of `dataset.windows`: chunk by chunk, then in time.
    """
    errors = [
        torch.stack(
            [
                _mean_error(kind.output(track), windows(kind.truth(batch)), totals.sums.dtype)
                for track in tracks
            ]
        )
        for kind in KINDS.values()
    ]
    count = len(windows(batch.bounce))
    return Totals(totals.sums + count * torch.stack(errors), totals.windows + count)


def read(totals: Totals, scales: Sequence[int]) -> dict[str, float]:
    """Divide by the number of windows: one transfer from the device, all metrics by name."""
    means = (totals.sums / totals.windows).flatten().tolist()
    return dict(zip(metric_names(scales), means, strict=True))


def _mean_error(output: Tensor, truth: Tensor, dtype: torch.dtype) -> Tensor:
    """Return the mean over windows, frames and coordinates of |output − truth|, a scalar."""
    return (output - truth).abs().to(dtype).mean()


def choose_epochs(history: Sequence[Mapping[str, float]]) -> dict[str, int]:
    """Choose for each metric the epoch with the smallest value.

    Ties go to the earliest epoch, and a value that is not finite is never chosen; a metric without
    any finite value has no entry.

    Parameters
    ----------
    history
        One mapping of metric to validation value per epoch, from epoch 0 on.
    """
    chosen: dict[str, int] = {}
    for epoch, values in enumerate(history):
        for name, value in values.items():
            if isfinite(value) and (name not in chosen or value < history[chosen[name]][name]):
                chosen[name] = epoch
    return chosen


def epochs_to_keep(chosen: Mapping[str, int]) -> tuple[int, ...]:
    """Return the distinct chosen epochs in order: those whose weights are still needed."""
    return tuple(sorted(set(chosen.values())))
