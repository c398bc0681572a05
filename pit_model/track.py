"""Track a ball in a video: network, local read-out, arcs of exact flight.

Covers one ball at a time before a camera that stands still and looks across the plane of flight.
Several balls, moving cameras and perspective are not covered.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike
from torch import Tensor
from torch.nn import functional

from pit_model.arcs import Detections, Floats
from pit_model.config import Config
from pit_model.errors import PitError
from pit_model.expectation import RADIUS, coarse_to_fine, hard_argmax
from pit_model.hits import Flights, fit_flights
from pit_model.network import WINDOW, Network
from pit_model.regime import SAMPLE, Levels, Regime, levels, network_input, resize
from pit_model.rundir import SHIPPED, read_weights
from pit_model.video import Clip, Listener, clip_of

WIDTHS = (224, 448, 112)
"""Widths to try, in this order, after that of a clip narrower than the first."""
TRIAL = 40
"""Maximum number of frames in a trial."""
NEARLY = 0.9
"""Trials with at least this share of the most confirmed frames are among the best."""
CANDIDATES = 3
"""Candidate positions per frame for the arcs."""
CLEAR = RADIUS + 2
"""Half the side of the square that is cleared around a peak before the next is sought."""
DOUBT = 0.1
"""Minimum confidence of a candidate position."""
TOLERANCE = 224
"""Tolerance of a confirming detection as a fraction of the clip's width, at least one pixel of the
network."""
BATCH = 1_000_000
"""Maximum number of pixels per network pass."""


def quiet(what: str, done: int, total: int) -> None:
    """Show no progress."""


class Track(NamedTuple):
    """Result for a clip of T frames.

    Positions are in pixels of the clip, whose pixel centres lie at whole numbers; y points down.
    """

    clip: Clip
    regime: Regime
    detections: Detections
    flights: Flights
    scale: float | None
    """Pixels per metre: given, or from g."""
    g: float | None
    """Gravity in m/s²: given, or from the scale."""
    measured: str | None
    """``g`` or ``scale``, whichever follows from the other; None if neither is known."""

    @property
    def position(self) -> Floats:
        """(T, 2): detections that an arc confirms; NaN elsewhere."""
        choice = self.flights.choice
        chosen = self.detections.position[np.arange(len(choice)), choice.clip(0)]
        return np.where(choice[:, None] >= 0, chosen, np.nan)

    @property
    def confidence(self) -> Floats:
        """(T,): confidence of the detection that an arc confirms, or else of the best one."""
        choice = self.flights.choice.clip(0)
        return np.asarray(self.detections.confidence[np.arange(len(choice)), choice])


class Tracker:
    """A trained network that finds a ball in videos."""

    def __init__(self, network: Network, config: Config) -> None:
        self.network = network.eval()
        self.config = config

    @classmethod
    def load(cls, weights: str | Path = SHIPPED) -> "Tracker":
        """Load the weights of a file or of a trained run's directory."""
        config, state = read_weights(Path(weights))
        network = Network(config)
        network.load_state_dict(state)
        return cls(network, config)

    def track(
        self,
        frames: ArrayLike | Clip,
        fps: float = 1.0,
        *,
        width: int | None = None,
        dark: bool | None = None,
        subtract: bool | None = None,
        scale: float | None = None,
        g: float | None = None,
        progress: Listener = quiet,
    ) -> Track:
        """Track the ball of a clip.

        Parameters
        ----------
        frames, fps
            A clip, or frames and frames per second as in `clip_of`.
        width
            Width in pixels that the network sees; a few are tried by default.
        dark, subtract
            Whether the ball is darker than what is behind it, and whether the median of the clip is
            subtracted; both are tried by default.
        scale, g
            Pixels per metre, or gravity in m/s²: either gives the other.
        progress
            Hears what is being done.
        """
        clip = frames if isinstance(frames, Clip) else clip_of(frames, fps)
        if len(clip.frames) < WINDOW:
            raise PitError(f"the clip has {len(clip.frames)} frames; expected {WINDOW} or more")
        if scale is not None and g is not None:
            raise PitError("scale and g are both given; expected one, which determines the other")
        regime = self.choose_regime(clip, width, dark, subtract, progress)
        return self.track_in(regime, clip, scale, g, progress)

    def track_in(
        self,
        regime: Regime,
        clip: Clip,
        scale: float | None = None,
        g: float | None = None,
        progress: Listener = quiet,
    ) -> Track:
        """Track the ball of a clip that the network sees in a given regime."""
        detections = self.detect(clip, regime, range(len(clip.frames)), progress)
        flights = fit_flights(detections, _tolerance(clip, regime))
        pull = flights.gravity * clip.fps**2  # px/s²
        measured = None
        if flights.arcs and g is not None:
            measured, scale = "scale", pull / g
        elif flights.arcs and scale is not None:
            measured, g = "g", pull / scale
        return Track(clip, regime, detections, flights, scale, g, measured)

    def choose_regime(
        self,
        clip: Clip,
        width: int | None,
        dark: bool | None,
        subtract: bool | None,
        progress: Listener = quiet,
    ) -> Regime:
        """Try what is not given on a part of the clip; choose by the arcs."""
        own = clip.size[0]
        widths = [own] * (own < WIDTHS[0]) + [w for w in WIDTHS if w <= own]
        widths = widths if width is None else [width]
        looks = [
            (is_dark, has_median)
            for is_dark in ((False, True) if dark is None else (dark,))
            for has_median in ((True, False) if subtract is None else (subtract,))
        ]
        first = Regime(widths[0], *looks[0])
        if len(widths) * len(looks) == 1:
            return first
        part = _busiest(clip)
        trials: dict[Regime, Flights] = {}
        for tried, (w, look) in enumerate(product(widths, looks)):
            if w != widths[0] and (best := _best(trials)) and look != best[1:]:
                continue  # the first width that sees a ball decides polarity and background
            progress("trying", tried, len(widths) * len(looks))
            regime = Regime(w, *look)
            detections = self.detect(clip, regime, part)
            trials[regime] = fit_flights(detections, _tolerance(clip, regime))
        progress("trying", len(widths) * len(looks), len(widths) * len(looks))
        return _best(trials) or first

    @torch.inference_mode()
    def detect(
        self, clip: Clip, regime: Regime, part: range, progress: Listener = quiet
    ) -> Detections:
        """Find the most likely positions of a ball in consecutive frames, in pixels of the clip."""
        peaks = []
        for heatmap in self._heatmaps(clip, regime, part):
            peaks.append(read_peaks(heatmap))
            progress("tracking", sum(len(height) for _, height in peaks), len(part))
        position, confidence = (torch.cat(parts) for parts in zip(*peaks, strict=True))
        height, width = heatmap.shape[1:]
        scale = torch.tensor([clip.size[0] / width, clip.size[1] / height])
        in_clip = (position + 0.5) * scale - 0.5
        in_clip[confidence < DOUBT] = torch.nan
        time = clip.time[part.start : part.stop] * clip.fps
        return Detections(time, in_clip.double().numpy(), confidence.double().numpy())

    def _heatmaps(self, clip: Clip, regime: Regime, part: range) -> Iterator[Tensor]:
        """Yield heatmaps (n, h, w) of n frames at a time: means over the windows of a frame."""
        measured = measure(clip, regime)
        height, width = resize(clip.frames[:1].float(), regime.width).shape[1:]
        windows = len(part) - WINDOW + 1
        step = max(1, BATCH // (height * width) - WINDOW + 1)
        carried = torch.zeros(WINDOW - 1, height, width)
        for first in range(0, windows, step):
            inside = part[first : first + step + WINDOW - 1]
            grey = resize(clip.frames[inside.start : inside.stop].float() / 255, regime.width)
            inputs = network_input(grey, regime.dark, measured)
            heatmaps = torch.sigmoid(self.network(inputs[None], False).heatmaps[-1])  # (N, 3, h, w)
            total = torch.zeros(len(inside), height, width)
            total[: WINDOW - 1] = carried
            for k in range(WINDOW):
                total[k : k + len(heatmaps)] += heatmaps[:, k]
            frame = torch.arange(first, first + len(inside))
            count = frame.clamp(max=windows - 1) - (frame - WINDOW + 1).clamp(min=0) + 1
            carried = total[len(heatmaps) :].clone()
            complete = len(inside) if first + step >= windows else len(heatmaps)
            yield total[:complete] / count[:complete, None, None]


def read_peaks(heatmap: Tensor) -> tuple[Tensor, Tensor]:
    """Return positions (T, K, 2) and heights (T, K) of the highest peaks of maps (T, h, w)."""
    heatmap = heatmap.clone()
    rows, columns = (torch.arange(side) for side in heatmap.shape[1:])
    positions, heights = [], []
    for _ in range(CANDIDATES):
        positions.append(coarse_to_fine(heatmap))
        heights.append(heatmap.flatten(1).amax(1))
        x, y = hard_argmax(heatmap)[..., None].unbind(1)  # (T, 1) each
        beside = ((columns - x).abs() > CLEAR)[:, None, :] | ((rows - y).abs() > CLEAR)[:, :, None]
        heatmap *= beside
    return torch.stack(positions, 1), torch.stack(heights, 1)


def _best(trials: Mapping[Regime, Flights]) -> Regime | None:
    """Return, of the trials that confirm about most frames, the one with the least scatter."""
    confirmed = {regime: int(f.confirmed.sum()) for regime, f in trials.items()}
    most = max(confirmed.values(), default=0)
    good = [regime for regime, count in confirmed.items() if most and count >= NEARLY * most]
    return min(good, key=lambda regime: trials[regime].scatter, default=None)


def measure(clip: Clip, regime: Regime) -> Levels:
    """Measure the levels of a clip at the network's input size."""
    some = clip.frames[:: -(-len(clip.frames) // SAMPLE)].float() / 255
    return levels(resize(some, regime.width), regime.dark, regime.subtract)


def _tolerance(clip: Clip, regime: Regime) -> float:
    """Return the distance within which a detection confirms an arc, in pixels of the clip."""
    return clip.size[0] / min(TOLERANCE, regime.width)


def _busiest(clip: Clip) -> range:
    """Return the `TRIAL` consecutive frames with the largest changes."""
    if len(clip.frames) <= TRIAL:
        return range(len(clip.frames))
    parts = torch.split(clip.frames, TRIAL)  # a long clip as floats would not fit into memory
    small = torch.cat([functional.avg_pool2d(part.float(), 8, ceil_mode=True) for part in parts])
    change = small.diff(dim=0).abs().flatten(1).amax(1).double().numpy()
    sums = np.convolve(change, np.ones(TRIAL - 1), "valid")
    first = int(sums.argmax())
    return range(first, first + TRIAL)
