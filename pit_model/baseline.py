"""Baselines without a network: motion masks and their centroids.

The ball is brighter than what it covers, so a pixel that is brighter than the background shows it.
The two methods differ in where the background comes from: the three frames of a window, which are
all that PIT sees, or the whole video. Neither learns anything; both rely on a background that
stands still.
"""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pit_model import metrics
from pit_model.config import Config
from pit_model.dataset import evaluation_batches, make_split, windows
from pit_model.metrics import Outputs
from pit_model.physics import refine

THRESHOLD = 0.05
"""Brightness above the background from which a pixel counts as ball."""
VIDEOS: dict[str, dict[str, Any]] = {
    "clean": {"F": False},
    "static noise": {"F": True, "noise": "static"},
    "noise of every frame": {"F": True, "noise": "per_frame"},
}
"""Kinds of background, by the settings that produce them."""


def three_frame_difference(frames: Tensor) -> Tensor:
    """Positions from the three frames of each window: (K, L, S, S) to (N, 3, 2).

    The background of a pixel is its darkest value in the window, right unless the ball covers the
    pixel in all three frames. A frame without any difference takes the mean of the others.
    """
    window = windows(frames)  # (N, 3, S, S)
    position, visible = centroid(window - window.amin(1, keepdim=True) > THRESHOLD)
    mean = position.nan_to_num(0.0).sum(1, keepdim=True) / visible.sum(1, keepdim=True)
    return _or_centre(torch.where(visible, position, mean), frames.shape[-1])


def temporal_median(frames: Tensor) -> Tensor:
    """Positions against the median of each whole video: (K, L, S, S) to (N, 3, 2)."""
    background = frames.median(1, keepdim=True).values
    position, _ = centroid(frames - background > THRESHOLD)
    return windows(_or_centre(position, frames.shape[-1]))


METHODS: dict[str, Callable[[Tensor], Tensor]] = {
    "three-frame difference": three_frame_difference,
    "temporal median": temporal_median,
}
"""The baselines by name."""


def centroid(mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the mean (x, y) of the pixels of each mask and whether there are any.

    Masks are (…, S, S), means (…, 2), answers (…, 1). Without any pixel the mean is not a number.
    """
    weight = mask.float()
    index = torch.arange(mask.shape[-1], dtype=weight.dtype, device=mask.device)
    mass = weight.sum((-2, -1))
    x = (weight.sum(-2) * index).sum(-1) / mass
    y = (weight.sum(-1) * index).sum(-1) / mass
    return torch.stack([x, y], -1), mass[..., None] > 0


def track(position: Tensor, chunks: int, config: Config) -> Outputs:
    """Round positions (N, 3, 2) to pixels for H, and put them through the physics for P and V."""
    refined = refine(position, chunks, config)
    return Outputs(soft=position, hard=position.round(), **refined._asdict())


def evaluate(config: Config) -> dict[str, dict[str, float]]:
    """Run the baselines on the test videos of a run; metrics at the full image size by method."""
    totals = {name: metrics.no_totals(scales=1) for name in METHODS}
    for batch in evaluation_batches(make_split(config, "test")):
        for name, method in METHODS.items():
            outputs = track(method(batch.frames), len(batch.frames), config)
            totals[name] = metrics.add(totals[name], [outputs], batch)
    scales = (config.image_size,)
    return {name: metrics.read(total, scales) for name, total in totals.items()}


def _or_centre(position: Tensor, size: int) -> Tensor:
    """Replace an empty result by the centre of the image."""
    return torch.where(position.isnan(), size / 2, position)
