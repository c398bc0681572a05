"""Two-level designs, full and fractional, replicated, blocked, in random order."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from doe.design.matrix import standard_rows
from doe.errors import DoeError
from doe.study.values import RUN_COLUMNS, Level, Study, coded_columns
from doe.terms import order

Coded = tuple[int, ...]
"""Levels of one run as −1 and +1, one per factor."""


class Run(NamedTuple):
    """One planned training run."""

    run_id: str
    run_order: int
    """Position in the random order, from 1."""
    row: int
    """Number of the configuration in the standard order of the full factorial, from 0."""
    replicate: int
    block: int
    seed: int
    config: str
    levels: dict[str, Level]
    coded: Coded


class Design(NamedTuple):
    """All runs of a study in the order in which they start."""

    keys: tuple[str, ...]
    runs: tuple[Run, ...]

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return max(run.block for run in self.runs)


class _Slot(NamedTuple):
    """A run before it has its place in the order."""

    row: int
    replicate: int
    block: int
    seed: int


def make_design(study: Study, rows: Sequence[int] = ()) -> Design:
    """Build the design that a study asks for; the same study always gives the same design.

    Parameters
    ----------
    rows : sequence of int
        Configurations of one replicate where they are known from `planned_rows`: making their
        matrix takes a second of imports.
    """
    slots = _base(study, rows)
    for step in study.augment:
        slots += _augmented(study, slots, step.seeds, step.flip)
    ordered = sorted(slots, key=lambda s: (s.block, _random_rank(study.order_seed, s)))
    width = max(3, len(str((1 << len(study.factors)) - 1)))
    runs = tuple(_run(study, slot, i, width) for i, slot in enumerate(ordered, start=1))
    return Design(study.keys, runs)


def _sign(row: int, term: int) -> int:
    """Value of a term's contrast column in a row: the product of its coded levels."""
    return 1 if order(term & ~row) % 2 == 0 else -1


def _base(study: Study, rows: Sequence[int]) -> list[_Slot]:
    rows = rows or standard_rows(len(study.factors), study.generators)
    words = study.block_words
    slots = []
    for replicate in range(1, study.replicates + 1):
        first = (replicate - 1 << len(words)) + 1
        for row in rows:
            within = sum(1 << i for i, word in enumerate(words) if _sign(row, word) > 0)
            slots.append(_Slot(row, replicate, first + within, study.seeds[replicate - 1]))
    return slots


def _augmented(
    study: Study, slots: list[_Slot], seeds: tuple[int, ...], flip: tuple[str, ...]
) -> list[_Slot]:
    """Runs added to what is planned: new replicates of all rows, or all runs with levels flipped.

    Each new replicate is one block. A fold-over makes a new block of each old one.
    """
    block = max(slot.block for slot in slots)
    if flip:
        mask = sum(1 << study.keys.index(key) for key in flip)
        added = [slot._replace(row=slot.row ^ mask, block=slot.block + block) for slot in slots]
        planned = {(slot.row, slot.replicate) for slot in slots}
        if any((slot.row, slot.replicate) in planned for slot in added):
            raise DoeError(
                f"exchanging the levels of {', '.join(flip)} repeats planned runs; choose factors "
                "that stand in an odd number in some word of the defining relation"
            )
        return added
    replicate = max(slot.replicate for slot in slots)
    rows = sorted({slot.row for slot in slots})
    return [
        _Slot(row, replicate + i, block + i, seed)
        for i, seed in enumerate(seeds, start=1)
        for row in rows
    ]


def _random_rank(order_seed: int, slot: _Slot) -> bytes:
    """A rank that is random, yet the same for ever: no generator that a release could change."""
    return hashlib.sha256(f"{order_seed}/{slot.block}/{slot.row}".encode()).digest()


def _run(study: Study, slot: _Slot, run_order: int, width: int) -> Run:
    coded = tuple(1 if slot.row >> i & 1 else -1 for i in range(len(study.factors)))
    levels = {f.key: f.high if x > 0 else f.low for f, x in zip(study.factors, coded, strict=True)}
    return Run(
        run_id=f"{slot.row:0{width}d}-r{slot.replicate}",
        run_order=run_order,
        row=slot.row,
        replicate=slot.replicate,
        block=slot.block,
        seed=slot.seed,
        config=config_label(study, slot.row),
        levels=levels,
        coded=coded,
    )


def config_label(study: Study, row: int) -> str:
    """Name a configuration: ``A1B0C1`` for one-letter keys, else ``lr=0.01,aug=on``."""
    if all(len(key) == 1 for key in study.keys):
        return "".join(f"{key}{row >> i & 1}" for i, key in enumerate(study.keys))
    return ",".join(
        f"{f.key}={level_text(f.high if row >> i & 1 else f.low)}"
        for i, f in enumerate(study.factors)
    )


def level_text(level: Level) -> str:
    """Write a level as in the study file, text without its quotes."""
    return str(level).lower() if isinstance(level, bool) else str(level)


# The CSV form -----------------------------------------------------------------------------------


def csv_header(keys: tuple[str, ...]) -> list[str]:
    """Columns of design.csv: the run, its levels as given, its levels coded."""
    return [*RUN_COLUMNS, *keys, *coded_columns(keys)]


def _csv_rows(design: Design) -> Iterator[list[str]]:
    for run in design.runs:
        plan = (run.run_order, run.row, run.replicate, run.block, run.seed)
        levels = [level_text(run.levels[key]) for key in design.keys]
        yield [run.run_id, *map(str, plan), run.config, *levels, *map(str, run.coded)]


def design_csv(design: Design) -> str:
    """Write a design as CSV, a line per run in run order."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(csv_header(design.keys))
    writer.writerows(_csv_rows(design))
    return out.getvalue()


def planned_rows(text: str, study: Study) -> list[int]:
    """Configurations of the first replicate in a design.csv; none where they are not all there."""
    blocks = 1 << len(study.block_words)
    rows = {
        int(line["row"])
        for line in csv.DictReader(io.StringIO(text))
        if line.get("replicate") == "1" and (line.get("block") or "").isdecimal()
        if int(line["block"]) <= blocks and (line.get("row") or "").isdecimal()
    }
    return sorted(rows) if len(rows) == 1 << (len(study.factors) - len(study.generators)) else []
