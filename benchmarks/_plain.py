"""The model as one would first write it, to measure against: no shared frames, no cut-outs.

Three frames of every window go through the encoder, in the default layout; heatmap targets, cones
and expectation weights are computed over whole maps; every output is computed. A test checks that
its loss is that of `pit_model`.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

from pit_model.config import Config, Units
from pit_model.losses import Truth, ramp
from pit_model.physics import trajectory


def conv_norm(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs)
    )


class PlainResBlock(nn.Module):
    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first, self.second = conv_norm(channels, channels), conv_norm(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        return functional.relu(self.second(functional.relu(self.first(x))) + x)


class PlainNetwork(nn.Module):
    """The architecture table; parameters are in the order of `pit_model.network.Network`."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            conv_norm(1, 32), nn.ReLU(), PlainResBlock(32), nn.MaxPool2d(2),
            conv_norm(32, 64), nn.ReLU(), PlainResBlock(64), nn.MaxPool2d(2),
        )  # fmt: skip
        self.center, self.residual = nn.Conv2d(64, 1, 1), nn.Conv2d(64, 6, 3, padding=1)
        self.fuse = nn.Conv2d(21, 21, 1)
        self.conv0, self.up1 = nn.Conv2d(21, 24, 3, padding=1), nn.ConvTranspose2d(24, 16, 2, 2)
        self.center2, self.up2 = nn.Conv2d(19, 3, 1), nn.ConvTranspose2d(19, 8, 2, 2)
        self.center4, self.image = nn.Conv2d(14, 3, 1), nn.Conv2d(14, 3, 1)

    def forward(self, frames: Tensor) -> tuple[list[Tensor], Tensor]:
        """Windows (N, 3, S, S) to heatmap logits at three scales and the reconstruction."""
        n = len(frames)
        encoded = self.encoder(frames.flatten(0, 1)[:, None])
        center = self.center(encoded).view(n, 3, *encoded.shape[-2:])
        residual = functional.relu(self.residual(encoded)).view(n, 18, *encoded.shape[-2:])
        fused = functional.relu(self.fuse(torch.cat([center, residual], 1)))
        coarse = torch.sigmoid(fused[:, :3])
        d1 = self.conv0(torch.cat([coarse, fused[:, 3:]], 1))
        d2 = torch.cat([functional.relu(self.up1(d1)), enlarge(coarse, 2)], 1)
        middle = self.center2(d2)
        skips = [enlarge(torch.sigmoid(middle), 2), enlarge(coarse, 4)]
        d4 = torch.cat([functional.relu(self.up2(d2)), *skips], 1)
        return [fused[:, :3], middle, self.center4(d4)], self.image(d4)


def enlarge(x: Tensor, factor: int) -> Tensor:
    return functional.interpolate(x, scale_factor=factor, mode="bilinear")


def centroid(heat: Tensor, weight: Tensor) -> Tensor:
    """Centroid of weight × heat over whole maps (N, 3, s, s)."""
    axis = torch.arange(heat.shape[-1], dtype=heat.dtype)
    mass = heat * weight
    total = mass.sum((-2, -1)) + 1e-6
    x = (mass * axis).sum((-2, -1)) / total
    return torch.stack([x, (mass * axis[:, None]).sum((-2, -1)) / total], -1)


def offsets(centre: Tensor, size: int) -> tuple[Tensor, Tensor]:
    axis = torch.arange(size, dtype=centre.dtype)
    return axis - centre[..., 0, None, None], axis[:, None] - centre[..., 1, None, None]


def soft_position(heat: Tensor, stride: int) -> Tensor:
    size = heat.shape[-1]
    if stride == 4:
        peak = heat.detach().flatten(-2).argmax(-1)
        dx, dy = offsets(torch.stack([peak % size, peak // size], -1).float(), size)
        return centroid(heat, ((dx.abs() <= 3) & (dy.abs() <= 3)).float())
    dx, dy = offsets(centroid(heat, torch.ones_like(heat)), size)
    if stride == 2:
        return centroid(heat, (1 - (dx**2 + dy**2) / 4).clamp_min(0))
    cubic = (1 - dx.abs() ** 3 / 8).clamp_min(0) * (1 - dy.abs() ** 3 / 8).clamp_min(0)
    return centroid(heat, cubic)


def gaussian(centre: Tensor, size: int, sigma: float) -> Tensor:
    dx, dy = offsets(centre, size)
    return (-(dx**2 + dy**2) / (2 * sigma**2)).exp()


def plain_loss(net: PlainNetwork, truth: Truth, config: Config, epoch: int) -> Tensor:
    """Return the total loss of A1B1C1D0E1."""
    units = Units.of(config)
    heatmaps, image = net(truth.frames)
    cone = gaussian(truth.position, config.image_size, 3 * config.radius_px)
    cone = cone / cone.amax((-2, -1), keepdim=True)
    total = functional.binary_cross_entropy_with_logits(image, truth.frames)
    total = total + ((torch.sigmoid(image) - truth.frames).abs() * cone).mean()
    for logits, stride in zip(heatmaps, (4, 2, 1), strict=True):
        heat = torch.sigmoid(logits)
        target = gaussian(truth.position / stride, logits.shape[-1], config.target_sigma)
        positive = target > 0.5
        gain = positive * (1 - heat) ** 2 * functional.logsigmoid(logits)
        loss = (1 - target) ** 4 * heat**2 * functional.logsigmoid(-logits)
        total = total - (gain + loss).sum() / positive.sum()
        said = trajectory(stride * soft_position(heat, stride), units)
        total = total + ramp(epoch, 0.001, config.pills_ramp) * (
            (said.position - truth.position).abs().sum(-1).mean()
            + (said.velocity - truth.velocity).abs().sum(-1).mean()
            + 0.01 * (said.bounce - truth.bounce).abs().mean()
        )
    return total


def plain_read_out(net: PlainNetwork, frames: Tensor, units: Units) -> list[Tensor]:
    """Return the soft, hard and physics outputs at every scale."""
    outputs = []
    for logits, stride in zip(net(frames)[0], (4, 2, 1), strict=True):
        heat, size = torch.sigmoid(logits), logits.shape[-1]
        peak = heat.flatten(-2).argmax(-1)
        soft = stride * soft_position(heat, stride)
        hard = stride * torch.stack([peak % size, peak // size], -1)
        outputs += [soft, hard, *trajectory(soft, units)]
    return outputs
