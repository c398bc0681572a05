"""Frames to a film that a person can look at."""

from collections.abc import Iterable
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pit_model.config import Config
from pit_model.dataset import Chunks, make_split
from pit_model.errors import PitError

FORMATS = ("gif", "mp4")
MILLISECONDS = 80
"""How long a frame is shown: half the speed of the simulation."""
LEAST_SIDE = 224
"""Smaller frames are enlarged, pixel by pixel, to about this size."""


def write_sequences(config: Config, split: str, out: Path, film: str) -> list[Path]:
    """Write each sequence of a split as ``<split>-<number>.npz`` and as a film beside it.

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
    """Write grey frames (T, S, S) as a gif or mp4, by the ending of the name."""
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
        raise PitError("mp4 needs PyAV: pip install 'pit-doe[video]'; or take gif")


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
