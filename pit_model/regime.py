"""Input of the network from a video: the ball bright, the background dark, both within [0, 1]."""

from typing import NamedTuple

from torch import Tensor
from torch.nn import functional

BRIGHT = 0.9
"""Share of the frames whose brightest spot is not clipped; frames without a ball are below it."""
SAMPLE = 128
"""Maximum number of frames, evenly spaced, for measuring the levels."""


class Regime(NamedTuple):
    """Conversion of a video's frames to the input of the network."""

    width: int
    """Width in pixels; the height follows."""
    dark: bool
    """Whether the ball is darker than its background, so that frames are inverted."""
    subtract: bool
    """Whether the median of the video is subtracted."""


class Levels(NamedTuple):
    """Offset and scale that map a video, inverted if its ball is dark, to [0, 1]."""

    floor: Tensor
    """(h, w) or a single value."""
    top: Tensor
    """A single value."""


def resize(frames: Tensor, width: int) -> Tensor:
    """Scale frames (T, H, W) to about a width; both sides become multiples of 8.

    Each pixel is the mean of what it covers; pixel centres lie at (index + 1/2) of a pixel's size.
    """
    height = frames.shape[1] * width / frames.shape[2]
    size = max(16, round(height / 8) * 8), max(16, round(width / 8) * 8)
    if size == frames.shape[1:]:
        return frames
    return functional.interpolate(
        frames[:, None], size, mode="bilinear", antialias=True, align_corners=False
    )[:, 0]


def levels(frames: Tensor, dark: bool, subtract: bool) -> Levels:
    """Measure grey frames (T, h, w) in [0, 1].

    The floor is the median of each pixel or, for raw frames, the darkest hundredth of all; the
    brightest spot of most frames lies `top` above it.
    """
    bright = 1 - frames if dark else frames
    flat = bright.flatten()
    darkest = flat.kthvalue(max(1, len(flat) // 100)).values
    floor = bright.median(0).values if subtract else darkest
    spots = functional.avg_pool2d((bright - floor).clamp_min(0)[:, None], 3, 1).flatten(1).amax(1)
    return Levels(floor, spots.quantile(BRIGHT).clamp_min(1e-3))


def network_input(frames: Tensor, dark: bool, measured: Levels) -> Tensor:
    """Convert grey frames (T, h, w) in [0, 1] to the network's regime, in the same shape."""
    bright = 1 - frames if dark else frames
    return ((bright - measured.floor) / measured.top).clamp(0, 1)
