"""Splits of the data as tensors, and the batches of an epoch.

A split holds trajectories and, where there is noise, one background per video; frames are drawn on
the training device when a batch asks for them. A batch is K chunks of L consecutive frames, each
from a video of its own choosing; a chunk holds L − 2 windows of three frames, and each of its
frames is encoded once for all the windows it stands in.

Pixel (row i, column j) has its centre at x = j, y = i, so that the index of a pixel is its
coordinate: the paper reads coordinates off a heatmap in this way (k mod W, k // W).
"""

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from pit_model.config import Config, Units
from pit_model.simulate import simulate_split, stream

_ORDER, _NOISE = 1, 2  # keys of streams other than the one that draws the initial conditions


class Batch(NamedTuple):
    """K chunks of L consecutive frames: K·(L − 2) windows of three."""

    frames: Tensor
    """(K, L, S, S), intensities in [0, 1]."""
    position: Tensor
    """(K, L, 2), pixels."""
    velocity: Tensor
    """(K, L, 2), pixels per frame."""
    bounce: Tensor
    """(K, L), 1 where a wall was hit since the frame before."""


class Chunks(NamedTuple):
    """Position of a batch in its split: the videos, first frames and number of frames."""

    videos: tuple[int, ...]
    starts: tuple[int, ...]
    length: int


@dataclass(frozen=True)
class Split:
    """The videos of one part of the data."""

    config: Config
    position: Tensor
    """(V, T, 2), pixels."""
    velocity: Tensor
    """(V, T, 2), pixels per frame."""
    bounce: Tensor
    """(V, T)."""
    noise: Tensor | None
    """(V, S, S): the background of each video; none for clean videos or noise of every frame."""
    noise_keys: tuple[int, ...]
    """Streams from which the noise of each video is drawn."""
    films: Tensor | None = None
    """(V, T, S, S), 8 bits: the videos of the scene `camera`; others are drawn batch by batch."""

    def __len__(self) -> int:
        return len(self.position)

    def batch(self, chunks: Chunks) -> Batch:
        """Draw the frames of some chunks and collect their targets."""
        device = self.position.device
        video = torch.tensor(chunks.videos, device=device)[:, None]  # (K, 1)
        start = torch.tensor(chunks.starts, device=device)[:, None]
        time = start + torch.arange(chunks.length, device=device)  # (K, L)
        position = self.position[video, time]  # (K, L, 2)
        if self.films is None:
            radius, antialias = self.config.radius_px, self.config.antialias
            drawn = draw(self._background(chunks), position.flatten(0, 1), radius, antialias)
            frames = drawn.view(*time.shape, *drawn.shape[1:])  # (K, L, S, S)
        else:
            frames = self.films[video, time].float() / 255
        return Batch(
            frames,
            position,
            self.velocity[video, time],
            self.bounce[video, time],
        )

    def _background(self, chunks: Chunks) -> Tensor:
        """Return the backgrounds of some chunks: (K·L, S, S)."""
        size, device = self.config.image_size, self.position.device
        if self.config.sigma == 0:
            count = len(chunks.videos) * chunks.length
            return torch.zeros(1, size, size, device=device).expand(count, size, size)
        if self.noise is not None:
            index = torch.tensor(chunks.videos, device=device).repeat_interleave(chunks.length)
            return self.noise[index]
        keys = (
            self.noise_keys[video] + start + t
            for video, start in zip(chunks.videos, chunks.starts, strict=True)
            for t in range(chunks.length)
        )
        return torch.stack([noise_image(k, size, self.config.sigma, device) for k in keys])


def make_split(config: Config, name: str, device: str | torch.device = "cpu") -> Split:
    """Simulate one part of the data (`train`, `val` or `test`) and put it on a device."""
    count = {
        "train": config.train_sequences,
        "val": config.val_sequences,
        "test": config.test_sequences,
    }[name]
    data_seed = (config.data_seed,)
    if config.scene == "camera":
        return _film_split(config, name, count, device)
    flight = simulate_split(name, count, config.frames, Units.of(config), data_seed)
    keys = tuple(int(stream(data_seed, name, i, _NOISE).integers(2**62)) for i in range(count))
    noise = None
    if config.sigma > 0 and config.noise == "static":
        images = [noise_image(key, config.image_size, config.sigma) for key in keys]
        noise = torch.stack(images).to(device)
    position, velocity, bounce = (
        torch.from_numpy(part).to(device=device, dtype=torch.float32) for part in flight
    )
    return Split(config, position, velocity, bounce, noise, keys)


def _film_split(config: Config, name: str, count: int, device: str | torch.device) -> Split:
    """Draw the videos of the scene `camera`; the ball leaves the picture in training videos only.

    A metric is about balls that are there.
    """
    from pit_model.camera import draw_film  # loads SciPy, which other scenes do not need

    drawn = [
        draw_film(
            stream((config.data_seed,), name, i), config.image_size, config.frames, name == "train"
        )
        for i in range(count)
    ]
    films = torch.stack([(255 * frames).round().byte() for frames, _ in drawn]).to(device)
    position, velocity, bounce = (
        torch.from_numpy(np.stack(parts)).to(device=device, dtype=torch.float32)
        for parts in zip(*(flight for _, flight in drawn), strict=True)
    )
    return Split(config, position, velocity, bounce, None, (), films)


def training_batches(split: Split, seed: int, epoch: int) -> Iterator[Batch]:
    """Yield the batches of an epoch; each window of the split is in exactly one of them."""
    return map(split.batch, epoch_chunks(split.config, len(split), seed, epoch))


def evaluation_batches(split: Split) -> Iterator[Batch]:
    """Yield whole videos in order, a few at a time."""
    step = split.config.eval_videos
    for first in range(0, len(split), step):
        videos = tuple(range(first, min(first + step, len(split))))
        yield split.batch(Chunks(videos, (0,) * len(videos), split.config.frames))


def windows(x: Tensor) -> Tensor:
    """Slide a window of three frames over chunks: (K, L, …) to (K·(L − 2), 3, …)."""
    return x.unfold(1, 3, 1).movedim(-1, 2).flatten(0, 1)


def epoch_chunks(config: Config, videos: int, seed: int, epoch: int) -> list[Chunks]:
    """Cut the videos of an epoch into chunks and deal these into batches.

    The T − 2 windows of a video become as few chunks as `chunk_windows` allows, with lengths that
    differ by at most one, cut in an order that is random for each video and epoch. Chunks of one
    length are dealt into batches of nearly equal size, at most `batch_windows` windows each, and
    the batches are shuffled. The order depends on (seed, epoch) alone, so that a resumed run
    continues with the batches it would have had.
    """
    rng = np.random.default_rng([seed, _ORDER, epoch])
    windows = config.frames - 2
    longest = min(config.chunk_windows, config.batch_windows, windows)
    parts = -(-windows // longest)
    short, longer = divmod(windows, parts)
    sizes = np.array([short + 1] * longer + [short] * (parts - longer))
    by_size: dict[int, list[tuple[int, int]]] = {int(size): [] for size in sizes}
    for video in range(videos):
        cut = rng.permutation(sizes)
        starts = np.cumsum(cut) - cut
        for size, start in zip(cut.tolist(), starts.tolist(), strict=True):
            by_size[size].append((video, start))
    batches = []
    for size, places in by_size.items():
        per_batch = config.batch_windows // longest
        order = rng.permutation(len(places))
        for some in np.array_split(order, -(-len(order) // per_batch)):
            of_video, of_start = zip(*(places[i] for i in some), strict=True)
            batches.append(Chunks(of_video, of_start, size + 2))
    return [batches[i] for i in rng.permutation(len(batches))]


def noise_image(key: int, size: int, sigma: float, device: torch.device | str = "cpu") -> Tensor:
    """Background of standard deviation `sigma`, clipped to [0, 1]; the key decides it: (S, S).

    Each kind of device has random numbers of its own: drawn on the CPU it is the same whatever
    device trains, drawn on a GPU it need not be sent there.
    """
    generator = torch.Generator(device).manual_seed(key)
    noise = torch.randn(size, size, generator=generator, device=device)
    return noise.mul_(sigma).clamp_(0.0, 1.0)


def draw(background: Tensor, position: Tensor, radius: float, antialias: bool = False) -> Tensor:
    """Draw a ball of intensity 1 on each background.

    A pixel is ball if its centre lies within the radius of the position; with `antialias` it is
    blended by its coverage, ``min(max(r + 1/2 − distance, 0), 1)``. Only the few pixels around the
    position are computed.

    Parameters
    ----------
    background
        (N, S, S), in [0, 1].
    position
        (N, 2), x and y in pixels.

    Returns
    -------
    (N, S, S), a new tensor.
    """
    n, size, _ = background.shape
    reach = ceil(radius + 1)
    around = torch.arange(-reach, reach + 1, device=position.device)
    cells = position.round().long()[:, :, None] + around  # (N, 2, R): columns, rows
    off = cells - position[:, :, None]  # (N, 2, R)
    squared = off[:, 0, None, :] ** 2 + off[:, 1, :, None] ** 2  # (N, R, R): row, column
    if antialias:
        coverage = (radius + 0.5 - squared.sqrt()).clamp(0.0, 1.0)
    else:
        coverage = (squared <= radius**2).to(background.dtype)
    on_image = ((cells >= 0) & (cells < size)).to(background.dtype)
    coverage = coverage * on_image[:, 0, None, :] * on_image[:, 1, :, None]
    inside = cells.clamp(0, size - 1)
    index = (inside[:, 1, :, None] * size + inside[:, 0, None, :]).flatten(1)  # (N, R·R)
    frames = background.clone(memory_format=torch.contiguous_format).flatten(1)
    below = frames.gather(1, index)
    value = below + coverage.flatten(1) * (1.0 - below)
    # Pixels beyond the border are folded onto it with coverage 0, and the maximum drops them.
    return frames.scatter_reduce_(1, index, value, "amax").view(n, size, size)
