"""The paper's losses, one function for each term, and their total with its named parts."""

from collections.abc import Iterable
from math import ceil
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from pit_model.config import Config
from pit_model.dataset import Batch, windows
from pit_model.expectation import grid_around, take, to_map
from pit_model.metrics import Outputs
from pit_model.network import STRIDES
from pit_model.predict import Prediction

PARTS = ("ae", "cone", "hm", "pill", "pills")
"""The terms of the total, in the order of the paper."""
REACH = 6
"""Standard deviations after which a Gaussian of peak 1 is below the resolution of a float."""
PILL_FLOOR, PILLS_FLOOR = 0.01, 0.001
"""Weights w_min that the two physics losses start from."""


class Truth(NamedTuple):
    """The true state of the ball in N windows of three frames."""

    frames: Tensor
    """(N, 3, S, S)."""
    position: Tensor
    """(N, 3, 2), pixels; NaN without a ball."""
    velocity: Tensor
    """(N, 3, 2), pixels per frame; NaN without a ball."""
    bounce: Tensor
    """(N, 3)."""


class Losses(NamedTuple):
    """The total and the active terms in it, before their weights."""

    total: Tensor
    parts: dict[str, Tensor]


def window_truth(batch: Batch) -> Truth:
    """Cut the chunks of a batch into windows, in the order of `Network.forward`."""
    return Truth(*map(windows, batch))


def reconstruction_loss(image: Tensor, frames: Tensor) -> Tensor:
    """L_AE: mean binary cross-entropy of σ(Î) against the frames."""
    return functional.binary_cross_entropy_with_logits(image, frames)


def cone_loss(image: Tensor, frames: Tensor, centre: Tensor, radius: float) -> Tensor:
    """L_cone: ``1/(HW) Σ |σ(Î) − I| · C̃``, averaged over the frames of all windows.

    C̃ is a Gaussian with σ = 3r about the ball, scaled to a peak of 1 on the pixel grid.

    Parameters
    ----------
    image, frames
        (N, 3, S, S): the reconstruction in logit space and what it should be.
    centre
        (N, 3, 2), pixels.
    """
    size = image.shape[-1]
    sigma = 3 * radius
    grid = grid_around(centre, ceil(REACH * sigma), size)  # (N, 3, 2, n)
    nearest = centre.round().clamp(0, size - 1)
    exponent = (nearest - centre)[..., None] ** 2 - (grid - centre[..., None]) ** 2
    x, y = (exponent / (2 * sigma**2)).exp().unbind(-2)  # (N, 3, n) each, peak 1
    drawn, inside = take(image, grid)
    wanted, _ = take(frames, grid)
    cone = torch.where(inside, y[..., :, None] * x[..., None, :], 0).nan_to_num()  # (N, 3, n, n)
    return ((torch.sigmoid(drawn) - wanted).abs() * cone).sum() / image.numel()


def heatmap_loss(logits: Tensor, centre: Tensor, sigma: float) -> Tensor:
    """L_hm: the focal loss of heatmaps against Gaussian targets, per positive pixel.

    ``−1/|P| Σ [1{H̃ > ½} (1 − H)² log H + (1 − H̃)⁴ H² log(1 − H)]``. Far from the ball H̃ is zero,
    so the second term is summed over whole maps as if it were zero everywhere and set right near
    the ball.

    Parameters
    ----------
    logits
        (N, 3, s, s), so that both logarithms stay finite at H = 0 and H = 1.
    centre
        (N, 3, 2), heatmap pixels.
    sigma
        Standard deviation of the targets, heatmap pixels.
    """
    far = (torch.sigmoid(logits) ** 2 * functional.logsigmoid(-logits)).sum()
    grid = grid_around(centre, ceil(REACH * sigma), logits.shape[-1])  # (N, 3, 2, n)
    x, y = (-((grid - centre[..., None]) ** 2) / (2 * sigma**2)).exp().unbind(-2)
    near, inside = take(logits, grid)
    target = torch.where(inside, y[..., :, None] * x[..., None, :], 0).nan_to_num()
    positive = target > 0.5
    heat = torch.sigmoid(near)
    gain = torch.where(positive, (1 - heat) ** 2 * functional.logsigmoid(near), 0)
    mend = ((1 - target) ** 4 - 1) * heat**2 * functional.logsigmoid(-near)
    return -(far + (gain + mend).sum()) / positive.sum().clamp_min(1)


def pill_loss(scale: Outputs) -> Tensor:
    """L_PILL: mean over windows and frames of ``‖f(a·c) − a·c‖₁``, physics against landmarks.

    The paper's f prefers a landmark that stands still to a true flight. Exact flight over five
    frames and more (`physics_window`) does not.
    """
    return _l1(scale.position, scale.soft)


def pills_loss(scale: Outputs, truth: Truth, bounce_weight: float = 0.01) -> Tensor:
    """L_PILLS: ``‖p − p*‖₁ + ‖v − v*‖₁ + 0.01 |b − b*|``, the same mean; 0 without a ball."""
    bounce = (scale.bounce - truth.bounce).abs().mean()
    return (
        _l1(*_where_known(scale.position, truth.position))
        + _l1(*_where_known(scale.velocity, truth.velocity))
        + bounce_weight * bounce
    )


def ramp(epoch: int, floor: float, length: float) -> float:
    """Weight of a physics loss: ``w(e) = w_min + (1 − w_min) min(1, e/T)``, e epochs done."""
    return floor + (1 - floor) * min(1.0, epoch / length)


def total_loss(prediction: Prediction, truth: Truth, config: Config, epoch: int) -> Losses:
    """Add up the terms that the factors switch on.

    L_AE always; L_cone with A; L_hm with C; PILL with D and PILLS with E, ramped in; the last three
    summed over all scales with A, at the encoder's alone without (`decoder_losses`). The cone
    stands on the true position if C or E supervises, else on the predicted peak.
    """
    image, scales = prediction.image, prediction.scales
    tracked = scales[: config.tracked_scales]
    parts = {"ae": reconstruction_loss(image, truth.frames)}
    if config.A:
        centre = truth.position if config.C or config.E else scales[-1].hard
        parts["cone"] = cone_loss(image, truth.frames, centre, config.radius_px)
    if config.C:
        parts["hm"] = _sum(
            heatmap_loss(
                scale.logits,
                to_map(truth.position, stride, config.coordinates),
                config.target_sigma,
            )
            for scale, stride in zip(tracked, STRIDES, strict=False)
        )
    if config.D:
        parts["pill"] = _sum(pill_loss(scale) for scale in tracked)
    if config.E:
        parts["pills"] = _sum(pills_loss(scale, truth, config.bounce_weight) for scale in tracked)
    weights = {
        "ae": config.reconstruction_weight,
        "cone": config.cone_weight,
        "hm": config.heatmap_weight,
        "pill": config.pill_weight * ramp(epoch, PILL_FLOOR, config.pill_ramp),
        "pills": config.pills_weight * ramp(epoch, PILLS_FLOOR, config.pills_ramp),
    }
    total = torch.stack([weights[name] * part for name, part in parts.items()]).sum()
    return Losses(total, parts)


def _sum(parts: Iterable[Tensor]) -> Tensor:
    return torch.stack(list(parts)).sum()


def _where_known(output: Tensor, truth: Tensor) -> tuple[Tensor, Tensor]:
    """Set both to 0, without a gradient, where the truth is NaN."""
    return torch.where(truth.isnan(), 0, output), truth.nan_to_num()


def _l1(a: Tensor, b: Tensor) -> Tensor:
    """Return the mean over all but the last axis of the ℓ1 norm along the last."""
    return (a - b).abs().sum(-1).mean()
