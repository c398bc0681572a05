"""What an analysis is given: which run had which levels, and what was observed."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from doe.analysis.contrasts import Floats, Ints, cell_index
from doe.analysis.sequential import Rule
from doe.analysis.streams import Seeding
from doe.errors import DoeError
from doe.terms import LevelOf, config_label


class FactorLevels(Struct, frozen=True):
    """A factor with its two levels as they were given."""

    key: str
    low: str
    high: str
    name: str = ""


@dataclass(frozen=True)
class Looked:
    """Runs that were looked at after each complete replicate, as declared beforehand."""

    rule: Rule
    replicate: Ints  # of each run, from 1


@dataclass(frozen=True)
class Runs:
    """Which run had which levels: the part that all responses share."""

    factors: tuple[FactorLevels, ...]
    coded: NDArray[np.int8]  # runs x factors, -1 or +1
    block: Ints | None  # 0, 1, ...; None where there is but one
    block_name: str | None
    run_ids: tuple[str, ...]
    run_order: tuple[int, ...] | None  # None where nobody knows it
    slot: tuple[str, ...] | None
    host: tuple[str, ...] | None
    states: tuple[str, ...]  # state and reason where they are known, else ""
    notes: tuple[str, ...] = ()
    looked: Looked | None = None  # None where the runs were not looked at before they were all done
    seeding: Seeding | None = None  # None where each replicate has one seed of its own

    @property
    def keys(self) -> tuple[str, ...]:
        """Factor keys."""
        return tuple(factor.key for factor in self.factors)

    @property
    def cells(self) -> Ints:
        """Row of each run in the full standard order."""
        return cell_index(self.coded)

    def levels(self, cell: int, fixed: int = -1) -> list[LevelOf]:
        """Levels of a configuration; factors outside the bits of `fixed` are left open."""
        return [
            ((1, factor.high) if cell >> i & 1 else (0, factor.low)) if fixed >> i & 1 else None
            for i, factor in enumerate(self.factors)
        ]

    def config(self, cell: int, fixed: int = -1) -> str:
        """A configuration as it is shown, some of its factors left open."""
        return config_label(self.keys, self.levels(cell, fixed))


@dataclass(frozen=True)
class Fresh:
    """Runs with seeds that had no part in the choice, the chosen configuration first."""

    configs: tuple[str, ...]  # the best, the runner-up, the baseline, each once
    y: Floats  # configurations x seeds, NaN where a run has no value

    @property
    def complete(self) -> bool:
        """Whether enough has run to judge: two seeds of the best and of some other."""
        return len(self.y) > 1 and int((~np.isnan(self.y[0])).sum()) > 1


@dataclass(frozen=True)
class Observations:
    """One response of the runs; NaN where a run has no value."""

    runs: Runs
    response: str
    y: Floats  # value, NaN where missing or censored
    low: Floats  # bounds of censored values, NaN where there is no value at all
    high: Floats
    unit: str = ""
    goal: str | None = None  # min, max, or None where nobody said
    scale: str = "raw"  # raw, log or auto: what is analysed unless a transformation is asked for
    fresh: Fresh | None = None  # runs that confirm the best configuration
    baseline: str = ""  # the configuration that others are compared with

    @property
    def censored(self) -> bool:
        """Whether some values are only known to lie above or below a limit."""
        return bool((~np.isnan(self.low) & np.isnan(self.y)).any())


def numbered(labels: Iterable[Hashable]) -> Ints:
    """Number the distinct labels 0, 1, … in the order in which they appear."""
    numbers: dict[Hashable, int] = {}
    return np.array([numbers.setdefault(label, len(numbers)) for label in labels], np.int64)


def check_variation(y: Floats, response: str) -> None:
    """Refuse fewer than two different values by a DoeError."""
    if len(y) < 2 or float(y.max()) == float(y.min()):
        raise DoeError(
            f"response {response!r} has {len(y)} values and no variation; "
            "expected at least two different ones"
        )


def state_text(state: str, reason: str) -> str:
    """State and reason of a run in one text."""
    return f"{state}: {reason}" if state and reason else state or reason
