"""The network of the paper: shared encoder, split bottleneck, decoder with heatmap skips.

The encoder and its two heads see each frame once; windows of three consecutive frames are formed
behind them, so that neighbouring windows share the work on the frames that they share.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from pit_model.config import Config
from pit_model.dataset import windows

WINDOW = 3
"""Frames of a window, T in the paper."""
RESIDUAL = 6
"""Residual channels of a frame, C_r in the paper."""
STRIDES = (4, 2, 1)
"""Image pixels per heatmap pixel at the three scales, coarse to fine."""


class Maps(NamedTuple):
    """What the network returns for N windows, all in logit space."""

    heatmaps: tuple[Tensor, Tensor, Tensor]
    """(N, 3, S/4, S/4), (N, 3, S/2, S/2) and (N, 3, S, S): one map for each frame."""
    image: Tensor
    """(N, 3, S, S): the reconstruction; empty if not requested."""


class ConvNorm(nn.Module):
    """Conv3×3–BN, without a bias in the convolution, since BN subtracts it."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, 3, padding=1, bias=False)
        self.norm = nn.BatchNorm2d(outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Map (M, inputs, S, S) to (M, outputs, S, S)."""
        y: Tensor = self.norm(self.conv(x))
        return y


class ResBlock(nn.Module):
    """Conv3×3–BN–ReLU–Conv3×3–BN + skip, then ReLU."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.first = ConvNorm(channels, channels)
        self.second = ConvNorm(channels, channels)

    def forward(self, x: Tensor) -> Tensor:
        """Map (M, channels, S, S) to the same shape."""
        y: Tensor = self.second(self.first(x).relu_())
        return y.add_(x).relu_()


class Encoder(nn.Module):
    """Two stages of Conv–ResBlock–Pool: (M, 1, S, S) to (M, 64, S/4, S/4)."""

    def __init__(self) -> None:
        super().__init__()
        self.conv1 = ConvNorm(1, 32)
        self.res1 = ResBlock(32)
        self.conv2 = ConvNorm(32, 64)
        self.res2 = ResBlock(64)

    def forward(self, x: Tensor) -> Tensor:
        """Encode M frames, each separately."""
        x = functional.max_pool2d(self.res1(self.conv1(x).relu_()), 2, 2)  # (M, 32, S/2, S/2)
        return functional.max_pool2d(self.res2(self.conv2(x).relu_()), 2, 2)  # (M, 64, S/4, S/4)


class Decoder(nn.Module):
    """The fused bottleneck to heatmaps at S/2 and S and to the reconstruction.

    Factor A switches the gradient that flows back through heatmaps on their way into the decoder
    (in D56 and in each skip), factor B the one through the residual channels.
    """

    def __init__(self, heatmap_gradient: bool, residual_gradient: bool) -> None:
        super().__init__()
        self.heatmap_gradient = heatmap_gradient
        self.residual_gradient = residual_gradient
        self.conv0 = nn.Conv2d(WINDOW * (1 + RESIDUAL), 24, 3, padding=1)
        self.up1 = nn.ConvTranspose2d(24, 16, 2, stride=2)
        self.center2 = nn.Conv2d(16 + WINDOW, WINDOW, 1)
        self.up2 = nn.ConvTranspose2d(16 + WINDOW, 8, 2, stride=2)
        self.center4 = nn.Conv2d(8 + 2 * WINDOW, WINDOW, 1)
        self.image = nn.Conv2d(8 + 2 * WINDOW, WINDOW, 1)

    def forward(
        self, logits: Tensor, residual: Tensor, with_image: bool
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Decode heatmap logits (N, 3, s, s) and residual (N, 18, s, s) to logits at 2s, at 4s, and
        Î."""
        coarse = self._heatmap(logits)  # (N, 3, s, s)
        if not self.residual_gradient:
            residual = residual.detach()
        d1 = self.conv0(torch.cat([coarse, residual], 1))  # (N, 24, s, s)
        d2 = torch.cat([self.up1(d1).relu_(), _up(coarse, 2)], 1)  # (N, 19, 2s, 2s)
        middle = self.center2(d2)  # (N, 3, 2s, 2s)
        skips = [_up(self._heatmap(middle), 2), _up(coarse, 4)]
        d4 = torch.cat([self.up2(d2).relu_(), *skips], 1)  # (N, 14, 4s, 4s)
        return middle, self.center4(d4), self.image(d4) if with_image else d4.new_empty(0)

    def _heatmap(self, logits: Tensor) -> Tensor:
        """Return a heatmap as input of the decoder: without gradient if A = 0."""
        return torch.sigmoid(logits if self.heatmap_gradient else logits.detach())


class Network(nn.Module):
    """Frames to heatmaps at three scales and the reconstruction, for windows of three frames."""

    def __init__(self, config: Config) -> None:
        super().__init__()
        self.fuse_relu = config.fuse_relu
        self.bf16 = config.bf16
        self.encoder = Encoder()
        self.center = nn.Conv2d(64, 1, 1)
        self.residual = nn.Conv2d(64, RESIDUAL, 3, padding=1)
        fused = WINDOW * (1 + RESIDUAL)
        self.fuse = nn.Conv2d(fused, fused, 1)
        self.decoder = Decoder(config.A, config.B)
        if self.bf16:
            self.encoder.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, frames: Tensor, with_image: bool = True) -> Maps:
        """Map K chunks of L frames, (K, L, S, S), to their N = K·(L − 2) windows.

        Windows are ordered by chunk and then by time; (N, 3, …) holds the frames of a window.
        """
        fused = self.fused_windows(frames)
        if self.fuse_relu == "all":
            fused = fused.relu_()
        logits, rest = fused[:, :WINDOW], fused[:, WINDOW:]  # (N, 3, s, s), (N, 18, s, s)
        if self.fuse_relu == "residual":
            rest = rest.relu()
        middle, fine, image = self.decoder(logits, rest, with_image)
        return Maps((logits, middle, fine), image)

    def fused_windows(self, frames: Tensor) -> Tensor:
        """Fuse the windows of chunks (K, L, S, S), without the ReLU: (N, 3 + 18, s, s)."""
        center, residual = self._encode(frames.flatten(0, 1)[:, None])
        chunks = frames.shape[:2]
        center = windows(center.view(*chunks, *center.shape[1:]))  # (N, 3, 1, s, s)
        residual = windows(residual.view(*chunks, *residual.shape[1:]))  # (N, 3, 6, s, s)
        fused: Tensor = self.fuse(torch.cat([center.flatten(1, 2), residual.flatten(1, 2)], 1))
        return fused

    def _encode(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Encode frames (M, 1, S, S) to heatmaps (M, 1, s, s) and residuals (M, 6, s, s).

        On the CPU all of it runs in the blocked layout of oneDNN: its convolutions are fastest
        there, above all the gradient of the weights, and nothing is rearranged in between. With
        `bf16` the encoder alone is in bfloat16: what positions are read from stays in 32 bits.
        """
        blocked = not self.bf16 and _in_blocks(x)
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=self.bf16):
            encoded = self.encoder(x.to_mkldnn() if blocked else x)  # (M, 64, s, s)
        encoded = encoded.float() if self.bf16 else encoded
        center, residual = self.center(encoded), self.residual(encoded).relu_()
        return (center.to_dense(), residual.to_dense()) if blocked else (center, residual)


def _in_blocks(x: Tensor) -> bool:
    """Return whether the blocked layout of oneDNN can be used: float32 on the CPU, not compiled."""
    return (
        x.device.type == "cpu"
        and x.dtype == torch.float32
        and not torch.compiler.is_compiling()
        and torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    )


def _up(x: Tensor, factor: int) -> Tensor:
    """Enlarge maps bilinearly."""
    return functional.interpolate(x, scale_factor=factor, mode="bilinear", align_corners=False)
