"""Designs, full and fractional, replicated, blocked, with centre runs, in random order."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import NamedTuple

from doe.design.matrix import part_rows, standard_rows
from doe.errors import DoeError, nearest
from doe.study.levels import allowed_rows, coded_level, level_numbers, row_of
from doe.study.values import (
    RUN_COLUMNS,
    Augment,
    Factor,
    Level,
    Study,
    coded_columns,
    seed_columns,
)
from doe.terms import config_label, config_name, level_text, single_letters

Coded = tuple[int, ...]
"""Levels of one run as numbers around zero, one per factor: −1 and +1 of two levels."""
CENTRE = "centre"
"""The configuration of a centre run."""


class Run(NamedTuple):
    """One planned training run."""

    run_id: str
    run_order: int
    """Position in the random order, from 1."""
    row: int
    """Number of the configuration in the standard order of the full factorial, from 0; a centre run
    has the next number after the last."""
    replicate: int
    block: int
    seed: int
    """Its seed, that of the first stream where a study has several."""
    config: str
    """The configuration as it is shown, ``A1B0`` or ``0.01 · adam``."""
    name: str
    """The configuration as files and options name it, ``A1B0`` or ``lr=0.01,optimizer=adam``."""
    levels: dict[str, Level]
    coded: Coded
    seeds: dict[str, int] = {}  # noqa: RUF012 - never written to
    """Stream -> its seed, where a study has several streams."""

    @property
    def cells(self) -> tuple[str | int, ...]:
        """What it has in `RUN_COLUMNS`, and its seed of each stream."""
        planned = (self.run_order, self.row, self.replicate, self.block, self.seed)
        return (self.run_id, *planned, self.name, *self.seeds.values())

    @property
    def seed_text(self) -> str:
        """Its seed, or that of every stream, as a message names it."""
        if not self.seeds:
            return f"seed {self.seed}"
        return f"seeds {', '.join(f'{name} {seed}' for name, seed in self.seeds.items())}"


class Design(NamedTuple):
    """All runs of a study in the order in which they start."""

    keys: tuple[str, ...]
    runs: tuple[Run, ...]
    streams: tuple[str, ...] = ()

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return max(run.block for run in self.runs)


class _Unordered(NamedTuple):
    """A run before it has its place in the order."""

    row: int
    replicate: int
    block: int
    seed: int
    centre: int = 0
    """Number of a centre run within its replicate; 0 for all others."""


def make_design(study: Study, rows: Sequence[int] = ()) -> Design:
    """Build the design that a study asks for; the same study always gives the same design.

    Parameters
    ----------
    rows : sequence of int
        Configurations of one replicate where they are known from `planned_rows`: making their
        matrix takes a second of imports.
    """
    planned = _base(study, rows)
    for step in study.augment:
        planned += _augmented(study, planned, step)
    ordered = sorted(planned, key=lambda s: (s.block, _random_rank(study.order_seed, s)))
    width = max(3, len(str(math.prod(study.sizes) - 1)))
    configuration = _configurations(study.factors)
    runs = tuple(
        _run(
            run,
            i,
            centre_of(study.factors) if run.centre else configuration(run.row),
            width,
            stream_seeds(study, run.replicate, run.seed),
        )
        for i, run in enumerate(ordered, start=1)
    )
    return Design(study.keys, runs, tuple(study.streams))


def stream_seeds(study: Study, replicate: int, seed: int) -> dict[str, int]:
    """Stream -> its seed in a replicate; replicates added later have a fresh one for all."""
    planned = replicate <= study.replicates
    return {
        name: seeds[replicate - 1] if planned else seed for name, seeds in study.streams.items()
    }


def _sign(numbers: Sequence[int], term: int) -> int:
    """Value of a term of two-level factors at some levels: the product of their codes."""
    low = sum(term >> i & 1 and number == 0 for i, number in enumerate(numbers))
    return 1 if low % 2 == 0 else -1


def _base(study: Study, rows: Sequence[int]) -> list[_Unordered]:
    rows = rows or standard_rows(study)
    words = study.block_words
    within = dict.fromkeys(rows, 0)
    if words:
        for row in rows:
            numbers = level_numbers(row, study.sizes)
            within[row] = sum(1 << i for i, word in enumerate(words) if _sign(numbers, word) > 0)
    planned = []
    for replicate in range(1, study.replicates + 1):
        first = (replicate - 1 << len(words)) + 1
        seed = next(iter(study.streams.values()), study.seeds)[replicate - 1]
        planned += [_Unordered(row, replicate, first + within[row], seed) for row in rows]
        for i in range(study.centre):  # dealt to the blocks of the replicate in turn
            block = first + i % (1 << len(words))
            planned.append(_Unordered(math.prod(study.sizes), replicate, block, seed, i + 1))
    return planned


def _augmented(study: Study, planned: list[_Unordered], step: Augment) -> list[_Unordered]:
    """Runs added to what is planned: new replicates, all runs with levels flipped, another part.

    Each new replicate is one block; so is a fold-over of a block, and a part in a replicate.
    """
    block = max(run.block for run in planned)
    if step.part:
        return _part(study, planned, step.part)
    if step.flip:
        added = [
            run._replace(row=_flipped(study, run.row, step.flip), block=run.block + block)
            for run in planned
            if not run.centre
        ]
        taken = {(run.row, run.replicate) for run in planned}
        if any((run.row, run.replicate) in taken for run in added):
            raise DoeError(
                f"exchanging the levels of {', '.join(step.flip)} repeats planned runs; choose "
                "factors that stand in an odd number in some word of the defining relation"
            )
        return added
    replicate = max(run.replicate for run in planned)
    rows = sorted({(run.row, run.centre) for run in planned})
    if step.confirm:
        rows = [
            (row, 0)
            for row, c in rows
            if not c and configuration_of(study.factors, row).name in step.confirm
        ]
    return [
        _Unordered(row, replicate + i, block + i, seed, centre)
        for i, seed in enumerate(step.seeds, start=1)
        for row, centre in rows
    ]


def _flipped(study: Study, row: int, flip: tuple[str, ...]) -> int:
    """The row with the levels of some factors exchanged."""
    numbers = level_numbers(row, study.sizes)
    turned = [
        size - 1 - number if key in flip else number
        for number, size, key in zip(numbers, study.sizes, study.keys, strict=True)
    ]
    return row_of(turned, study.sizes)


def _part(study: Study, planned: list[_Unordered], number: int) -> list[_Unordered]:
    """A further part of the design, in every replicate as a block of its own."""
    rows = part_rows(study, study.parts)[number - 1]
    block = max(run.block for run in planned)
    replicates = sorted({(run.replicate, run.seed) for run in planned})
    return [
        _Unordered(row, replicate, block + i, seed)
        for i, (replicate, seed) in enumerate(replicates, start=1)
        for row in rows
    ]


def _random_rank(order_seed: int, run: _Unordered) -> bytes:
    """A rank that is random, yet the same for ever: no generator that a release could change."""
    centre = f"/{run.centre}" if run.centre else ""
    return hashlib.sha256(f"{order_seed}/{run.block}/{run.row}{centre}".encode()).digest()


def _run(
    run: _Unordered, run_order: int, configuration: Configuration, width: int, seeds: dict[str, int]
) -> Run:
    name = f"centre{run.centre}" if run.centre else f"{run.row:0{width}d}"
    run_id = f"{name}-r{run.replicate}"
    numbers = (run_order, run.row, run.replicate, run.block, run.seed)
    return Run(run_id, *numbers, *configuration, seeds)


class Configuration(NamedTuple):
    """The levels of some factors: as they are shown, as they are named, as given, coded."""

    label: str
    name: str
    levels: dict[str, Level]
    coded: Coded


def centre_of(factors: Sequence[Factor]) -> Configuration:
    """The middle of every factor."""
    levels: dict[str, Level] = {factor.key: factor.centre for factor in factors}
    return Configuration(CENTRE, CENTRE, levels, (0,) * len(factors))


TOGETHER = 8
"""Factors whose combinations are made once and looked up: a design may have 100,000 rows."""


def _configurations(factors: Sequence[Factor]) -> Callable[[int], Configuration]:
    """How to find the configuration of a row; labels of one-letter keys follow each other."""
    single = single_letters([factor.key for factor in factors])
    size = TOGETHER if single else len(factors)
    parts = [factors[i : i + size] for i in range(0, len(factors), size)]
    sizes = [math.prod(len(factor.levels) for factor in part) for part in parts]
    tables = [cache(partial(configuration_of, part)) for part in parts]
    pairs = list(zip(tables, sizes, strict=True))

    def configuration(row: int) -> Configuration:
        label, name, levels, coded = Configuration("", "", {}, ())
        for table, size in pairs:
            row, number = divmod(row, size)
            part_label, part_name, part_levels, part_coded = table(number)
            label += part_label
            name += part_name
            levels = {**levels, **part_levels}
            coded += part_coded
        return Configuration(label, name, levels, coded)

    return configuration


def configuration_of(factors: Sequence[Factor], row: int) -> Configuration:
    """The configuration in a row of the full factorial of some factors."""
    sizes = [len(factor.levels) for factor in factors]
    numbers = level_numbers(row, sizes)
    levels = {f.key: f.levels[number] for f, number in zip(factors, numbers, strict=True)}
    texts = [level_text(level) for level in levels.values()]
    keys, numbered = list(levels), list(zip(numbers, texts, strict=True))
    coded = tuple(map(coded_level, numbers, sizes))
    return Configuration(config_label(keys, numbered), config_name(keys, numbered), levels, coded)


def runs_of(runs: Sequence[Run], config: str) -> list[Run]:
    """Runs of a configuration, named as in files or as it is shown.

    Raises
    ------
    DoeError
        If no run has it; says what the names look like.
    """
    if chosen := [run for run in runs if config in (run.name, run.config)]:
        return chosen
    names = sorted({run.name for run in runs})
    raise DoeError(
        f"no configuration {config!r} is planned{nearest(config, names)}; they look like {names[0]}"
    )


# The CSV form -----------------------------------------------------------------------------------


def csv_header(design: Design) -> list[str]:
    """Columns of design.csv: the run, its seed of each stream, its levels as given and coded."""
    keys = design.keys
    return [*RUN_COLUMNS, *seed_columns(design.streams), *keys, *coded_columns(keys)]


class _Cells(dict[Level, str]):
    """Levels of one factor, codes or names as cells of CSV, made when first asked for."""

    def __missing__(self, level: Level) -> str:
        self[level] = _csv_line([level_text(level), ""])[:-2]
        return self[level]


def _csv_line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _csv_lines(design: Design) -> Iterator[str]:
    """A line per run: a design may have 100,000, of few different cells."""
    yield _csv_line(csv_header(design))
    factors, codes, names = [_Cells() for _ in design.keys], _Cells(), _Cells()
    for run in design.runs:  # `Run.cells`, without asking each for its kind
        numbers = f"{run.run_order},{run.row},{run.replicate},{run.block},{run.seed}"
        name = run.name if run.name.isalnum() else names[run.name]
        levels = [cells[level] for cells, level in zip(factors, run.levels.values(), strict=True)]
        coded = [codes[code] for code in run.coded]
        seeds = map(str, run.seeds.values())
        yield ",".join([run.run_id, numbers, name, *seeds, *levels, *coded]) + "\n"


def design_csv(design: Design) -> str:
    """Write a design as CSV, a line per run in run order."""
    return "".join(_csv_lines(design))


def planned_rows(text: str, study: Study) -> list[int]:
    """Configurations of the first replicate as far as no matrix is needed to know them.

    Those of a full factorial are all; those of a fraction stand in its design.csv. None where they
    are not all there.
    """
    if study.parts or (study.generators and study.exclude):
        return []  # how many there are, only pydoe knows
    if not study.generators:
        return allowed_rows(study)
    blocks = 1 << len(study.block_words)
    rows = {
        int(row)
        for line in csv.reader(io.StringIO(text))
        for _, _, row, replicate, block in [(*line, *RUN_COLUMNS)[:5]]
        if replicate == "1" and block.isdecimal() and int(block) <= blocks and row.isdecimal()
    }
    rows.discard(math.prod(study.sizes))  # centre runs
    planned = math.prod(study.sizes) >> len(study.generators)
    return sorted(rows) if len(rows) == planned else []
