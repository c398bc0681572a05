"""The one forward path of training and evaluation: network, expectation, physics.

`Needs` says which outputs somebody will look at; the others are not computed.
"""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from pit_model.config import Config, Units
from pit_model.expectation import bicubic, biquadratic, coarse_to_fine, hard_argmax
from pit_model.network import STRIDES, Maps
from pit_model.physics import trajectory

OPERATORS: tuple[Callable[[Tensor], Tensor], ...] = (coarse_to_fine, biquadratic, bicubic)
"""The soft-argmax of each scale, coarse to fine."""


NOT_ASKED = torch.empty(0)
"""Stands for an output that nobody asked for."""


class Needs(NamedTuple):
    """The outputs that a caller wants beside the heatmaps."""

    soft: tuple[bool, bool, bool]
    """Soft positions and the physics behind them, for each scale."""
    hard: tuple[bool, bool, bool]
    """Hard positions, for each scale."""
    image: bool
    """The reconstruction."""


METRICS = Needs(soft=(True, True, True), hard=(True, True, True), image=False)
"""What the 15 metrics are made of."""


class Scale(NamedTuple):
    """The outputs at one scale for N windows; positions are in image pixels."""

    logits: Tensor
    """(N, 3, s, s): the heatmap before its sigmoid."""
    soft: Tensor = NOT_ASKED
    """(N, 3, 2): sub-pixel positions, B in the metrics."""
    hard: Tensor = NOT_ASKED
    """(N, 3, 2): positions of the peaks, H in the metrics."""
    position: Tensor = NOT_ASKED
    """(N, 3, 2): positions refined by physics, P in the metrics."""
    velocity: Tensor = NOT_ASKED
    """(N, 3, 2): pixels per frame, V in the metrics."""
    bounce: Tensor = NOT_ASKED
    """(N, 3): 0 or 1."""

    @property
    def heatmap(self) -> Tensor:
        """(N, 3, s, s): σ of the logits."""
        return torch.sigmoid(self.logits)


class Prediction(NamedTuple):
    """The paper's returned outputs."""

    scales: tuple[Scale, Scale, Scale]
    """At S/4, S/2 and S."""
    image: Tensor
    """(N, 3, S, S): the reconstruction in logit space."""


def training_needs(config: Config) -> Needs:
    """Name the outputs that the active losses look at.

    PILL and PILLS need the physics at the scales that they act on. The cone stands on the predicted
    peak of the finest scale where there is no supervision (A = 1, C = E = 0). The reconstruction is
    always trained.
    """
    unsupervised_cone = config.A and not (config.C or config.E)
    coarse = config.D or config.E
    finer = coarse and config.tracked_scales > 1
    return Needs((coarse, finer, finer), hard=(False, False, unsupervised_cone), image=True)


def predict(
    network: Callable[[Tensor, bool], Maps], frames: Tensor, units: Units, needs: Needs
) -> Prediction:
    """Run K chunks of L frames, (K, L, S, S), and read out their N = K·(L − 2) windows."""
    maps = network(frames, needs.image)
    coarse, middle, fine = (
        _read_out(logits.float(), stride, operator, soft, hard, units)
        for logits, stride, operator, soft, hard in zip(
            maps.heatmaps, STRIDES, OPERATORS, needs.soft, needs.hard, strict=True
        )
    )
    return Prediction((coarse, middle, fine), maps.image.float())


def _read_out(
    logits: Tensor,
    stride: int,
    operator: Callable[[Tensor], Tensor],
    soft: bool,
    hard: bool,
    units: Units,
) -> Scale:
    """Positions of one scale in image pixels (heatmap coordinate × stride) and their physics."""
    scale = Scale(logits)
    if not (soft or hard):
        return scale
    heatmap = scale.heatmap
    if hard:
        scale = scale._replace(hard=stride * hard_argmax(heatmap))
    if not soft:
        return scale
    landmarks = stride * operator(heatmap)
    position, velocity, bounce = trajectory(landmarks, units)
    return scale._replace(soft=landmarks, position=position, velocity=velocity, bounce=bounce)
