"""The one forward pass of training and evaluation: network, expectation, physics."""

from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

from torch import Tensor

from pit_model.config import Config
from pit_model.expectation import bicubic, biquadratic, coarse_to_fine, hard_argmax, to_image
from pit_model.metrics import Outputs
from pit_model.network import STRIDES, Maps
from pit_model.physics import refine

Operator = Callable[[Tensor], Tensor]
OPERATORS: dict[str, tuple[Operator, Operator, Operator]] = {
    "paper": (coarse_to_fine, biquadratic, bicubic),
    "local": (coarse_to_fine, coarse_to_fine, coarse_to_fine),
}
"""The soft-argmax of each scale, coarse to fine, by the setting `readout`."""

Wanted = tuple[frozenset[str], frozenset[str], frozenset[str]]
"""Outputs to compute besides the heatmaps, for each scale: `soft` positions with their physics,
`hard` positions."""
METRICS: Wanted = (frozenset({"soft", "hard"}),) * 3
"""Outputs needed for the 15 metrics."""


class Prediction(NamedTuple):
    """The paper's returned outputs."""

    scales: tuple[Outputs, Outputs, Outputs]
    """At S/4, S/2 and S."""
    image: Tensor
    """(N, 3, S, S): the reconstruction in logit space; empty if not requested."""


def wanted_in_training(config: Config) -> Wanted:
    """Name the outputs that the active losses need.

    PILL and PILLS need the physics at the scales that they act on. The cone stands on the predicted
    peak of the finest scale where there is no supervision (A = 1, C = E = 0).
    """
    wanted: list[set[str]] = [set(), set(), set()]
    if config.D or config.E:
        for scale in wanted[: config.tracked_scales]:
            scale.add("soft")
    if config.A and not (config.C or config.E):
        wanted[-1].add("hard")
    coarse, middle, fine = map(frozenset, wanted)
    return coarse, middle, fine


def predict(
    network: Callable[[Tensor, bool], Maps],
    frames: Tensor,
    config: Config,
    wanted: Wanted,
    with_image: bool = False,
) -> Prediction:
    """Run K chunks of L frames, (K, L, S, S), and read out their N = K·(L − 2) windows."""
    maps = network(frames, with_image)
    coarse, middle, fine = (
        _read_out(logits, stride, operator, outputs, len(frames), config)
        for logits, stride, operator, outputs in zip(
            maps.heatmaps, STRIDES, OPERATORS[config.readout], wanted, strict=True
        )
    )
    return Prediction((coarse, middle, fine), maps.image)


def _read_out(
    logits: Tensor,
    stride: int,
    operator: Operator,
    outputs: frozenset[str],
    chunks: int,
    config: Config,
) -> Outputs:
    """Compute the requested positions of one scale in image pixels, and their physics."""
    track = Outputs(logits)
    if not outputs:
        return track
    heatmap = track.heatmap
    if "hard" in outputs:
        track = replace(track, hard=to_image(hard_argmax(heatmap), stride, config.coordinates))
    if "soft" not in outputs:
        return track
    soft = to_image(operator(heatmap), stride, config.coordinates)
    position, velocity, bounce = refine(soft, chunks, config)
    return replace(track, soft=soft, position=position, velocity=velocity, bounce=bounce)
