"""How the runs of a study become the rows and columns of a paper's tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from doe.analysis.across import Across, across
from doe.analysis.analyze import Analysis
from doe.scan import Seen
from doe.study import Study
from doe.terms import parse_term
from doe.views.table import Spread


class Cell(NamedTuple):
    """One configuration: mean and standard deviation of every response over its runs."""

    row: int
    config: str
    coded: tuple[int, ...]
    spreads: Mapping[str, Spread]
    """Responses with a value in some run."""


class Group(NamedTuple):
    """Responses that share a table."""

    name: str
    title: str
    responses: tuple[str, ...]
    baseline: Mapping[str, int] = {}
    """Coded levels that mark the baseline; empty for none."""


class Paper(NamedTuple):
    """How the runs of a study are laid out in tables."""

    groups: tuple[Group, ...]
    further: Group | None
    split: str | None
    """Factor whose two levels make the two parts of each table."""
    drop: tuple[str, ...]
    """Factors whose terms are left out of the tables of effects."""


PIT_BASELINES = {
    "enc_avg": {"A": -1, "B": -1, "C": 1, "D": -1, "E": -1},
    "dec_avg": {"A": 1, "B": 1, "C": 1, "D": -1, "E": -1},
}
"""Heatmap supervision alone for the encoder; with the decoder's paths open for the decoder."""
PIT_NAMES = {"enc_avg": ("enc", "Encoder"), "dec_avg": ("dec", "Decoder")}


def paper(study: Study) -> Paper:
    """The tables of a study: PIT's as published, any other's by its averages."""
    answers = study.responses
    if study.keys == tuple("ABCDEF") and set(PIT_NAMES) <= set(answers.averages):
        groups = tuple(
            Group(short, f"{title} tracking errors", answers.averages[key], PIT_BASELINES[key])
            for key, (short, title) in PIT_NAMES.items()
        )
        velocities = tuple(name for name in answers.further if name.startswith("V"))
        speed = Group(
            "velocity", "Velocity prediction errors", velocities, PIT_BASELINES["dec_avg"]
        )
        return Paper(groups, speed if velocities else None, "F", ("F",))
    groups = tuple(Group(name, name, parts) for name, parts in answers.averages.items())
    whole = Group("metrics", "Metrics", answers.metrics)
    further = Group("further", "Further metrics", answers.further) if answers.further else None
    return Paper(groups or (whole,), further, None, ())


def cells_of(views: Sequence[Seen], values: dict[str, list[float]]) -> tuple[Cell, ...]:
    """Means and standard deviations of all configurations, over the runs that have a value."""
    places: dict[int, list[int]] = {}
    for i, seen in enumerate(views):
        places.setdefault(seen.run.row, []).append(i)
    cells = []
    for row in sorted(places):
        run = views[places[row][0]].run
        spreads: dict[str, Spread] = {}
        for name, column in values.items():
            if (spread := cell_spread([column[i] for i in places[row]])) is not None:
                spreads[name] = spread
        cells.append(Cell(row, run.config, run.coded, spreads))
    return tuple(cells)


def group_effects(study: Study, layout: Paper, analyses: dict[str, Analysis]) -> dict[str, Across]:
    """Effects on each group of responses, without the terms of dropped factors."""
    dropped = sum(parse_term(key, study.keys) for key in layout.drop)
    found = {}
    for group in layout.groups:
        if all(name in analyses for name in group.responses):
            whole = across([analyses[name] for name in group.responses])
            kept = [row for row in whole.rows if not parse_term(row.term, study.keys) & dropped]
            found[group.name] = msgspec.structs.replace(whole, rows=tuple(kept))
    return found


def cell_spread(values: Sequence[float]) -> Spread | None:
    """Mean and sample standard deviation of the values that are there; None without any."""
    known = [value for value in values if not math.isnan(value)]
    if not known:
        return None
    mean = math.fsum(known) / len(known)
    if len(known) < 2:
        return Spread(mean, None)
    return Spread(mean, math.sqrt(math.fsum((v - mean) ** 2 for v in known) / (len(known) - 1)))
