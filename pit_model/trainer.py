"""Training of a run by the paper's protocol, and its numbers.

After each epoch the validation set is evaluated and each metric chooses its own best epoch; weights
are kept for the epochs that are chosen at the time. The test set is made and read once, at the end.
The state of a run is saved after each epoch, so that a killed run goes on where it was and, on the
CPU, ends with the same numbers.
"""

import csv
import os
import resource
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from pit_model import checkpoint, init, metrics
from pit_model.adam import Adam
from pit_model.config import Config
from pit_model.dataset import (
    Split,
    epoch_chunks,
    evaluation_batches,
    make_split,
    training_batches,
)
from pit_model.errors import PitError
from pit_model.losses import PARTS, total_loss, window_truth
from pit_model.metrics import choose_epochs, epochs_to_keep
from pit_model.network import Maps, Network
from pit_model.predict import METRICS, predict, wanted_in_training
from pit_model.runtime import arithmetic, keep_freed_memory, peak_gpu_mb

CHECKPOINT = "checkpoint"
"""Name of the saved state in a run's directory."""
EPOCHS = "epochs.csv"
"""Name of the table with one row for each epoch."""

Forward = Callable[[Tensor, bool], Maps]
Weights = dict[str, Tensor]


class EpochListener(Protocol):
    """Callback for progress: epochs done, epochs in all, and the numbers of the last one."""

    def __call__(self, step: int, total: int, **metrics: float) -> None: ...


class SplitMaker(Protocol):
    """Function that makes a part of the data: `dataset.make_split`, or a replacement in tests."""

    def __call__(self, config: Config, name: str, device: str | torch.device) -> Split: ...


class Divergence(NamedTuple):
    """Epoch and step, from 0, where a loss or a gradient stopped being finite."""

    epoch: int
    step: int


@dataclass
class Run:
    """State of a run after some epochs; the content of a checkpoint."""

    network: Network
    optimizer: Adam
    rows: list[dict[str, float]] = field(default_factory=list)
    """One for each finished epoch, as in `EPOCHS`."""
    history: list[dict[str, float]] = field(default_factory=list)
    """Validation metrics of each finished epoch."""
    kept: dict[int, Weights] = field(default_factory=dict)
    """Weights of the epochs that some metric chooses now, and of the last one."""
    divergence: Divergence | None = None
    seconds: float = 0.0
    """Time spent in training and validation, over all attempts."""

    def state(self) -> dict[str, Any]:
        """Return plain values and tensors for a checkpoint."""
        return {
            "network": self.network.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "rows": self.rows,
            "history": self.history,
            "kept": self.kept,
            "divergence": None if self.divergence is None else list(self.divergence),
            "seconds": self.seconds,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self.network.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimizer"])
        self.rows, self.history, self.kept = state["rows"], state["history"], state["kept"]
        divergence = state["divergence"]
        self.divergence = None if divergence is None else Divergence(*divergence)
        self.seconds = state["seconds"]


def train(
    config: Config,
    seed: int,
    device: str | torch.device,
    run_dir: Path,
    report: EpochListener,
    splits: SplitMaker = make_split,
) -> dict[str, float]:
    """Train one configuration and return its numbers.

    Parameters
    ----------
    config, seed
        The settings, and the seed of weights and batch order.
    run_dir
        Where `CHECKPOINT` and `EPOCHS` are written; a checkpoint of the same run is continued, one
        with fewer epochs than `config` asks for as well.
    report
        Called after each epoch.
    splits
        Makes the train, validation and test data. The test data are asked for last.

    Returns
    -------
    The 15 test metrics at the epochs they choose; for each ``<metric>_epoch``, the epoch chosen,
    and ``<metric>_final``, the value after the last epoch; ``train_seconds``; on a GPU
    ``peak_gpu_mb``; ``diverged`` (0, 1), ``diverged_epoch`` and ``diverged_step`` (−1 if it did
    not).

    Raises
    ------
    PitError
        If no epoch ends with finite losses, weights and at least one finite metric, or if the
        checkpoint has more epochs than are asked for.
    """
    keep_freed_memory()
    device = torch.device(device)
    path = run_dir / CHECKPOINT
    mark = checkpoint.fingerprint(config, seed)
    with arithmetic(config):
        run = new_run(config, seed, device)
        saved = checkpoint.resume(path, mark)
        if saved is not None:
            run.restore(saved)
            _check_length(run, config)
            write_rows(run_dir / EPOCHS, run.rows, config)
        forward = make_forward(run.network, config)
        train_split = splits(config, "train", device)
        val_split = splits(config, "val", device)
        if saved is None:
            first = next(training_batches(train_split, seed, 0))
            init.set_first_heatmaps(run.network, first.frames, config)
        while len(run.history) < config.epochs and run.divergence is None:
            _advance(run, forward, train_split, val_split, seed)
            checkpoint.save(path, run.state(), mark)
            write_rows(run_dir / EPOCHS, run.rows, config)
            if run.divergence is None:
                loss = run.rows[-1]["loss"]
                report(len(run.history), config.epochs, loss=loss, **run.history[-1])
        return _result(run, forward, splits(config, "test", device))


def _check_length(run: Run, config: Config) -> None:
    """Refuse to end before epochs that are already done."""
    if len(run.history) > config.epochs:
        raise PitError(
            f"epochs = {config.epochs}, but the run has finished {len(run.history)}; expected at "
            "least as many, or another directory"
        )


def new_run(config: Config, seed: int, device: torch.device) -> Run:
    """Draw the first weights from the seed and make their optimiser."""
    network = init.draw(config, seed).to(device)
    if device.type == "cuda":
        network.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    return Run(network, make_optimizer(network, config))


def make_optimizer(network: Network, config: Config) -> Adam:
    """Give the decoder a step size of its own, and both a slow start and a slow end."""
    decoder = list(network.decoder.parameters())
    ids = {id(p) for p in decoder}
    others = [p for p in network.parameters() if id(p) not in ids]
    groups = [(others, config.learning_rate), (decoder, config.decoder_learning_rate)]
    steps = config.epochs * len(epoch_chunks(config, config.train_sequences, seed=0, epoch=0))
    return Adam(groups, config.warmup_steps, (steps - round(config.decay * steps), steps))


def make_forward(network: Network, config: Config) -> Forward:
    """Compile the network if the settings ask for it."""
    return torch.compile(network) if config.compile else network


def train_epoch(
    run: Run, forward: Forward, split: Split, seed: int, epoch: int
) -> tuple[dict[str, float], int]:
    """Take the steps of one epoch.

    Nothing is read back from the device before the end, so that steps queue up without waiting.

    Returns
    -------
    The mean of each active loss and of the total over the steps, and the first step whose loss was
    not finite (the number of steps if the weights broke in the last one, −1 if all is well).
    """
    config = split.config
    wanted = wanted_in_training(config)
    run.network.train()
    sums: dict[str, Tensor] = {}
    steps = 0
    finite_steps = torch.zeros((), device=split.position.device)
    still_finite = torch.ones((), device=split.position.device)
    for batch in training_batches(split, seed, epoch):
        prediction = predict(forward, batch.frames, config, wanted, with_image=True)
        losses = total_loss(prediction, window_truth(batch), config, epoch)
        run.optimizer.zero_grad()
        losses.total.backward()  # type: ignore[no-untyped-call]
        if config.gradient_norm:
            clip_grad_norm_(run.network.parameters(), config.gradient_norm)
        run.optimizer.step()
        for name, value in {"loss": losses.total, **losses.parts}.items():
            sums[name] = sums.get(name, 0) + value.detach()
        still_finite = still_finite * torch.isfinite(losses.total)
        finite_steps = finite_steps + still_finite
        steps += 1
    # A gradient that was not finite is in Adam's moments, and from there in the weights.
    sound = all(bool(p.isfinite().all()) for p in run.network.parameters())
    first_bad = int(finite_steps)
    means = {name: float(value) / steps for name, value in sums.items()}
    return means, -1 if sound and first_bad == steps else first_bad


@torch.inference_mode()
def evaluate(network: Network, forward: Forward, split: Split) -> dict[str, float]:
    """Compute the 15 metrics of a network on a split."""
    network.eval()
    totals = metrics.no_totals(split.position.device)
    for batch in evaluation_batches(split):
        prediction = predict(forward, batch.frames, split.config, METRICS)
        totals = metrics.add(totals, prediction.scales, batch)
    return metrics.read(totals, split.config.scales)


def _advance(run: Run, forward: Forward, train_split: Split, val_split: Split, seed: int) -> None:
    """Add an epoch to a run: train, evaluate, choose, keep. Or note that it diverged."""
    config, epoch = train_split.config, len(run.history)
    started = time.perf_counter()
    means, bad_step = train_epoch(run, forward, train_split, seed, epoch)
    trained = time.perf_counter()
    if bad_step >= 0:
        run.divergence = Divergence(epoch, bad_step)
        run.seconds += trained - started
        return
    values = evaluate(run.network, forward, val_split)
    ended = time.perf_counter()
    run.seconds += ended - started
    run.history.append(values)
    per_video = config.frames - 2
    run.rows.append(
        {
            "epoch": epoch,
            **means,
            **values,
            "train_windows_per_s": config.train_sequences * per_video / (trained - started),
            "eval_windows_per_s": config.val_sequences * per_video / (ended - trained),
            "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            **peak_gpu_mb(train_split.position.device),
        }
    )
    now = {name: value.detach().cpu().clone() for name, value in run.network.state_dict().items()}
    keep = {*epochs_to_keep(choose_epochs(run.history)), epoch}
    run.kept = {e: w for e, w in {**run.kept, epoch: now}.items() if e in keep}


def _result(run: Run, forward: Forward, test_split: Split) -> dict[str, float]:
    """Read the test set: once for each chosen epoch, and for the last one."""
    chosen = choose_epochs(run.history)
    if not chosen:
        raise PitError(f"nothing finite to choose from: {_reason(run)}")
    last = len(run.history) - 1
    values = {}
    for epoch in sorted({*epochs_to_keep(chosen), last}):
        run.network.load_state_dict(run.kept[epoch])
        values[epoch] = evaluate(run.network, forward, test_split)
    divergence = run.divergence or Divergence(-1, -1)
    return {
        **{name: values[epoch][name] for name, epoch in chosen.items()},
        **{f"{name}_epoch": float(epoch) for name, epoch in chosen.items()},
        **{f"{name}_final": values[last][name] for name in chosen},
        "train_seconds": run.seconds,
        **peak_gpu_mb(test_split.position.device),
        "diverged": float(run.divergence is not None),
        "diverged_epoch": float(divergence.epoch),
        "diverged_step": float(divergence.step),
    }


def _reason(run: Run) -> str:
    """Explain why a run has no usable epoch."""
    if run.divergence is None:
        return "no validation metric was finite in any epoch"
    epoch, step = run.divergence
    return f"the loss or a gradient was not finite in epoch {epoch}, step {step}"


def write_rows(path: Path, rows: list[dict[str, float]], config: Config) -> None:
    """Rewrite the table of epochs, whole or not at all; a loss that is off stays empty."""
    columns = ["epoch", "loss", *PARTS, *metrics.metric_names(config.scales)]
    columns += ["train_windows_per_s", "eval_windows_per_s", "peak_rss_mb"]
    columns += ["peak_gpu_mb"] if any("peak_gpu_mb" in row for row in rows) else []
    beside = path.with_name(f".{path.name}.{os.getpid()}")
    with beside.open("w", newline="") as file:
        table = csv.DictWriter(file, columns)
        table.writeheader()
        table.writerows(rows)
    os.replace(beside, path)
