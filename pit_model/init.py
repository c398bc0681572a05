"""First weights of the network: what the setting `first_weights` makes of PyTorch's defaults.

`draw` needs no data; `set_first_heatmaps` looks at the first batch. docs/paper.md says what was
tried.
"""

import copy
from math import log, pi

import torch
from torch import Tensor

from pit_model.config import Config
from pit_model.network import WINDOW, Network

FIRST_LOGIT = 3.0
"""Initial mean of the encoder's heatmaps that start alive: slightly above the floor of their
ReLU."""
DARK_LOGIT = -8.0
"""First bias of a decoder's heatmaps that start dark: at 0.0003, the 50,000 pixels of a map weigh
as much as three balls."""


@torch.no_grad()
def draw(config: Config, seed: int) -> Network:
    """Build a network with first weights from a seed, without using the global random numbers.

    `alive` and `dark`: each heatmap of the encoder starts as its own frame's, brightest where
    features are strongest. The focal loss pushes a whole background down; behind the ReLU of
    LatentFuse a heatmap whose ball starts no brighter than its background would sink below zero
    with it, for good.

    `dark` alone: the first filters add up the brightness of neighbours, and none subtracts it.
    Differences of neighbours hardly tell a ball from noise of the same brightness; their sums do,
    by several standard deviations. And the decoder's heatmaps start near zero everywhere: where all
    pixels start at a half, the focal loss begins by darkening them, whatever that does to the
    features and, with A, to the encoder's heatmaps; and it hardly goes on where they are dark,
    while the centroid of a whole map needs them darker still.
    """
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = Network(config)
    if config.first_weights != "pytorch":
        network.center.weight.abs_()
        network.fuse.weight.add_(torch.eye(len(network.fuse.weight))[..., None, None])
    if config.first_weights == "dark":
        network.encoder.conv1.conv.weight.abs_()
        for head in (network.decoder.center2, network.decoder.center4):
            assert head.bias is not None
            head.bias.fill_(DARK_LOGIT)
    return network


@torch.no_grad()
def set_first_heatmaps(network: Network, frames: Tensor, config: Config) -> None:
    """Shift the encoder's heatmaps over these frames, (K, L, S, S), to where training shall begin.

    `dark`: as many pixels are above the floor of the ReLU as are positive in the targets. The two
    sides of the focal loss are about equally strong from the first step, and a ball among the
    brightest pixels stays there. The floor lies midway between two pixels, not on one: there the
    slope of the ReLU would depend on the last bit.

    `alive`: their mean becomes `FIRST_LOGIT`. Under noise they would start at twice that and more,
    the ball little brighter than the rest. The focal loss takes all of it down at the same speed,
    and with some seeds below the floor together. A shorter way down leaves the ball above it; from
    too near the floor the first steps of an untrained decoder push the ball under.
    """
    if config.first_weights == "pytorch":
        return
    trial = copy.deepcopy(network)  # its running statistics change, not the network's
    maps = trial.fused_windows(frames)[:, :WINDOW]  # (N, 3, s, s)
    if config.first_weights == "dark":
        positive = 2 * log(2) * pi * config.target_sigma**2  # pixels of a Gaussian above 1/2
        pixels = maps.transpose(0, 1).flatten(1)  # (3, N·s·s)
        bright = min(max(1, round(positive * len(maps))), pixels.shape[1] - 1)
        shift = -pixels.topk(bright + 1).values[:, -2:].mean(1)
    else:
        shift = FIRST_LOGIT - maps.mean((0, 2, 3))
    assert network.fuse.bias is not None
    network.fuse.bias[:WINDOW] += shift
