"""Designs: replicated, blocked, with centre runs, in random order; and runs added to them."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
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
from doe.study.stages import stage_factors, stages_in_order
from doe.study.values import FACTORIAL, NO_SEED, REPLICATE, Augment, Level, Study
from doe.terms import level_text, parse_term


class Run(NamedTuple):
    """One planned training run."""

    run_id: str
    run_order: int
    """Position in the random order, from 1."""
    row: int
    """Number of the configuration in the standard order of the full factorial, from 0;
    configurations between the levels, such as the centre, have the next numbers."""
    replicate: int
    block: int
    seed: int
    """Seed of the replicate, or of the first stream if a study has several; a different one if the
    replicate has already run this configuration."""
    config: str
    """Label of the configuration, ``A1B0`` or ``0.01 · adam``."""
    name: str
    """Name of the configuration in files and options, ``A1B0`` or ``lr=0.01,optimizer=adam``."""
    levels: dict[str, Level]
    coded: Coded
    seeds: dict[str, int] = {}  # noqa: RUF012 - never written to
    """Stream -> its seed, if a study has several streams."""
    whole_plot: int = 0
    """Number of its whole plot, from 1; 0 if no factor is hard to change."""
    stage: str = ""
    """Stage of which this is an execution; empty for a run."""

    @property
    def cells(self) -> tuple[str | int, ...]:
        """Values of `RUN_COLUMNS`, and its seed of each stream."""
        planned = (self.run_order, self.row, self.replicate, self.block, self.seed)
        return (self.run_id, *planned, self.name, *self.seeds.values())

    @property
    def level_values(self) -> Levels:
        """Levels in the order of the factors."""
        return tuple(self.levels.values())

    @property
    def seed_text(self) -> str:
        """Seed, or that of every stream, for a message."""
        if not self.seeds:
            return f"seed {self.seed}"
        return f"seeds {', '.join(f'{name} {seed}' for name, seed in self.seeds.items())}"


class Design(NamedTuple):
    """All runs of a study in the order in which they start."""

    keys: tuple[str, ...]
    runs: tuple[Run, ...]
    streams: tuple[str, ...] = ()
    plotted: bool = False
    """Whether factors are hard to change, so that runs belong to whole plots."""

    @property
    def blocks(self) -> int:
        """Number of blocks."""
        return max(run.block for run in self.runs)


class _Unordered(NamedTuple):
    """A run before it has a position in the order."""

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
    """Build the design of a study; the same study always gives the same design."""
    points = chosen_kind(study).points()
    blocks = max(1 << len(study.block_words), *(point.block + 1 for point in points))
    number = study_configurations(study).number
    repeats = _repeats(number(point.levels) for point in points)
    numbered = [(*pair, *point) for pair, point in zip(repeats, points, strict=True)]
    planned = []
    for replicate, seed in enumerate(replicate_seeds(study)[: study.replicates], start=1):
        first = (replicate - 1) * blocks + 1
        planned += [
            _Unordered(levels, replicate, first + block, seed, row, repeat, plot)
            for row, repeat, levels, block, plot in numbered
        ]
    empty = Design(study.keys, (), tuple(study.streams), bool(study.whole_plot_factors))
    design = _with_runs(study, empty, planned)
    return extended_design(study, design, study.augment)


def _repeats(rows: Iterable[int]) -> list[tuple[int, int]]:
    """Number each row among its duplicates."""
    counts: Counter[int] = Counter()
    numbered = []
    for row in rows:
        counts[row] += 1
        numbered.append((row, counts[row]))
    return numbered


def stream_seeds(study: Study, replicate: int, seed: int) -> dict[str, int]:
    """Return stream -> seed of a replicate; replicates added later have a new seed in all
    streams."""
    planned = replicate <= study.replicates
    return {
        name: seeds[replicate - 1] if planned else seed for name, seeds in study.streams.items()
    }


def replicate_seeds(study: Study) -> list[int]:
    """Return the seed of each replicate, including those added later."""
    first = next(iter(study.streams.values()), study.seeds)[: study.replicates]
    return [*first, *(seed for step in study.augment for seed in step.seeds)]


def _seed_of_repeat(seed: int, repeat: int) -> int:
    """Return the seed of a configuration's repeated run, which would otherwise copy the first."""
    if repeat == 1:
        return seed
    return int(hashlib.sha256(f"{seed}/{repeat}".encode()).hexdigest()[:7], 16)


def _with_runs(study: Study, design: Design, added: Iterable[_Unordered]) -> Design:
    """Add runs in new blocks after all others, in random order within each.

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
        seed = run.seed if seeds else _seed_of_repeat(run.seed, run.repeat)
        numbers = (i, run.row, run.replicate, run.block, seed)
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
    """Assign one whole plot to all runs that share the execution of a stage."""
    hard = study.whole_plot_factors
    if not hard or not study.staged_factors.issuperset(hard):
        return runs  # without a stage, a hard-to-change factor is set in every block
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
    """Return the random rank of a run's whole plot in its block; constant without whole plots."""
    if not hard:
        return b""
    levels = ",".join(level_text(run.levels[i]) for i in hard)
    return hashlib.sha256(f"{order_seed}/{run.block}/{levels}/{run.plot}".encode()).digest()


def _random_rank(order_seed: int, run: _Unordered, centre: bool) -> bytes:
    """Return a random rank that never changes: no generator that a release could change."""
    repeat = f"/{run.repeat}" if centre or run.repeat > 1 else ""
    return hashlib.sha256(f"{order_seed}/{run.block}/{run.row}{repeat}".encode()).digest()


def _run_id(run: _Unordered, name: str, width: int) -> str:
    if name == CENTRE:
        return f"{CENTRE}{run.repeat}-r{run.replicate}"
    again = f"x{run.repeat}" if run.repeat > 1 else ""
    return f"{run.row:0{width}d}{again}-r{run.replicate}"


# Runs added to a design -------------------------------------------------------------------------


def extended_design(study: Study, design: Design, steps: Sequence[Augment]) -> Design:
    """Add runs to a design; existing ones stay as they are."""
    for step in steps:
        design = _with_runs(study, design, _added(study, design, step))
    return design


def _added(study: Study, design: Design, step: Augment) -> list[_Unordered]:
    """Return the added runs: new replicates, all runs with levels flipped, or points.

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
    """Return the configurations of a design, or those named: row, levels, most runs in one
    replicate."""
    counts = Counter((run.row, run.replicate) for run in design.runs)
    most: dict[int, int] = {}
    for (row, _), count in counts.items():
        most[row] = max(most.get(row, 0), count)
    levels = {r.row: r.level_values for r in design.runs if not names or r.name in names}
    return [(row, levels[row], most[row]) for row in sorted(levels)]


def _new_points(
    study: Study, design: Design, points: Sequence[Levels]
) -> list[tuple[int, Levels, int]]:
    """Return new configurations of a design, in the form of `_planned_points`."""
    known = {run.level_values: run.row for run in design.runs}
    number = study_configurations(study, known).number
    return [(number(levels), levels, 1) for levels in points if levels not in known]


def _foldover(study: Study, design: Design, flip: Sequence[str]) -> list[_Unordered]:
    """Return all runs with the levels of some two-level factors exchanged."""
    rows = {run.level_values: run.row for run in design.runs}
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
            for factor, level in zip(study.factors, run.level_values, strict=True)
        )
        block = run.block + design.blocks
        added.append(_Unordered(levels, run.replicate, block, run.seed, number(levels)))
    if any((run.row, run.replicate) in taken for run in added):
        raise DoeError(
            f"exchanging the levels of {', '.join(flip)} repeats planned runs; choose factors of "
            "which an odd number occurs in some word of the defining relation"
        )
    return added


def _added_points(study: Study, design: Design, points: Sequence[Levels]) -> list[_Unordered]:
    """Return further points, as a new block in every replicate."""
    known = {run.level_values: run.row for run in design.runs}
    number = study_configurations(study, known).number
    rows = [number(levels) for levels in points]
    seeds, added = replicate_seeds(study), []
    for i, replicate in enumerate(sorted({run.replicate for run in design.runs}), start=1):
        there = [run.row for run in design.runs if run.replicate == replicate]
        repeats = _repeats([*there, *rows])[len(there) :]
        added += [
            _Unordered(levels, replicate, design.blocks + i, seeds[replicate - 1], row, repeat)
            for (row, repeat), levels in zip(repeats, points, strict=True)
        ]
    return added


def _optimal(study: Study, design: Design, step: Augment) -> list[Levels]:
    """Return the points of an optimal design that complements the first replicate."""
    from doe.design.kinds import optimal

    if study.whole_plot_factors:
        raise DoeError(
            f"{study.whole_plot_factors[0]} is hard to change, and an optimal augmentation would "
            "set it in every run; add replicates, which have whole plots"
        )
    settings = optimal.Settings(runs=step.runs, model=step.model)
    done = [(run.level_values, run.block) for run in design.runs if run.replicate == 1]
    terms = optimal.terms(study, settings)
    blocks = [design.blocks + 1] * step.runs
    return optimal.optimal_points(study, settings, terms, (), blocks, done)


def runs_of(runs: Sequence[Run], config: str) -> list[Run]:
    """Return the runs of a configuration, by its name or its label.

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


# Portions -----------------------------------------------------------------------------------------


IN_HALVES, IN_QUARTERS = 3, 6
"""Number of factors from which halves lose only the highest interaction, and quarters those of
four."""


@cache
def split_words(factors: int, asked: frozenset[int] = frozenset()) -> tuple[int, ...]:
    """Return the interactions whose signs split a full two-level factorial: two, one or none.

    Two for quarters, each of two thirds of the factors, so that their product is as long; one for
    halves. None of them is `asked` about.
    """
    every = (1 << factors) - 1
    thirds = [sum(1 << i for i in range(factors) if i * 3 // factors == part) for part in range(3)]
    if factors >= IN_QUARTERS and not asked & {every & ~third for third in thirds}:
        return every & ~thirds[2], every & ~thirds[0]
    return (every,) if factors >= IN_HALVES and every not in asked else ()


def _words(study: Study) -> tuple[int, ...]:
    """Return the interactions that split each replicate of a study with full two-level
    factorials."""
    rule = study.stopping
    plain = study.kind == FACTORIAL and study.two_level and not study.streams and not study.stages
    other = (study.fraction, study.blocks, study.centre, study.exclude)
    added = any(step.flip or step.part or step.axial or step.runs for step in study.augment)
    nested = any(factor.when or factor.hard for factor in study.factors)
    if rule is None or rule.rule == 1 or not plain or any(other) or added or nested:
        return ()
    asked = frozenset(parse_term(term, study.keys) for term in rule.terms)
    return split_words(len(study.keys), asked)


def portions_per_replicate(study: Study) -> int:
    """Return 4, 2 or 1: whether a replicate is run in quarters, in halves or whole."""
    return 1 << len(_words(study))


def portion(study: Study, run: Run) -> int:
    """Return the number, from 1, of the portion that a run belongs to."""
    words = _words(study)
    if not words:
        return run.replicate
    high = sum(
        (run.levels[factor.key] == factor.high) << i for i, factor in enumerate(study.factors)
    )
    part = sum((word & high).bit_count() % 2 << i for i, word in enumerate(words))
    return (run.replicate - 1 << len(words)) + 1 + part


def most_portions(study: Study) -> int:
    """Return the last portion of a study with a stopping rule."""
    rule = study.stopping
    return rule.max_replicates * portions_per_replicate(study) if rule else 0


# Stages -------------------------------------------------------------------------------------------


def stage_needs(study: Study, run: Run) -> dict[str, str]:
    """Map each stage to the id of its execution that a run, or another stage, waits for."""
    names: Iterable[str] = study.stages
    if run.stage:
        names = study.stages[run.stage].needs
    return {name: stage_execution(study, name, run).run_id for name in names}


def stage_execution(study: Study, name: str, run: Run) -> Run:
    """Return the execution of a stage for the levels and the seed of a run.

    Its id holds a digest of its levels, so that it stays the same in a design that grows.
    """
    seed = study.stages[name].seed
    levels = {key: run.levels[key] for key in stage_factors(study, name)}
    label = ", ".join(f"{key}={level_text(level)}" for key, level in levels.items())
    digest = hashlib.sha256(label.encode()).hexdigest()[:8]
    scope = {REPLICATE: f"-r{run.replicate}", NO_SEED: ""}.get(seed)
    seeds = run.seeds if seed == REPLICATE else {}
    number = replicate_seeds(study)[run.replicate - 1] if seed == REPLICATE else 0
    if scope is None:
        number = run.seeds[seed]
        seeds, scope = {seed: number}, f"-{seed}{number}"
    return Run(
        run_id=f"stage-{name}-{digest}{scope}",
        run_order=run.run_order,
        row=0,
        replicate=run.replicate if seed == REPLICATE else 1,
        block=run.block,
        seed=number,
        config=label or "all levels",
        name=label,
        levels=levels,
        coded=(),
        seeds=seeds,
        stage=name,
    )


def stage_executions(study: Study, runs: Iterable[Run]) -> tuple[Run, ...]:
    """Return all executions of stages that some runs need, once each, in the order of these
    runs."""
    names = stages_in_order(study)
    executions: dict[str, Run] = {}
    for run in runs if names else ():
        for name in names:
            execution = stage_execution(study, name, run)
            executions.setdefault(execution.run_id, execution)
    return tuple(executions.values())
