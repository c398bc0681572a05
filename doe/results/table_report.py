"""A table of results as a study without a directory, so that any CSV has a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from doe.analysis.data import Observations
from doe.analysis.levels.layout import LevelObservations
from doe.design.configurations import CENTRE, configuration_of
from doe.design.runs import Run
from doe.errors import DoeError
from doe.results.status import Overview
from doe.store.scan import RunStatus, counts
from doe.store.verdicts import Result
from doe.study.levels import coded_level, level_numbers
from doe.study.values import Factor, Goal, Level, Responses, Study
from doe.terms import BETWEEN, level_text

TABLE = "table"
"""The backend of such a study: nothing executes it."""
BLOCK_SETTING = "block"
"""Its one setting: the column that names the block."""


def table_state(
    path: Path, observed: Sequence[Observations | LevelObservations], goal: str | None
) -> Overview:
    """The rows of a table as runs that are done, with their responses."""
    limited = next((o.response for o in observed if isinstance(o, Observations) and o.censored), "")
    if limited:
        raise DoeError(
            f"{limited} holds limits such as >50, of which there is no page; leave it out, or "
            "let `doe analyze` print what it tells"
        )
    design = _design(observed[0])
    known: Goal | None = "max" if goal == "max" else "min" if goal == "min" else None
    answers = Responses(tuple(o.response for o in observed), goal=known)
    replicates: Counter[int] = Counter()
    study = Study(
        *(path.stem, TABLE, design.factors, answers),
        replicates=max(Counter(design.cells).values()),
        settings={BLOCK_SETTING: design.block_name},
        centre=int(min(design.cells) < 0),
    )
    statuses = []
    for i, cell in enumerate(design.cells):
        replicates[cell] += 1
        values = {o.response: _value(float(o.y[i])) for o in observed}
        run = _run(study, design, i, replicates[cell])
        statuses.append(RunStatus(run, "done", Result("done", values)))
    return Overview(
        study=study,
        directory=path,
        counts=counts(statuses),
        failures={},
        again={},
        running=[],
        left=None,
        balance=dict(sorted(Counter(replicates.values()).items())),
        missing=[],
        warnings=[
            *design.notes,
            *(() if goal else ("No goal was given, so that nothing is called the best.",)),
        ],
        statuses=statuses,
    )


def _value(value: float) -> float | None:
    return value if math.isfinite(value) else None


class _Design(NamedTuple):
    """What a table says of its runs."""

    factors: tuple[Factor, ...]
    cells: list[int]
    """Row of each run in standard order; below 0 for a centre run."""
    numbers: list[tuple[int, ...]]
    """Number of the level of each factor in each run, below 0 at its middle."""
    block: list[int]
    block_name: str
    run_ids: Sequence[str]
    run_order: Sequence[int]
    notes: tuple[str, ...]


def _design(observed: Observations | LevelObservations) -> _Design:
    count = len(observed.y)
    if isinstance(observed, Observations):
        runs = observed.runs
        factors = tuple(Factor(f.key, (f.low, f.high), f.name) for f in runs.factors)
        ids, order = runs.run_ids, runs.run_order or range(1, count + 1)
        cells, block, name, notes = runs.cells, runs.block, runs.block_name, runs.notes
        numbers = [level_numbers(int(cell), (2,) * len(factors)) for cell in cells]
    else:
        layout = observed.layout
        factors = tuple(Factor(f.key, f.levels) for f in layout.factors)
        ids, order = tuple(f"row {i}" for i in range(1, count + 1)), range(1, count + 1)
        cells, block, notes = layout.cells, layout.block, layout.notes
        numbers = [tuple(levels) for levels in layout.index.tolist()]
        name = None if block is None else layout.block_name
    blocks = [1] * count if block is None else [int(b) + 1 for b in block]
    rows = [int(cell) for cell in cells]
    return _Design(factors, rows, numbers, blocks, name or "", ids, order, notes)


def _run(study: Study, design: _Design, i: int, replicate: int) -> Run:
    cell, numbers = design.cells[i], design.numbers[i]
    levels = {
        f.key: f.centre if n < 0 else f.levels[n]
        for f, n in zip(study.factors, numbers, strict=True)
    }
    at = configuration_of(study.factors, cell) if cell >= 0 else None
    return Run(
        run_id=design.run_ids[i],
        run_order=design.run_order[i],
        row=cell if cell >= 0 else math.prod(study.sizes) - 1 - cell,
        replicate=replicate,
        block=design.block[i],
        seed=0,
        config=at.label if at else _centre_label(levels, numbers),
        name=at.name if at else _centre_label(levels, numbers),
        levels=levels,
        coded=tuple(
            0 if n < 0 else coded_level(n, size)
            for n, size in zip(numbers, study.sizes, strict=True)
        ),
    )


def _centre_label(levels: Mapping[str, Level], numbers: Sequence[int]) -> str:
    """Name of a centre run: with the levels of factors that have no middle."""
    if max(numbers) < 0:
        return CENTRE
    named = zip(levels.values(), numbers, strict=True)
    return BETWEEN.join(CENTRE if n < 0 else level_text(level) for level, n in named)
