"""Designs: replicated, blocked, with centre runs, in random order; and runs added to them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from doe.design.configurations import (
    CENTRE,
    Coded,
    Configuration,
    Levels,
    levels_of_rows,
    study_configurations,
)
from doe.design.kinds import chosen_kind
from doe.design.kinds.subset import part_rows
from doe.design.kinds.surface import axial_points
from doe.errors import DoeError, nearest
from doe.study.values import REPLICATE, Augment, Level, Study
from doe.terms import level_text


class Run(NamedTuple):
    """One planned training run."""

    run_id: str
    run_order: int
    """Position in the random order, from 1."""
    row: int
    """Number of the configuration in the standard order of the full factorial, from 0; those
    between the levels, such as the centre, have the next numbers."""
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
    whole_plot: int = 0
    """Number of its whole plot, from 1; 0 where nothing is hard to change."""
    stage: str = ""
    """The stage that this is an execution of; empty for a run."""

    @property
    def cells(self) -> tuple[str | int, ...]:
        """What it has in `RUN_COLUMNS`, and its seed of each stream."""
        planned = (self.run_order, self.row, self.replicate, self.block, self.seed)
        return (self.run_id, *planned, self.name, *self.seeds.values())

    @property
    def given(self) -> Levels:
        """Its levels in the order of the factors."""
        return tuple(self.levels.values())

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
    plotted: bool = False
    """Whether factors are hard to change, so that runs have a whole plot."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return max(run.block for run in self.runs)


class _Unordered(NamedTuple):
    """A run before it has its place in the order."""

    levels: Levels
    replicate: int
    block: int
    seed: int
    row: int
    repeat: int = 1
    """Number among the runs of its configuration within its replicate."""
    plot: int = 0
    """Number of its whole plot among those of its block with the same levels."""


def make_design(study: Study) -> Design:
    """Build the design that a study asks for; the same study always gives the same design."""
    points = chosen_kind(study).points()
    blocks = max(1 << len(study.block_words), *(point.block + 1 for point in points))
    number = study_configurations(study).number
    repeats = _repeats(number(point.levels) for point in points)
    numbered = [(*pair, *point) for pair, point in zip(repeats, points, strict=True)]
    planned = []
    for replicate in range(1, study.replicates + 1):
        seed = next(iter(study.streams.values()), study.seeds)[replicate - 1]
        first = (replicate - 1) * blocks + 1
        planned += [
            _Unordered(levels, replicate, first + block, seed, row, repeat, plot)
            for row, repeat, levels, block, plot in numbered
        ]
    empty = Design(study.keys, (), tuple(study.streams), bool(study.whole_plot_factors))
    design = _with_runs(study, empty, planned)
    return extended_design(study, design, study.augment)


def _repeats(rows: Iterable[int]) -> list[tuple[int, int]]:
    """Each row with its number among those that are the same."""
    counts: Counter[int] = Counter()
    numbered = []
    for row in rows:
        counts[row] += 1
        numbered.append((row, counts[row]))
    return numbered


def stream_seeds(study: Study, replicate: int, seed: int) -> dict[str, int]:
    """Stream -> its seed in a replicate; replicates added later have a fresh one for all."""
    planned = replicate <= study.replicates
    return {
        name: seeds[replicate - 1] if planned else seed for name, seeds in study.streams.items()
    }


def _with_runs(study: Study, design: Design, added: Iterable[_Unordered]) -> Design:
    """The design with runs in new blocks behind all others, in random order within each.

    Whole plots come in random order in their block, and so do the runs of each.
    """
    named = study_configurations(study)
    hard = [study.keys.index(key) for key in study.whole_plot_factors]
    known: dict[int, Configuration] = {}
    placed = []
    for run in added:
        if (configuration := known.get(run.row)) is None:
            configuration = known[run.row] = named.at(run.levels)
        centre = configuration.name == CENTRE
        plot = _plot_rank(study.order_seed, run, hard)
        rank = _random_rank(study.order_seed, run, centre)
        placed.append((run.block, plot, rank, run, configuration))
    runs = []
    plots = max((run.whole_plot for run in design.runs), default=0)
    before = (0, b"")
    for i, (block, plot, _, run, configuration) in enumerate(
        sorted(placed), start=len(design.runs) + 1
    ):
        plots += bool(hard) and (block, plot) != before
        before = (block, plot)
        seeds = stream_seeds(study, run.replicate, run.seed)
        numbers = (i, run.row, run.replicate, run.block, run.seed)
        runs.append(
            Run(
                _run_id(run, configuration.name, named.width),
                *numbers,
                *configuration,
                seeds,
                plots,
            )
        )
    return design._replace(runs=_with_shared_plots(study, (*design.runs, *runs)))


def _with_shared_plots(study: Study, runs: tuple[Run, ...]) -> tuple[Run, ...]:
    """Runs with one whole plot for all that share the execution of a stage, wherever they are."""
    hard = study.whole_plot_factors
    if not hard or not study.staged_factors.issuperset(hard):
        return runs  # a factor that is hard to change without a stage is set in every block
    scopes = {stage.seed for stage in study.stages.values() if stage.factors}
    numbers: dict[tuple[object, ...], int] = {}
    numbered = []
    for run in runs:
        seeds = [run.seeds[name] for name in study.streams if name in scopes]
        scope = [run.replicate] if REPLICATE in scopes else seeds
        plot = (*scope, *(run.levels[key] for key in hard))
        numbered.append(run._replace(whole_plot=numbers.setdefault(plot, len(numbers) + 1)))
    return tuple(numbered)


def _plot_rank(order_seed: int, run: _Unordered, hard: Sequence[int]) -> bytes:
    """Rank of a run's whole plot in its block; the same for all where nothing is hard to change."""
    if not hard:
        return b""
    levels = ",".join(level_text(run.levels[i]) for i in hard)
    return hashlib.sha256(f"{order_seed}/{run.block}/{levels}/{run.plot}".encode()).digest()


def _random_rank(order_seed: int, run: _Unordered, centre: bool) -> bytes:
    """A rank that is random, yet the same for ever: no generator that a release could change."""
    repeat = f"/{run.repeat}" if centre or run.repeat > 1 else ""
    return hashlib.sha256(f"{order_seed}/{run.block}/{run.row}{repeat}".encode()).digest()


def _run_id(run: _Unordered, name: str, width: int) -> str:
    if name == CENTRE:
        return f"{CENTRE}{run.repeat}-r{run.replicate}"
    again = f"x{run.repeat}" if run.repeat > 1 else ""
    return f"{run.row:0{width}d}{again}-r{run.replicate}"


# Runs added to a design -------------------------------------------------------------------------


def extended_design(study: Study, design: Design, steps: Sequence[Augment]) -> Design:
    """The design with runs added; those that it has stay as they are."""
    for step in steps:
        design = _with_runs(study, design, _added(study, design, step))
    return design


def _added(study: Study, design: Design, step: Augment) -> list[_Unordered]:
    """Runs added to what is planned: new replicates, all runs with levels flipped, or points.

    Each new replicate is one block; so is a fold-over of a block, and a part in a replicate.
    """
    if step.part:
        rows = part_rows(study, study.parts)[step.part - 1]
        return _added_points(study, design, levels_of_rows(study.factors, rows))
    if step.axial:
        return _added_points(study, design, axial_points(study, step.axial))
    if step.runs:
        return _added_points(study, design, _optimal(study, design, step))
    if step.points and not step.confirm:
        return _added_points(study, design, step.points)
    if step.flip:
        return _foldover(study, design, step.flip)
    replicate = max(run.replicate for run in design.runs)
    return [
        _Unordered(levels, replicate + i, design.blocks + i, seed, row, repeat)
        for i, seed in enumerate(step.seeds, start=1)
        for row, levels, repeats in (
            *_planned_points(design, step.confirm),
            *_new_points(study, design, step.points),
        )
        for repeat in range(1, 1 + (1 if step.confirm else repeats))
    ]


def _planned_points(design: Design, names: Sequence[str]) -> list[tuple[int, Levels, int]]:
    """Configurations of a design, or those named: row, levels, most runs in one replicate."""
    counts = Counter((run.row, run.replicate) for run in design.runs)
    most: dict[int, int] = {}
    for (row, _), count in counts.items():
        most[row] = max(most.get(row, 0), count)
    levels = {r.row: r.given for r in design.runs if not names or r.name in names}
    return [(row, levels[row], most[row]) for row in sorted(levels)]


def _new_points(
    study: Study, design: Design, points: Sequence[Levels]
) -> list[tuple[int, Levels, int]]:
    """Configurations that no run of a design has, as `_planned_points` gives them."""
    known = {run.given: run.row for run in design.runs}
    number = study_configurations(study, known).number
    return [(number(levels), levels, 1) for levels in points if levels not in known]


def _foldover(study: Study, design: Design, flip: Sequence[str]) -> list[_Unordered]:
    """All runs at the levels of two-level factors with some of them exchanged."""
    rows = {run.given: run.row for run in design.runs}
    number = study_configurations(study, rows).number
    taken = {(run.row, run.replicate) for run in design.runs}
    added = []
    for run in design.runs:
        if run.name == CENTRE:
            continue
        levels = tuple(
            factor.low
            if factor.key in flip and level == factor.high
            else factor.high
            if factor.key in flip
            else level
            for factor, level in zip(study.factors, run.given, strict=True)
        )
        block = run.block + design.blocks
        added.append(_Unordered(levels, run.replicate, block, run.seed, number(levels)))
    if any((run.row, run.replicate) in taken for run in added):
        raise DoeError(
            f"exchanging the levels of {', '.join(flip)} repeats planned runs; choose "
            "factors that stand in an odd number in some word of the defining relation"
        )
    return added


def _added_points(study: Study, design: Design, points: Sequence[Levels]) -> list[_Unordered]:
    """Further points, in every replicate as a block of its own."""
    known = {run.given: run.row for run in design.runs}
    number = study_configurations(study, known).number
    rows = [number(levels) for levels in points]
    replicates = sorted({(run.replicate, run.seed) for run in design.runs})
    added = []
    for i, (replicate, seed) in enumerate(replicates, start=1):
        there = [run.row for run in design.runs if run.replicate == replicate]
        repeats = _repeats([*there, *rows])[len(there) :]
        added += [
            _Unordered(levels, replicate, design.blocks + i, seed, row, repeat)
            for (row, repeat), levels in zip(repeats, points, strict=True)
        ]
    return added


def _optimal(study: Study, design: Design, step: Augment) -> list[Levels]:
    """Points of an optimal design beside the runs of the first replicate."""
    from doe.design.kinds import optimal

    if study.whole_plot_factors:
        raise DoeError(
            f"{study.whole_plot_factors[0]} is hard to change, and an optimal augmentation would "
            "set it in every run; add replicates, which bring whole plots"
        )
    settings = optimal.Settings(runs=step.runs, model=step.model)
    done = [(run.given, run.block) for run in design.runs if run.replicate == 1]
    terms = optimal.terms(study, settings)
    blocks = [design.blocks + 1] * step.runs
    return optimal.optimal_points(study, settings, terms, (), blocks, done)


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
