"""The CSV form of a design, written by `doe plan` and read back by everything else."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from doe.design.configurations import Code
from doe.design.runs import Design, Run
from doe.study.levels import coded_level
from doe.study.values import (
    RUN_COLUMNS,
    WHOLE_PLOT,
    Factor,
    Level,
    Study,
    coded_columns,
    seed_columns,
)
from doe.terms import BETWEEN, level_text, single_letters

DESIGN_FIELDS = (
    *("replicates", "seeds", "streams", "order_seed"),
    *("fraction", "exclude", "centre", "blocks", "design", "augment"),
)
"""Fields of a study, besides the factors, that determine its design."""
WORDS = ("name", "description", "sets", "role", "random")
"""Fields of a factor that do not affect the design."""


def csv_header(design: Design) -> list[str]:
    """Return the columns of design.csv: the run, its seeds, its levels as given and coded."""
    keys = design.keys
    plot = [WHOLE_PLOT] if design.plotted else []
    return [*RUN_COLUMNS, *seed_columns(design.streams), *plot, *keys, *coded_columns(keys)]


class _Cells(dict[Level, str]):
    """Levels of one factor, codes or names as cells of CSV, computed on first use."""

    def __missing__(self, level: Level) -> str:
        self[level] = _csv_line([level_text(level), ""])[:-2]
        return self[level]


def _csv_line(cells: Sequence[str]) -> str:
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerow(cells)
    return out.getvalue()


def _csv_lines(design: Design) -> Iterator[str]:
    """Yield a line per run: a design may have 100,000, with few different cells."""
    yield _csv_line(csv_header(design))
    factors, codes, names = [_Cells() for _ in design.keys], _Cells(), _Cells()
    for run in design.runs:  # `Run.cells` without the dispatch on its type
        numbers = f"{run.run_order},{run.row},{run.replicate},{run.block},{run.seed}"
        name = run.name if run.name.isalnum() else names[run.name]
        levels = [cells[level] for cells, level in zip(factors, run.levels.values(), strict=True)]
        coded = [codes[code] for code in run.coded]
        further = [*run.seeds.values(), *([run.whole_plot] if design.plotted else [])]
        yield ",".join([run.run_id, numbers, name, *map(str, further), *levels, *coded]) + "\n"


def design_csv(design: Design) -> str:
    """Write a design as CSV, a line per run in run order."""
    return "".join(_csv_lines(design))


class _ReadLevels(dict[tuple[str, str], Level]):
    """Text and code of a factor's level -> the level; any other text is a number between them."""

    def __init__(self, factor: Factor) -> None:
        size = len(factor.levels)
        super().__init__(
            ((level_text(level), str(coded_level(i, size))), level)
            for i, level in enumerate(factor.levels)
        )

    def __missing__(self, cell: tuple[str, str]) -> Level:
        self[cell] = _number(cell[0])
        return self[cell]


class _ReadCodes(dict[str, Code]):
    def __missing__(self, text: str) -> Code:
        self[text] = _number(text)
        return self[text]


def _number(text: str) -> Code:
    try:
        return int(text)
    except ValueError:
        return float(text)


def read_design(text: str, study: Study) -> Design:
    """Return the design of a study from its CSV form, as `design_csv` wrote it."""
    keys, streams = study.keys, tuple(study.streams)
    lines = csv.reader(io.StringIO(text))
    next(lines)
    single = single_letters(keys)
    plotted = bool(study.whole_plot_factors)
    first, codes = len(RUN_COLUMNS) + len(streams) + plotted, _ReadCodes()
    factors = [_ReadLevels(factor) for factor in study.factors]
    runs = []
    for cells in lines:
        run_id, order, row, replicate, block, seed, name = cells[: len(RUN_COLUMNS)]
        texts, coded = cells[first : first + len(keys)], cells[first + len(keys) :]
        given = map(_ReadLevels.__getitem__, factors, zip(texts, coded, strict=True))
        seeds = dict(zip(streams, map(int, cells[len(RUN_COLUMNS) : first]), strict=False))
        runs.append(
            Run(
                run_id,
                int(order),
                int(row),
                int(replicate),
                int(block),
                int(seed),
                name if single else BETWEEN.join(texts),
                name,
                dict(zip(keys, given, strict=True)),
                tuple(map(codes.__getitem__, coded)),
                seeds,
                int(cells[first - 1]) if plotted else 0,
            )
        )
    return Design(keys, tuple(runs), streams, plotted)


def design_request(study: Study) -> dict[str, Any]:
    """Return the parts of a study that determine its design; defaults are omitted."""
    said = _without_defaults(study)
    factors = [{k: v for k, v in f.items() if k not in WORDS} for f in said["factors"]]
    shared = {n: [s.factors, s.needs, s.seed] for n, s in study.stages.items() if s.factors}
    stages = {"stages": shared} if shared else {}
    return {"factors": factors} | {k: said[k] for k in DESIGN_FIELDS if k in said} | stages


def _without_defaults(value: Any) -> Any:
    """Return a struct as plain values without its defaults, so that later fields change nothing
    here."""
    if isinstance(value, tuple):
        return [_without_defaults(item) for item in value]
    if not isinstance(value, msgspec.Struct):
        return value
    said = {}
    for field in msgspec.structs.fields(value):
        factory = field.default_factory
        default = field.default if factory is msgspec.NODEFAULT else factory()
        if (own := getattr(value, field.name)) != default:
            said[field.name] = _without_defaults(own)
    return said


def design_digest(study: Study, text: str) -> str:
    """Return the digest of a design in its CSV form and of the study's fields that determine it."""
    request = msgspec.json.encode(design_request(study), order="sorted")
    return hashlib.sha256(request + b"\n" + text.encode()).hexdigest()
