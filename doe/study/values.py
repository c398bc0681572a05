"""The study as frozen values. Its TOML form is in `file`, its checks are in `checks`."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, Literal

import msgspec

from doe.terms import Generator, parse_blocks, parse_generators

Level = bool | int | float | str
"""A factor level: any TOML scalar but a date."""

RUN_COLUMNS = ("run_id", "run_order", "row", "replicate", "block", "seed", "config")
"""Columns of design.csv and of the results before the factors'."""
STATE_COLUMNS = ("state", "reason", "slot", "host", "started", "ended", "seconds", "imported")
"""Columns of the results between the factors' and the responses'."""


def coded_columns(keys: Iterable[str]) -> tuple[str, ...]:
    """Columns that hold the levels as −1 and +1."""
    return tuple(f"{key}_coded" for key in keys)


class Factor(msgspec.Struct, frozen=True):
    """A two-level factor, known by its key in terms, labels and tables."""

    key: str
    low: Level
    high: Level
    name: str = ""
    description: str = ""


class Responses(msgspec.Struct, frozen=True):
    """What a run answers with, and which way is better."""

    metrics: tuple[str, ...]
    """Metrics that `--response all` analyses; every run must return them."""
    further: tuple[str, ...] = ()
    """Metrics that are collected and analysed on request only."""
    averages: dict[str, tuple[str, ...]] = {}
    """Responses made here: the plain mean of some metrics."""
    goal: Literal["min", "max"] = "min"
    unit: str = ""
    """Unit of the metrics, shown beside effects."""
    units: dict[str, str] = {}
    """Units of single responses where they differ from `unit`."""

    @property
    def names(self) -> tuple[str, ...]:
        """All responses: metrics, averages, further metrics."""
        return (*self.metrics, *self.averages, *self.further)

    def unit_of(self, name: str) -> str:
        """Unit of one response."""
        return self.units.get(name, self.unit)


class Augment(msgspec.Struct, frozen=True):
    """Runs added to a planned study as new blocks: further replicates, or a fold-over."""

    seeds: tuple[int, ...] = ()
    """Seeds of further replicates of everything planned so far."""
    flip: tuple[str, ...] = ()
    """Factors whose levels are exchanged to give another part of the full factorial."""


class Group(msgspec.Struct, frozen=True):
    """Responses that share a table of the report."""

    name: str
    """Short, for the names of files."""
    title: str
    responses: tuple[str, ...]
    effects: str = ""
    """Title of the table of effects on these responses; empty for none."""
    baseline: dict[str, Level] = {}
    """Levels that mark the baseline configurations; empty for none."""


class ReportSection(msgspec.Struct, frozen=True):
    """How the runs become the tables of a paper."""

    groups: tuple[Group, ...] = ()
    """One table of best configurations each; by default one per average."""
    further: Group | None = None
    """A last table of best configurations, of metrics outside the groups."""
    split: str = ""
    """Factor whose two levels make the two parts of each table."""
    drop: tuple[str, ...] = ()
    """Factors whose terms are left out of the tables of effects."""
    prefix: str = ""
    """Begins the names of the tables of configurations."""
    capped: bool = False
    """In the table of all configurations, a mean above 10, 20 or 50 is written as >10, >20, >50."""


class MetricsSection(msgspec.Struct, frozen=True):
    """Where a command leaves its metrics."""

    file: str = "metrics.json"
    """In the run's directory: JSON, JSON lines, CSV or TensorBoard events; or "stdout"."""
    keys: dict[str, str] = {}
    """Response -> key (dots lead into nested objects), column, or regular expression."""


class ProgressSection(msgspec.Struct, frozen=True):
    """How far a command is, from what it prints or from the CSV that it writes."""

    pattern: str = ""
    """Regular expression on its output: groups `step` and `total`, other names are metrics."""
    file: str = ""
    """A CSV in the run's directory, a row per step."""
    step: str = ""
    """Column of the step; by default `step` or `epoch`."""
    total: int | str = 0
    """Number of steps, or the setting or factor that holds it, where no group says it."""


class Study(msgspec.Struct, frozen=True):
    """A factorial study of training runs, complete: the design follows from it alone."""

    name: str
    backend: str
    factors: tuple[Factor, ...]
    responses: Responses
    description: str = ""
    command: tuple[str, ...] = ()
    """Program and arguments when `backend` is "command"."""
    metrics: MetricsSection = MetricsSection()
    progress: ProgressSection = ProgressSection()
    replicates: int = 1
    seeds: tuple[int, ...] = ()
    """One per replicate, shared by all configurations, so that a replicate is a block."""
    order_seed: int = 42
    fraction: str = ""
    """Generators of a regular fraction, as in "E=ABC, F=BCD"; empty for the full factorial."""
    blocks: str = ""
    """Interactions confounded with blocks within each replicate, as in "ABC, CDE"."""
    threads: int = 1
    """Threads that each run computes with; sums in another order end in other last digits."""
    settings: dict[str, Any] = {}
    """Handed to the backend unread."""
    augment: tuple[Augment, ...] = ()
    slurm: dict[str, Any] = {}
    """Resources for `doe run --engine slurm`."""
    report: ReportSection = ReportSection()

    @property
    def keys(self) -> tuple[str, ...]:
        """Factor keys in their order, the first one fastest in standard order."""
        return tuple(factor.key for factor in self.factors)

    @property
    def generators(self) -> tuple[Generator, ...]:
        """The fraction's generators, none for a full factorial; DoeError if it cannot be read."""
        return _generators(self.fraction, self.keys)

    @property
    def block_words(self) -> tuple[int, ...]:
        """Interactions confounded with blocks within a replicate; DoeError if they cannot be."""
        return parse_blocks(self.blocks, self.keys, self.generators)


@cache
def _generators(fraction: str, keys: tuple[str, ...]) -> tuple[Generator, ...]:
    return parse_generators(fraction, keys)
