"""Videos in and out: films of frames, and clips as the tracker takes them."""

from collections.abc import Callable, Iterable, Iterator
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from pit_model.config import Config
from pit_model.dataset import Chunks, make_split
from pit_model.errors import PitError
from pit_model.network import WINDOW
from pit_model.regime import resize

if TYPE_CHECKING:
    import av

FORMATS = ("gif", "mp4")
MILLISECONDS = 80
"""Time that a frame is shown: half the speed of the simulation."""
LEAST_SIDE = 224
"""Smaller frames are enlarged, pixel by pixel, to about this size."""
LARGEST = 448
"""Width to which larger videos are scaled while reading."""
GREY = torch.tensor([0.299, 0.587, 0.114])
"""Weights of red, green and blue."""

Listener = Callable[[str, int, int], None]
"""Callback for progress: the activity, the amount done and the total."""


class Clip(NamedTuple):
    """T frames of a static camera."""

    frames: Tensor
    """(T, h, w), grey, 8 bits; a smaller copy of the video if that is large."""
    time: NDArray[np.float64]
    """(T,), seconds."""
    fps: float
    """Frames per second on average."""
    size: tuple[int, int]
    """Width and height of the video in pixels."""


def clip_of(frames: ArrayLike, fps: float = 1.0) -> Clip:
    """Build a clip from frames in memory.

    Parameters
    ----------
    frames
        (T, H, W) grey or (T, H, W, 3) colour; 0 to 255 if whole numbers, else 0 to 1.
    fps
        Frames per second; without it a frame is the unit of time.
    """
    array = np.asarray(frames)
    if array.ndim not in (3, 4) or (array.ndim == 4 and array.shape[3] != 3) or 0 in array.shape:
        raise PitError(f"frames have shape {array.shape}; expected (T, H, W) or (T, H, W, 3)")
    values = torch.from_numpy(np.ascontiguousarray(array))
    if values.is_floating_point():
        values = values * 255
    grey = values.float() @ GREY if values.ndim == 4 else values.float()
    size = array.shape[2], array.shape[1]
    return Clip(grey.round().byte(), np.arange(len(grey)) / fps, fps, size)


def read_clip(
    path: Path, fps: float | None, width: int, progress: Listener = lambda what, done, total: None
) -> Clip:
    """Read a video file; frames wider than `width` are scaled down to it.

    Times are those that the file gives to its frames, unless `fps` spaces them evenly.
    """
    frames, times = [], []
    size = (0, 0)
    for picture, time, total in read_frames(path):
        grey = torch.from_numpy(picture).float() @ GREY
        size = grey.shape[1], grey.shape[0]
        if size[0] > width:
            grey = resize(grey[None], width)[0]
        frames.append(grey.round().byte())
        times.append(time)
        progress("reading", len(frames), total)
    if len(frames) < WINDOW:
        count = "1 frame" if len(frames) == 1 else f"{len(frames)} frames"
        raise PitError(f"{path} has {count}; expected {WINDOW} or more")
    seconds = np.array(times, float) - times[0]
    if fps is None:
        fps = float((len(seconds) - 1) / seconds[-1]) if seconds[-1] > 0 else 0.0
        if fps <= 0 or (np.diff(seconds) <= 0).any():
            raise PitError(f"{path} has no times of its frames; give --fps")
    else:
        seconds = np.arange(len(frames)) / fps
    return Clip(torch.stack(frames), seconds, fps, size)


def read_frames(path: Path) -> Iterator[tuple[NDArray[np.uint8], float, int]]:
    """Yield the pictures (H, W, 3) of a video, upright, with their times and their number.

    The number is what the file promises, 0 if it does not.
    """
    import av

    try:
        with av.open(str(path)) as container:
            if not container.streams.video:
                raise PitError(f"{path} contains no video")
            stream = container.streams.video[0]
            stream.thread_type = "AUTO"
            for frame in container.decode(stream):
                picture = frame.to_ndarray(format="rgb24")
                turned = np.rot90(picture, frame.rotation // 90)
                yield np.ascontiguousarray(turned), _seconds(frame), stream.frames
    except av.FFmpegError as error:
        raise PitError(f"{path} cannot be read as a video: {error.strerror}") from error


def _seconds(frame: "av.VideoFrame") -> float:
    return float("nan") if frame.time is None else frame.time


def write_sequences(config: Config, split: str, out: Path, film: str) -> list[Path]:
    """Write each sequence of a split as ``<split>-<number>.npz`` and as a film next to it.

    The npz holds `frames` (T, S, S) in 8 bits, `position` (T, 2) in pixels, `velocity` (T, 2) in
    pixels per frame, and `bounce` (T,).
    """
    out.mkdir(parents=True, exist_ok=True)
    data = make_split(config, split)
    paths = []
    for i in range(len(data)):
        batch = data.batch(Chunks((i,), (0,), config.frames))
        parts = {name: part[0].numpy() for name, part in batch._asdict().items()}
        parts["frames"] = np.rint(255 * parts["frames"]).astype(np.uint8)
        paths.append(out / f"{split}-{i:03d}.npz")
        np.savez_compressed(paths[-1], **parts)
        write_video(paths[-1].with_suffix(f".{film}"), parts["frames"])
    return paths


def write_video(path: Path, frames: NDArray[np.uint8]) -> None:
    """Write grey frames (T, S, S) as a gif or mp4, according to the suffix of the name."""
    factor = max(1, round(LEAST_SIDE / frames.shape[-1]))
    large = frames.repeat(factor, axis=1).repeat(factor, axis=2)
    if path.suffix == ".mp4":
        write_mp4(path, large, 1000 / MILLISECONDS)
    else:
        _write_gif(path, large)


def check_format(name: str) -> None:
    """Refuse a format that is unknown or that this machine cannot write."""
    if name not in FORMATS:
        raise PitError(f"video format {name!r} is unknown; expected one of {', '.join(FORMATS)}")
    if name == "mp4" and find_spec("av") is None:
        raise PitError("mp4 needs PyAV: pip install 'pit-doe[video]'; or use gif")


def write_mp4(path: Path, pictures: Iterable[NDArray[np.uint8]], fps: float) -> None:
    """Write pictures, (H, W) grey or (H, W, 3) colour, as H.264; sides are cut to even numbers."""
    import av

    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=Fraction(fps).limit_denominator(1001))
        stream.pix_fmt = "yuv420p"
        for number, picture in enumerate(pictures):
            height, width = (side // 2 * 2 for side in picture.shape[:2])
            if number == 0:
                stream.width, stream.height = width, height
            kind = "rgb24" if picture.ndim == 3 else "gray"
            even = np.ascontiguousarray(picture[:height, :width])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(even, format=kind)))
        container.mux(stream.encode())


def _write_gif(path: Path, frames: NDArray[np.uint8]) -> None:
    from PIL import Image

    first, *rest = [Image.fromarray(frame) for frame in frames]
    first.save(path, save_all=True, append_images=rest, duration=MILLISECONDS, loop=0)
