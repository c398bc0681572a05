"""Two-level designs, full and fractional, replicated, blocked, in random order."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator
from typing import Any, NamedTuple

from doe.errors import DoeError
from doe.study.values import RUN_COLUMNS, Level, Study, coded_columns
from doe.terms import Generator, order, parse_blocks, parse_generators

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


def make_design(study: Study) -> Design:
    """Build the design that a study asks for; the same study always gives the same design."""
    slots = _base(study)
    for step in study.augment:
        slots += _augmented(study, slots, step.seeds, step.flip)
    ordered = sorted(slots, key=lambda s: (s.block, _random_rank(study.order_seed, s)))
    width = max(3, len(str((1 << len(study.factors)) - 1)))
    runs = tuple(_run(study, slot, i, width) for i, slot in enumerate(ordered, start=1))
    return Design(study.keys, runs)


def check_matrix(study: Study) -> None:
    """Compare the base design's rows with the matrix that pyDOE2 makes of the same generators.

    Two derivations must agree before anything is planned: rows by the parity of their defining
    words here, products of columns there.

    Raises
    ------
    DoeError
        If they differ.
    """
    pydoe = _pydoe()
    generators = parse_generators(study.fraction, study.keys)
    if generators:
        matrix = pydoe.fracfact(_pydoe_generators(study, generators))
    else:
        matrix = pydoe.ff2n(len(study.factors))
    rows = [sum(1 << i for i, x in enumerate(line) if x > 0) for line in matrix.tolist()]
    if sorted(rows) != _rows_by_parity(len(study.factors), generators):
        raise DoeError(
            f"pyDOE2 makes another design of {study.fraction or 'the full factorial'}; "
            "nothing was planned. Check the installed pyDOE2 against constraints.txt."
        )


def _pydoe() -> Any:
    """Import pyDOE2, which asks for the module `imp` (gone in Python 3.12) and never uses it."""
    import sys
    import types

    absent = "imp" not in sys.modules
    if absent:
        sys.modules["imp"] = types.ModuleType("imp")
    try:
        import pyDOE2
    finally:
        if absent:
            del sys.modules["imp"]
    return pyDOE2


def _pydoe_generators(study: Study, generators: tuple[Generator, ...]) -> str:
    """Write the generators in pyDOE2's form: a word per factor, the basic ones a, b, c, …"""
    by_factor = {g.factor: g for g in generators}
    masks = [1 << i for i in range(len(study.factors))]
    basic = [mask for mask in masks if mask not in by_factor]
    letters = dict(zip(basic, "abcdefghijklmnop", strict=False))
    words = []
    for mask in masks:
        if g := by_factor.get(mask):
            word = "".join(letters[m] for m in basic if g.interaction & m)
            words.append(f"-{word}" if g.sign < 0 else word)
        else:
            words.append(letters[mask])
    return " ".join(words)


def _rows_by_parity(factors: int, generators: tuple[Generator, ...]) -> list[int]:
    """Rows in which every generated factor has the sign of its interaction."""
    return [
        row
        for row in range(1 << factors)
        if all(_sign(row, g.factor) == g.sign * _sign(row, g.interaction) for g in generators)
    ]


def _sign(row: int, term: int) -> int:
    """Value of a term's contrast column in a row: the product of its coded levels."""
    return 1 if order(term & ~row) % 2 == 0 else -1


def _base(study: Study) -> list[_Slot]:
    generators = parse_generators(study.fraction, study.keys)
    rows = _rows_by_parity(len(study.factors), generators)
    words = parse_blocks(study.blocks, study.keys, generators)
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
