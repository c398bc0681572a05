"""Benchmarks: ratios against peers, measured side by side in one run.

Each module has ``run() -> list[Section]``. `python -m benchmarks` runs all of them and writes
RESULTS.md; `python -m benchmarks train runner` runs some and prints them.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Mapping
from typing import NamedTuple


class Section(NamedTuple):
    """One table of results with what it compares."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()


def side_by_side(
    cases: Mapping[str, Callable[[], object]], repeats: int = 5
) -> dict[str, list[float]]:
    """Seconds of each case in every repeat, cases taking turns so that noise hits all alike."""
    seconds: dict[str, list[float]] = {name: [] for name in cases}
    for case in cases.values():
        case()
    for _ in range(repeats):
        for name, case in cases.items():
            start = time.perf_counter()
            case()
            seconds[name].append(time.perf_counter() - start)
    return seconds


def median_ratio(slow: list[float], fast: list[float]) -> float:
    """Median over the repeats of slow / fast, each pair measured one after the other."""
    return statistics.median(a / b for a, b in zip(slow, fast, strict=True))
