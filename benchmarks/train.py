"""Windows per second of training and evaluation, against the plain implementation.

Each measurement is a process of its own, and plain and fast ones take turns.
"""

import json
import resource
import subprocess
import sys
import time
from statistics import median
from typing import Any, NamedTuple

from benchmarks import Section

REPEATS = 3
LABEL = "A1B1C1D0E1F0"


def frame_macs(size: int) -> int:
    """Multiply-adds of encoder and heads for one frame, forward."""
    full, half, quarter = size**2, (size // 2) ** 2, (size // 4) ** 2
    first = 9 * 1 * 32 * full
    rest = 2 * 9 * 32 * 32 * full + 9 * 32 * 64 * half + 2 * 9 * 64 * 64 * half
    return first + rest + (64 * 1 + 9 * 64 * 6) * quarter


def window_macs(size: int) -> int:
    """Multiply-adds of LatentFuse and decoder for one window, forward."""
    full, half, quarter = size**2, (size // 2) ** 2, (size // 4) ** 2
    bottleneck = (21 * 21 + 9 * 21 * 24) * quarter
    return bottleneck + (24 * 16 + 19 * 3) * half + (19 * 8 + 14 * 3 + 14 * 3) * full


def training_flops(size: int, frames: int, windows: int) -> int:
    """Floating-point operations of a step: forward, gradient of inputs, gradient of weights.

    The first convolution needs no gradient of its input. Normalisation, losses and the optimiser
    are not counted.
    """
    macs = 3 * (frames * frame_macs(size) + windows * window_macs(size))
    return 2 * (macs - frames * 9 * 32 * size**2)


class Case(NamedTuple):
    """What is measured: the work of a step, and on what."""

    mode: str
    """``train`` or ``eval``."""
    size: int
    """Pixels of a frame's side."""
    plain: int
    """Windows in a step of the plain implementation, three frames each."""
    chunk: int
    """Neighbouring windows that share their frames in the fast one."""
    chunks: int
    """Chunks in a step of the fast one."""
    threads: int
    processes: int


CASES = (
    Case("train", 224, 8, 13, 2, 2, 1),  # the paper preset
    Case("eval", 224, 8, 38, 1, 2, 1),
    Case("train", 56, 9, 9, 1, 1, 2),  # the small preset
    Case("train", 56, 8, 38, 1, 1, 2),  # whole videos, against the plain one's best batch
    Case("train", 56, 38, 38, 1, 1, 2),  # whole videos, equal batches
    Case("eval", 56, 8, 38, 1, 1, 2),
)
"""The plain implementation is fastest with 8 to 26 windows in a step at 56 pixels."""
SECONDS = 4.0
"""Time over which the steps of a training process are measured."""


def work(kind: str, case: Case) -> dict[str, float]:
    """Measure in this process."""
    import torch

    from benchmarks._plain import PlainNetwork, plain_loss, plain_read_out
    from pit_model.config import Config, Units
    from pit_model.dataset import Chunks, make_split
    from pit_model.losses import total_loss, window_truth
    from pit_model.network import Network
    from pit_model.predict import METRICS, predict, wanted_in_training
    from pit_model.runtime import keep_freed_memory
    from pit_model.trainer import make_optimizer

    mode, size = case.mode, case.size
    torch.set_num_threads(case.threads)
    if kind == "sgemm":
        a, b = torch.rand(4096, 4096), torch.rand(4096, 4096)
        return {"gflops": 2 * 4096**3 / _median_seconds(lambda: a @ b) / 1e9}

    config = Config.from_settings({"image_size": size, "train_sequences": 4})
    units, split = Units.of(config), make_split(config, "train")
    wanted = wanted_in_training(config)
    torch.manual_seed(0)
    network: Any = PlainNetwork() if kind == "plain" else Network(config)
    optimizer: Any
    if kind == "plain":
        optimizer = torch.optim.Adam(network.parameters(), config.learning_rate)
        windows, frames = case.plain, 3 * case.plain
        videos = tuple(i % 4 for i in range(windows))
        batch = split.batch(Chunks(videos, tuple(7 * i % 37 for i in range(windows)), 3))
    else:
        keep_freed_memory()
        optimizer = make_optimizer(network, config)
        windows, frames = case.chunks * case.chunk, case.chunks * (case.chunk + 2)
        videos = tuple(range(case.chunks))
        batch = split.batch(Chunks(videos, (0,) * case.chunks, case.chunk + 2))

    def step() -> None:
        if kind == "plain":
            loss = plain_loss(network, window_truth(batch), config, 5)
        else:
            prediction = predict(network, batch.frames, config, wanted, True)
            loss = total_loss(prediction, window_truth(batch), config, 5).total
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    @torch.inference_mode()
    def evaluation() -> None:
        if kind == "plain":
            plain_read_out(network, batch.frames, units)
        else:
            predict(network, batch.frames, config, METRICS)

    if mode == "eval":
        network.eval()
    seconds = _median_seconds(step if mode == "train" else evaluation)
    return {
        "windows_per_s": windows / seconds,
        "gflops": training_flops(size, frames, windows) / seconds / 1e9,
        "peak_gb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
    }


def _median_seconds(function: Any) -> float:
    """Median time of a call, over `SECONDS` and at least two calls after a first one."""
    function()
    times: list[float] = []
    while len(times) < 2 or sum(times) < SECONDS:
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return median(times)


def measure(kind: str, case: Case) -> dict[str, float]:
    """Run one or more measuring processes at once and add up their rates."""
    command = [sys.executable, "-m", "benchmarks.train", kind, case.mode, *map(str, case[1:])]
    children = [
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(case.processes)
    ]
    outputs = [child.communicate()[0] for child in children]
    if any(child.returncode for child in children):
        raise RuntimeError(f"a measuring process failed: {' '.join(command)}")
    replies = [json.loads(output) for output in outputs]
    peak = max(reply.get("peak_gb", 0.0) for reply in replies)
    total = {key: sum(reply[key] for reply in replies) for key in replies[0] if key != "peak_gb"}
    return {**total, "peak_gb": peak}


def in_turns(case: Case) -> dict[str, dict[str, float]]:
    """Medians over turns of plain, fast and, for training, a matrix product."""
    kinds = ("plain", "fast", "sgemm") if case.mode == "train" else ("plain", "fast")
    turns = [{kind: measure(kind, case) for kind in kinds} for _ in range(REPEATS)]
    medians = {
        kind: {key: median(turn[kind][key] for turn in turns) for key in turns[0][kind]}
        for kind in kinds
    }
    ratios = [t["fast"]["windows_per_s"] / t["plain"]["windows_per_s"] for t in turns]
    return {**medians, "ratio": {"value": median(ratios)}}


def run() -> list[Section]:
    """Measure training and evaluation at 224 and 56 pixels on two cores."""
    rows = []
    for case in CASES:
        result = in_turns(case)
        fast = result["fast"]
        sgemm = result.get("sgemm", {}).get("gflops")
        rows.append(
            (
                {"train": "training", "eval": "evaluation"}[case.mode],
                f"{case.size}",
                f"{case.processes} × {case.threads}",
                f"{case.plain}",
                f"{case.chunks} × {case.chunk}",
                f"{result['plain']['windows_per_s']:.2f}",
                f"{fast['windows_per_s']:.2f}",
                f"{result['ratio']['value']:.2f}",
                f"{fast['gflops']:.0f} of {sgemm:.0f}" if sgemm else "",
                f"{fast['gflops'] / sgemm:.0%}" if sgemm else "",
                f"{result['plain']['peak_gb']:.2f}",
                f"{fast['peak_gb']:.2f}",
            )
        )
    note = (
        f"Configuration {LABEL}, 32-bit floats. Windows per second, medians of {REPEATS} turns; "
        "each turn runs plain and fast one after the other, in processes of their own. A plain "
        "step is so many windows of three frames, a fast one chunks × neighbouring windows. "
        "Operations counted: 2 × (3 × multiply-adds forward, less the input gradient of the first "
        f"convolution), with {frame_macs(224) / 1e9:.3f}·10⁹ multiply-adds for a 224-pixel frame "
        f"and {window_macs(224) / 1e9:.3f}·10⁹ for what a window adds; the matrix product is a "
        "4096³ sgemm in the same turns."
    )
    columns = (
        "", "pixels", "processes × threads", "plain step", "fast step", "plain /s", "fast /s",
        "ratio", "GFLOP/s of sgemm's", "share", "plain GB", "fast GB",
    )  # fmt: skip
    return [Section("Windows per second", columns, tuple(rows), note)]


if __name__ == "__main__":
    print(json.dumps(work(sys.argv[1], Case(sys.argv[2], *map(int, sys.argv[3:])))))
