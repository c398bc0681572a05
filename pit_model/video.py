"""Frames to a film that a person can look at."""

import shutil
import subprocess
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
        _write_mp4(path, large)
    else:
        _write_gif(path, large)


def check_format(name: str) -> None:
    """Refuse a format that is unknown or that this machine cannot write."""
    if name not in FORMATS:
        raise PitError(f"video format {name!r} is unknown; expected one of {', '.join(FORMATS)}")
    if name == "mp4" and shutil.which("ffmpeg") is None:
        raise PitError("mp4 needs the program ffmpeg, which is not here; install it or take gif")


def _write_gif(path: Path, frames: NDArray[np.uint8]) -> None:
    from PIL import Image

    first, *rest = [Image.fromarray(frame) for frame in frames]
    first.save(path, save_all=True, append_images=rest, duration=MILLISECONDS, loop=0)


def _write_mp4(path: Path, frames: NDArray[np.uint8]) -> None:
    side = frames.shape[-1]
    command = ["ffmpeg", "-y", "-loglevel", "error", "-f", "rawvideo", "-pix_fmt", "gray"]
    command += ["-s", f"{side}x{side}", "-r", f"{1000 / MILLISECONDS}", "-i", "-"]
    done = subprocess.run(
        [*command, "-pix_fmt", "yuv420p", str(path)],
        input=frames.tobytes(),
        capture_output=True,
        check=False,
    )
    if done.returncode != 0:
        raise PitError(f"ffmpeg could not write {path.name}: {done.stderr.decode().strip()}")
