"""The paper's figures: compute the data of a run first (`inspect_run`), then draw."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray
from torch import Tensor

from pit_model.config import Config
from pit_model.dataset import Chunks, Split, make_split
from pit_model.errors import PitError
from pit_model.metrics import choose_epochs
from pit_model.predict import METRICS, predict
from pit_model.rundir import Trained, network_at
from pit_model.trainer import make_forward

EXAMPLES = (0, 5, 10)
"""Frames of the example figure, as in the paper."""
BLUE, ORANGE, BLACK = "#0072b2", "#d55e00", "#222222"
SKY, YELLOW, PALE = "#56b4e9", "#f0c040", "#f2f2f2"
"""Three frames over a dark frame."""

JUMP = 1e-3
"""Change of a velocity, beyond that of free flight, that counts as a jump, px/frame."""

Array = NDArray[np.float32]


class Inspection(NamedTuple):
    """A trained network on one test video of T frames, at the finest scale."""

    config: Config
    video: int
    frames: Array
    """(T, S, S), the input of the network."""
    heatmap: Array
    """(T, S, S), its prediction."""
    soft: Array
    """(T, 2), pixels."""
    physics: Array
    """(T, 2), pixels."""
    velocity: Array
    """(T, 2), pixels per frame."""
    true_position: Array
    true_velocity: Array
    true_bounce: Array
    """(T,)."""


def inspect_run(trained: Trained, video: int | None, device: torch.device) -> Inspection:
    """Run the network, at the epoch that the finest soft position chose, over a test video.

    Without a number the first video with a bounce in frames 4 to 8 is taken, as in the paper.
    """
    config = trained.config
    split = make_split(config, "test", device)
    video = _first_bounce(split) if video is None else video
    if not 0 <= video < len(split):
        raise PitError(f"there is no video {video}; expected 0 to {len(split) - 1}")
    best = choose_epochs(trained.history).get(f"B{config.image_size}")
    if best is None:
        raise PitError(
            "the run has no epoch with a finite position error: there is nothing to draw"
        )
    network = network_at(trained, best, device).eval()
    batch = split.batch(Chunks((video,), (0,), config.frames))
    with torch.inference_mode():
        forward = make_forward(network, config)
        fine = predict(forward, batch.frames, config, METRICS).scales[-1]
    outputs = (fine.heatmap, fine.soft, fine.position, fine.velocity)
    heatmap, soft, physics, velocity = (by_frame(x) for x in outputs)
    frames, *truth = (x[0].cpu().numpy() for x in batch)
    return Inspection(config, video, frames, heatmap, soft, physics, velocity, *truth)


def draw_examples(config: Config) -> Figure:
    """Draw frames 0, 5 and 10 of the first test video, clean on the left and noisy on the right."""
    settings = config.as_dict()
    times = [t for t in EXAMPLES if t < config.frames]
    figure = Figure(figsize=(2.0 * 2 * len(times), 2.5), layout="constrained")
    axes = figure.subplots(1, 2 * len(times), squeeze=False)[0]
    for noisy in (False, True):
        split = make_split(Config(**{**settings, "F": noisy}), "test")  # type: ignore[arg-type]
        frames = split.batch(Chunks((0,), (0,), config.frames)).frames[0].numpy()
        sigma = config.noise_sigma if noisy else 0
        for axis, t in zip(axes[len(times) * noisy :], times, strict=False):
            _show(axis, frames[t], "gray", 1.0)
            axis.set_title(f"σ = {sigma:g}, t = {t * config.dt:.2f} s", fontsize=9)
    return figure


def draw_heatmaps(inspection: Inspection) -> Figure:
    """Draw input, target heatmap and predicted heatmap for three frames around the first bounce."""
    middle = min(max(_bounce_time(inspection), 1), inspection.config.frames - 2)
    times = (middle - 1, middle, middle + 1)
    figure = Figure(figsize=(6.2, 6.4), layout="constrained")
    axes = figure.subplots(3, 3)
    largest = float(inspection.heatmap[list(times)].max())  # one colour scale for the three frames
    for column, t in enumerate(times):
        _show(axes[0, column], inspection.frames[t], "gray", 1.0)
        _show(axes[1, column], _target(inspection, t), "magma", 1.0)
        _show(axes[2, column], inspection.heatmap[t], "magma", largest)
        bounce = ", bounce" if inspection.true_bounce[t] else ""
        axes[0, column].set_title(f"frame {t}{bounce}", fontsize=10)
        (truth,) = axes[2, column].plot(
            *inspection.true_position[t], "+", color="white", markersize=9, label="true position"
        )
    names = ("input", "target heatmap", "predicted heatmap")
    for row, name in enumerate(names):
        axes[row, 0].set_ylabel(name, fontsize=10)
        image = axes[row, -1].images[0]
        scale = figure.colorbar(image, ax=axes[row], shrink=0.9)
        scale.ax.tick_params(labelsize=8)
    style = {"facecolor": "0.2", "labelcolor": PALE, "edgecolor": "none", "fontsize": 8}
    figure.legend(handles=[truth], loc="outside lower center", **style)
    figure.suptitle(_title(inspection), fontsize=10)
    return figure


def draw_path(inspection: Inspection) -> Figure:
    """Draw the true and predicted path over the frame of the first bounce."""
    figure = Figure(figsize=(4.4, 4.9), layout="constrained")
    axis = figure.subplots()
    t = _bounce_time(inspection)
    bounce = ", bounce" if inspection.true_bounce[t] else ""
    _show(axis, inspection.frames[t], "gray", 2.2)  # half as bright, so that a pale line is visible
    axis.plot(*inspection.true_position.T, color=PALE, lw=1.2, label="truth")
    axis.plot(*inspection.soft.T, "o", color=SKY, ms=3.5, label="soft-argmax")
    axis.plot(*inspection.physics.T, "x", color=YELLOW, ms=4.5, label="physics")
    axis.plot(
        *inspection.true_position[t], "o", mfc="none", mec=PALE, ms=12, label=f"frame {t}{bounce}"
    )
    axis.set_xlim(-0.5, inspection.config.image_size - 0.5)
    axis.set_ylim(inspection.config.image_size - 0.5, -0.5)
    style = {"facecolor": "0.2", "labelcolor": PALE, "edgecolor": "none", "fontsize": 8}
    figure.legend(loc="outside lower center", ncols=4, **style)
    figure.suptitle(_title(inspection), fontsize=10)
    return figure


def draw_trajectory(inspection: Inspection) -> Figure:
    """Draw true and predicted position and velocity over time, with the true bounces marked."""
    figure = Figure(figsize=(8.0, 6.0), layout="constrained")
    axes = figure.subplots(2, 2, sharex=True)
    time = np.arange(inspection.config.frames)
    for i, name in enumerate("xy"):
        position_axes, velocity_axes = axes[0, i], axes[1, i]
        position_axes.plot(time, inspection.true_position[:, i], color=BLACK, lw=1.2, label="truth")
        position_axes.plot(
            time, inspection.soft[:, i], "o", color=BLUE, ms=3.5, label="soft-argmax"
        )
        position_axes.plot(
            time, inspection.physics[:, i], "x", color=ORANGE, ms=4.5, label="physics"
        )
        position_axes.set_ylabel(f"{name} [px]")
        stepped = with_steps(inspection.true_velocity[:, i], inspection.true_bounce)
        velocity_axes.plot(*stepped, color=BLACK, lw=1.2, label="truth")
        velocity_axes.plot(
            time, inspection.velocity[:, i], "x", color=ORANGE, ms=4.5, label="physics"
        )
        velocity_axes.set_ylabel(f"v{name} [px/frame]")
        velocity_axes.set_xlabel("frame")
        velocity_axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    for axis in axes.flat:
        for n, t in enumerate(np.flatnonzero(inspection.true_bounce)):
            axis.axvline(t, color="0.75", lw=0.9, ls="--", label=None if n else "bounce", zorder=0)
    axes[0, 1].invert_yaxis()  # y points downwards in an image
    handles = axes[0, 0].get_legend_handles_labels()
    figure.legend(*handles, loc="outside lower center", ncols=4, frameon=False, fontsize=9)
    figure.suptitle(_title(inspection), fontsize=10)
    return figure


def write_figures(trained: Trained, inspection: Inspection, out: Path, ending: str) -> list[Path]:
    """Draw the figures into a directory and return their names."""
    drawn = {
        "frames": draw_examples(trained.config),
        "heatmaps": draw_heatmaps(inspection),
        "path": draw_path(inspection),
        "trajectory": draw_trajectory(inspection),
    }
    out.mkdir(parents=True, exist_ok=True)
    paths = [out / f"{name}.{ending}" for name in drawn]
    for path, figure in zip(paths, drawn.values(), strict=True):
        figure.savefig(path, dpi=160)
    return paths


def with_steps(velocity: Array, bounce: Array) -> tuple[list[float], list[float]]:
    """Return frames and one velocity, with an upright step at each frame in which it jumps.

    A hit at a wall leaves the velocity along it alone: that goes on as in most frames.
    """
    change = float(np.nanmedian(np.diff(velocity)))
    frames, values = [0.0], [float(velocity[0])]
    for t in range(1, len(velocity)):
        unhit = float(velocity[t - 1]) + change
        if bounce[t] and abs(velocity[t] - unhit) > JUMP:
            frames.append(float(t))
            values.append(unhit)
        frames.append(float(t))
        values.append(float(velocity[t]))
    return frames, values


def by_frame(x: Tensor) -> Array:
    """Read each frame from the window centred on it: (T − 2, 3, …) to (T, …)."""
    return torch.cat([x[:1, 0], x[:, 1], x[-1:, 2]]).cpu().numpy()


def _first_bounce(split: Split) -> int:
    bounces = split.bounce[:, 4:9].sum(1) > 0
    return int(bounces.long().argmax())


def _bounce_time(inspection: Inspection) -> int:
    """Return the first frame from the fourth on with a bounce, or the middle of the video."""
    later = [int(t) for t in np.flatnonzero(inspection.true_bounce) if t >= 4]
    return later[0] if later else inspection.config.frames // 2


def _target(inspection: Inspection, t: int) -> Array:
    """Return the Gaussian target of the heatmap at the finest scale."""
    index = np.arange(inspection.config.image_size)
    x, y = (
        np.exp(-((index - c) ** 2) / 2 / inspection.config.target_sigma**2)
        for c in inspection.true_position[t]
    )
    return np.outer(y, x).astype(np.float32)


def _show(axis: Axes, image: Array, colours: str, top: float | None) -> None:
    axis.imshow(image, cmap=colours, vmin=0.0, vmax=top, interpolation="nearest")
    axis.set_xticks([])
    axis.set_yticks([])


def _title(inspection: Inspection) -> str:
    config = inspection.config
    noise = f"σ = {config.sigma:g}"
    return f"{config.label}, {noise}, test video {inspection.video}, {config.image_size} px"
