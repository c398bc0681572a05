"""Output of the `pit` commands: progress while training, and tables of metrics."""

import csv
import os
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)
from rich.table import Table

from pit_model import backend, baseline, checkpoint, rundir
from pit_model.config import Config
from pit_model.errors import PitError
from pit_model.metrics import KINDS, choose_epochs
from pit_model.simulate import SPLITS
from pit_model.trainer import EPOCHS


class Watch:
    """Progress of a run: a bar on a terminal, a line for each epoch elsewhere."""

    def __init__(self, console: Console, config: Config, run_dir: Path) -> None:
        self._console = console
        self._name = f"B{config.image_size}"
        self._best = _best_so_far(run_dir / EPOCHS, self._name)
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[numbers]}"),
            TimeRemainingColumn(),
            console=console,
            disable=not console.is_terminal,
            speed_estimate_period=3600,
        )
        self._task = self._bar.add_task(config.label, total=config.epochs, numbers="")

    def __enter__(self) -> "Watch":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, step: int, total: int, **metrics: float) -> None:
        """Take the report of an epoch."""
        self._best = min(self._best, metrics.get(self._name, self._best))
        numbers = f"loss {metrics['loss']:.4f}  best {self._name} {self._best:.3f} px"
        self._bar.update(self._task, completed=step, numbers=numbers)
        if not self._console.is_terminal:
            self._console.print(f"{step}/{total} epochs  {numbers}", highlight=False)


def train_run(config: Config, seed: int, device: str, threads: int | None, out: Path) -> None:
    """Train into a directory, or resume there, and print the test metrics."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    mark = checkpoint.fingerprint(config, seed)
    if (out / rundir.RUN).exists() and checkpoint.fingerprint(*rundir.read_run(out)) != mark:
        raise PitError(
            f"{out} contains a run with other settings or another seed; give another --out"
        )
    with Watch(console, config, out) as watch:
        values = backend.run(
            SimpleNamespace(
                factors={},
                settings=config.as_dict(),
                seed=seed,
                seeds={},
                device=device,
                threads=threads or os.cpu_count() or 1,
                run_dir=out,
                report=watch,
            )
        )
    chosen = {
        name[: -len("_epoch")]: int(e) for name, e in values.items() if name.endswith("_epoch")
    }
    title = f"{config.label} at {config.image_size} px, seed {seed}: test"
    console.print(_scale_table(title, values, chosen, config))
    if values["diverged"]:
        epoch, step = int(values["diverged_epoch"]), int(values["diverged_step"])
        console.print(f"training diverged in epoch {epoch}, step {step}; epochs before it count")
    console.print(f"{values['train_seconds']:.0f} s of training; everything is in {out}")


def evaluate_run(
    run_dir: Path, split: str, changes: Mapping[str, Any], device: str, threads: int | None
) -> None:
    """Print the metrics of a trained run on a split, optionally with other physics."""
    if split not in SPLITS:
        raise PitError(f"split {split!r} is unknown; expected one of {', '.join(SPLITS)}")
    chosen_device = backend.find_device(device)
    torch.set_num_threads(threads or os.cpu_count() or 1)
    trained = rundir.read_trained(run_dir)
    config = replace(trained.config, **changes)
    values = rundir.evaluate_run(trained._replace(config=config), split, chosen_device)
    title = f"{config.label} at {config.image_size} px, seed {trained.seed}: {split}"
    Console().print(_scale_table(title, values, choose_epochs(trained.history), config))


def baselines(preset: str, settings: Mapping[str, Any], threads: int | None) -> None:
    """Print the results of the baselines under each kind of noise."""
    for name in ("F", "noise"):
        if name in settings:
            raise PitError(f"{name} cannot be set here: every kind of noise is shown")
    torch.set_num_threads(threads or os.cpu_count() or 1)
    groups = {}
    for videos, condition in baseline.VIDEOS.items():
        config = Config.from_settings({"preset": preset, **settings, **condition})
        groups[videos] = baseline.evaluate(config)
    Console().print(_baseline_table(config, groups))


def baselines_beside(run_dir: Path, threads: int | None) -> None:
    """Print the results of the baselines on the test videos of a run, and the run's own."""
    torch.set_num_threads(threads or os.cpu_count() or 1)
    config, _ = rundir.read_run(run_dir)
    run = {f"PIT {config.label}": rundir.read_metrics(run_dir)}
    videos = f"σ = {config.sigma:g}, {config.noise}" if config.F else "clean"
    groups = {videos: {**baseline.evaluate(config), **run}}
    Console().print(_baseline_table(config, groups))


def track_video(
    video: Path,
    weights: Path | None,
    fps: float | None,
    adapts: bool,
    options: Mapping[str, Any],
    out: Path,
    threads: int | None,
) -> None:
    """Track a ball in a video, write the files and print what was found."""
    from pit_model.adapt import adapt
    from pit_model.rundir import SHIPPED
    from pit_model.track import Tracker
    from pit_model.track_files import sentences, write_track
    from pit_model.video import LARGEST, read_clip

    torch.set_num_threads(threads or os.cpu_count() or 1)
    console = Console()
    tracker = Tracker.load(weights or SHIPPED)
    with Steps(console) as steps:
        clip = read_clip(video, fps, max(LARGEST, options["width"] or 0), steps)
        track = tracker.track(clip, **options, progress=steps)
        note = ""
        if adapts:
            known = {"scale": options["scale"], "g": options["g"]}
            _, track, note = adapt(tracker, track, **known, progress=steps)
        paths = write_track(track, video, out, steps)
    for sentence in (*sentences(track), *([note] if note else [])):
        console.print(sentence, highlight=False)
    console.print(f"{', '.join(path.name for path in paths)} are in {out}", highlight=False)


class Steps:
    """Progress of a command's steps: a bar for each, on a terminal only."""

    def __init__(self, console: Console) -> None:
        columns = TextColumn("{task.description:<9}"), BarColumn(), MofNCompleteColumn()
        self._bar = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        self._bar.disable = not console.is_terminal
        self._tasks: dict[str, TaskID] = {}

    def __enter__(self) -> "Steps":
        self._bar.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._bar.stop()

    def __call__(self, what: str, done: int, total: int) -> None:
        """Take the report of a step."""
        if what not in self._tasks:
            self._tasks[what] = self._bar.add_task(what, total=None)
        self._bar.update(self._tasks[what], completed=done, total=total or None)


def _baseline_table(
    config: Config, groups: Mapping[str, Mapping[str, Mapping[str, float]]]
) -> Table:
    """Build a table of methods by metrics at the full image size, grouped by videos."""
    size = config.image_size
    title = f"{config.test_sequences} test videos at {size} px: mean absolute errors"
    table = Table(title=title, caption="B, H, P in px; V in px/frame")
    table.add_column("videos and method", no_wrap=True)
    for kind in KINDS:
        table.add_column(f"{kind}{size}", justify="right")
    for videos, methods in groups.items():
        table.add_section()
        table.add_row(videos, style="bold")
        for method, values in methods.items():
            table.add_row(f"  {method}", *(f"{values[f'{kind}{size}']:.3f}" for kind in KINDS))
    return table


def _best_so_far(path: Path, name: str) -> float:
    """Return the smallest value of a metric in the epochs of earlier attempts."""
    if not path.exists():
        return inf
    with path.open(newline="") as file:
        return min((float(row[name]) for row in csv.DictReader(file)), default=inf)


def _scale_table(
    title: str, values: Mapping[str, float], chosen: Mapping[str, int], config: Config
) -> Table:
    """Build a table of metrics by scales, each with the epoch that the validation set chose."""
    table = Table(title=title, caption="each at the epoch that validation chose, counted from 0")
    table.add_column("metric")
    for scale in config.scales:
        table.add_column(f"{scale}", justify="right")
        table.add_column("epoch", justify="right", style="dim")
    for kind, (unit, *_) in KINDS.items():
        cells = []
        for scale in config.scales:
            name = f"{kind}{scale}"
            cells += [f"{values.get(name, float('nan')):.3f}", f"{chosen.get(name, '-')}"]
        table.add_row(f"{kind}, {unit}" if unit else kind, *cells)
    return table
