"""From a table of results to a dataset, with every mistake reported by name."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation

import numpy as np
import pandas as pd
from msgspec import Struct

from doe.analysis.contrasts import Floats, Ints
from doe.analysis.dataset import (
    Covariate,
    Dataset,
    FactorColumn,
    Level,
    RandomGroup,
    Runs,
    is_number,
    numbered,
    runs_at,
    state_text,
)
from doe.analysis.scales import choices
from doe.errors import DoeError, listed, nearest
from doe.numbers import cell_text
from doe.terms import level_text

FACTS = ("replicate", "seed", "started", "ended", "seconds", "imported")
"""Columns that say something of a run beyond its levels and its results."""
BOOKKEEPING = frozenset(
    {"run_id", "run", "run_order", "row", "block", "config", "state", "reason", "slot", "host"}
    | {*FACTS}
)
"""Columns that are never a response or a factor unless named."""
SEED = "seed"
"""The column that is the block where none is named and every configuration ran with its values."""
MOST_LEVELS = 5
"""Numbers with more levels are fitted as a line and a curve."""

CONFIG = re.compile(r"([A-Za-z])([01])")
INFINITE = {sign + word for sign in ("", "-", "+") for word in ("inf", "infinity")}
EMPTY = {"", "na", "n/a", "nan", "none", "null", "-", "–"} | INFINITE
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
CENSORED = re.compile(r"^\s*([<>≤≥])\s*=?\s*([-+0-9.eE]+)\s*$")


FACTOR_SCALES = ("linear", "log")


class TableOptions(Struct, frozen=True):
    """Roles of a table's columns; raises DoeError if no table could have them."""

    factors: tuple[str, ...] = ()  # none for those of labels in the column `config`
    low: Mapping[str, str] = {}  # factor -> the level that comes first
    scale: Mapping[str, str] = {}  # numeric factor -> linear or log; response -> that of a study
    of: Mapping[str, str] = {}  # response -> how many items were counted
    block: str | None = None
    whole_plot: tuple[str, ...] = ()  # column of whole plots, or factors that are hard to change
    covariates: tuple[str, ...] = ()  # columns to adjust for, measured before any factor acted
    goal: str | None = None  # min, max, or "accuracy=max,seconds=min"; None where it is not known
    ceiling: float | None = None  # the largest possible value, where cells are limits such as >50
    decimal: str | None = None  # what a comma in a number of a file is: "," decimal, "." thousands

    def __post_init__(self) -> None:
        if isinstance(self.factors, str):
            raise DoeError(
                f"factors={self.factors!r}: expected a list of columns, as in ['lr', 'augment']"
            )
        for goal in self.goals.values():
            if goal not in ("min", "max"):
                raise DoeError(f"the goal {goal!r} is neither min nor max")
        if self.ceiling is not None and not math.isfinite(self.ceiling):
            raise DoeError(
                f"the ceiling {self.ceiling} is not a number; expected the largest possible value"
            )
        for key, scale in self.scale.items():
            known = FACTOR_SCALES if key in self.factors else (*FACTOR_SCALES, "raw", *choices())
            if scale not in known:
                raise DoeError(
                    f"the scale of {key} is {scale!r}; expected linear or log of a factor, "
                    "raw, log or logit of a response"
                )
        for key, items in self.of.items():
            if not items.isdecimal() or int(items) < 1:
                raise DoeError(f"{key} is a share of {items!r}; expected how many items there are")

    @property
    def goals(self) -> dict[str, str]:
        """Response -> its goal; of all others under an empty name."""
        parts = (part.rpartition("=") for part in (self.goal or "").split(",") if part)
        return {name.strip(): goal.strip() for name, _, goal in parts}

    def goal_of(self, response: str) -> str | None:
        """Return which way is better for a response, as far as that was said."""
        return self.goals.get(response, self.goals.get(""))


NO_OPTIONS = TableOptions()


def table_datasets(
    frame: pd.DataFrame, options: TableOptions, responses: Sequence[str] = ()
) -> list[Dataset]:
    """Read some responses of a table, "all" of them, or the only one where none is named."""
    runs = table_runs(frame, options)
    block = [options.block] if options.block else []
    used = [*runs.keys, *block, *options.whole_plot, *options.covariates]
    known = response_columns(frame, used)
    names = [n for name in responses for n in (known if name == "all" else [name])]
    if not names:
        if len(known) != 1:
            raise DoeError(
                f"which response? Name one of {', '.join(known) or 'none found'}, or all"
            )
        names = known
    if unknown := [name for name in options.goals if name and name not in known]:
        raise DoeError(f"goal of {unknown[0]!r}: no such response{nearest(unknown[0], known)}")
    datasets = [table_dataset(frame, runs, name, options) for name in dict.fromkeys(names)]
    lost = np.all([np.isnan(data.y) for data in datasets], axis=0)
    noted = replace(runs, notes=(*runs.notes, *_equal_rows(frame, np.flatnonzero(~lost))))
    return [replace(data, runs=noted) for data in datasets]


def table_dataset(
    frame: pd.DataFrame, runs: Runs, response: str, options: TableOptions = NO_OPTIONS
) -> Dataset:
    """Read one response; values like ``>50`` become intervals up to the next printed limit."""
    cells = column(frame, response, "response").tolist()
    parsed = [_value(cell, i, response, runs.run_ids) for i, cell in enumerate(cells)]
    y = np.array([value for value, _ in parsed])
    limits = [limit for _, limit in parsed]
    ends = None
    if any(limits):
        ends = _bounds(y, [str(cell) for cell in cells], limits, response, options.ceiling)
    scale, items = options.scale.get(response, "raw"), int(options.of.get(response, 0))
    goal = options.goal_of(response)
    return Dataset(runs, response, y, ends, goal=goal, scale=scale, items=items)


def column(frame: pd.DataFrame, name: str, what: str) -> pd.Series:
    """Return a column by name, or an error with the nearest name."""
    if name not in frame.columns:
        known = [str(c) for c in frame.columns]
        raise DoeError(
            f"{what} {name!r} is not a column of the table{nearest(name, known)}; "
            f"it has {', '.join(known)}"
        )
    chosen = frame[name]
    if isinstance(chosen, pd.DataFrame):
        raise DoeError(f"the table has {chosen.shape[1]} columns named {name!r}; expected one")
    return chosen


def response_columns(frame: pd.DataFrame, used: Sequence[str]) -> list[str]:
    """Columns of numbers that vary and are neither factors, block nor bookkeeping.

    A number that is the same in every row is a setting that was exported with the results.
    """
    skip = {*used, *BOOKKEEPING}
    chosen = []
    for name in map(str, frame.columns):
        if name in skip or name.endswith(("_coded", "_std")) or name.startswith("seed_"):
            continue
        texts = [str(cell).strip() for cell in frame[name].tolist()]
        texts = [text for text in texts if text.lower() not in EMPTY]
        numbers = all(_number(text) is not None or CENSORED.match(text) for text in texts)
        if numbers and len(set(texts)) > 1:
            chosen.append(name)
    return chosen


# Runs ---------------------------------------------------------------------------------------------


def table_runs(frame: pd.DataFrame, options: TableOptions) -> Runs:
    """Read the runs of a table: levels, block, and what else is known of them.

    Numbers rise, words stand in the alphabet's order; a level that `low` names comes first. Rows
    with two or more factors at a number between their others that occurs in no further row are
    centre runs. A `seed` that every configuration ran with is the block where none is named.
    """
    columns = _factor_columns(frame, options.factors)
    keys = tuple(columns)
    for key in (*options.scale, *options.of):
        if key not in keys:
            column(frame, key, "response")
    of_factors = {key: scale for key, scale in options.scale.items() if key in keys}
    if unknown := [key for key in options.low if key not in keys]:
        raise DoeError(
            f"a low level is named for {unknown[0]!r}, which is not a factor"
            f"{nearest(unknown[0], keys)}; the factors are {', '.join(keys)}"
        )
    order = {key: _low_first(columns[key], key, low) for key, low in options.low.items()}
    runs = runs_of_levels(columns, order, scale=of_factors)
    runs = replace(
        runs,
        run_ids=_run_ids(frame),
        run_order=_run_order(frame),
        slot=_labels(frame, "slot"),
        host=_labels(frame, "host"),
        states=_states(frame),
        notes=(*_level_notes(runs, options), *runs.notes),
        facts={name: labels for name in FACTS if (labels := _labels(frame, name))},
        covariates=tuple(_covariate(frame, name, keys) for name in options.covariates),
    )
    return _with_plots(frame, _with_block(frame, runs, options.block), options.whole_plot)


def _covariate(frame: pd.DataFrame, name: str, keys: Sequence[str]) -> Covariate:
    """Return a column to adjust for; NaN where it has no number."""
    if name in keys:
        raise DoeError(f"{name!r} is given both as a factor and as a covariate; choose one")
    cells = column(frame, name, "covariate").tolist()
    values = pd.to_numeric(pd.Series(cells), errors="coerce").to_numpy(np.float64)
    if not np.isfinite(values).any():
        raise DoeError(f"covariate {name!r} holds no numbers; a group of runs is the block")
    return Covariate(name, values)


def runs_of_levels(
    columns: Mapping[str, Sequence[Level]],
    levels: Mapping[str, Sequence[Level]] | None = None,
    scale: Mapping[str, str] | None = None,
) -> Runs:
    """Runs from the level of every run, a column per factor.

    Levels whose order is not given rise, ``False`` comes before ``True``, and words stand in the
    alphabet's order.

    Raises
    ------
    DoeError
        If a run has a level that is not among those given, or `check_runs` refuses the runs.
    """
    levels, scale = levels or {}, scale or {}
    centre, centred = _centre_rows(columns, levels)
    factors = []
    for key, values in columns.items():
        pairs = zip(values, centre, strict=True)
        present = {value for value, middle in pairs if not (middle and key in centred)}
        ordered = tuple(levels.get(key) or sorted(present, key=_rank))
        numeric = all(map(is_number, ordered))
        if key in scale and not numeric:
            raise DoeError(f"a scale is named for {key}, whose levels are not numbers")
        degree = 2 if numeric and len(ordered) > MOST_LEVELS else None
        on = scale.get(key, "linear")
        factors.append(FactorColumn(key, key, ordered, numeric, on, degree=degree))
    index, position = runs_at(columns, factors)
    notes = _centre_notes(columns, centre, centred)
    return Runs(tuple(factors), index, position, notes=notes)


def _factor_columns(frame: pd.DataFrame, factors: Sequence[str]) -> dict[str, list[Level]]:
    """Level of every factor in each row, read from labels in `config` where it has no column."""
    if twice := [key for key in factors if list(factors).count(key) > 1]:
        raise DoeError(f"factor {twice[0]!r} is named twice")
    absent = [key for key in factors if key not in frame.columns]
    labelled = _config_columns(frame) if absent or not factors else {}
    if not factors and not labelled:
        two = [str(name) for name in frame.columns if frame[name].nunique() == 2]
        raise DoeError(
            "which columns are the factors? Name them; columns with two values: "
            f"{', '.join(two) or 'none'}"
        )
    columns = {}
    for key in factors or labelled:
        if key in frame.columns or key not in labelled:
            texts = [_level_text(value) for value in column(frame, key, "factor").tolist()]
        else:
            texts = labelled[key]
        if "" in texts:
            raise DoeError(f"factor {key!r} has no level in row {texts.index('') + 1}; fill it in")
        columns[key] = _levels(texts)
        if len(set(columns[key])) < 2:
            raise DoeError(
                f"factor {key!r} has 1 level ({texts[0]}); expected two or more. Leave it out of "
                "the factors"
            )
    return columns


def _config_columns(frame: pd.DataFrame) -> dict[str, list[str]]:
    """Levels by factor from labels such as ``A1B0C1`` or ``lr=0.01,aug=on``; empty if none."""
    if "config" not in frame.columns:
        return {}
    rows: list[dict[str, str]] = []
    for label in frame["config"].astype(str):
        if "=" in label:
            pairs = [part.partition("=") for part in label.split(",")]
            rows.append({key.strip(): level.strip() for key, _, level in pairs})
        else:
            levels = CONFIG.findall(label)
            if "".join(key + level for key, level in levels) != label.strip():
                return {}
            rows.append(dict(levels))
    if not rows or any(row.keys() != rows[0].keys() for row in rows):
        return {}
    return {key: [row[key] for row in rows] for key in rows[0]}


def _level_text(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    text = str(value).strip()
    return "" if text.lower() == "nan" else text


def _levels(texts: Sequence[str]) -> list[Level]:
    """Levels as numbers or switches where all of them are, else as words."""
    numbers = [_number(text) for text in texts]
    known = [number for number in numbers if number is not None]
    if len(known) == len(texts):
        return [int(v) if v.is_integer() and abs(v) < 2**53 else v for v in known]
    if {text.lower() for text in texts} == {"true", "false"}:
        return [text.lower() == "true" for text in texts]
    return list(texts)


def _low_first(values: Sequence[Level], key: str, low: str) -> list[Level]:
    """Return the levels of a factor, that which is named first."""
    levels = sorted(set(values), key=_rank)
    number = _number(low)
    for level in levels:
        if level_text(level).lower() == low.lower() or (is_number(level) and level == number):
            return [level, *(other for other in levels if other != level)]
    raise DoeError(
        f"{low!r} is not a level of {key!r}; its levels are {', '.join(map(level_text, levels))}"
    )


def _rank(level: Level) -> tuple[int, float, str]:
    """Numbers and switches by size, then words by the alphabet."""
    return (1, 0.0, level) if isinstance(level, str) else (0, float(level), "")


def _level_notes(runs: Runs, options: TableOptions) -> list[str]:
    """Return what was taken for granted about levels."""
    notes = []
    for factor in runs.factors:
        low, high = factor.labels[0], factor.labels[-1]
        words = len(factor.levels) == 2 and isinstance(factor.levels[0], str)
        if words and factor.key not in options.low:
            notes.append(
                f"Factor {factor.key}: {low!r} is taken as low and {high!r} as high "
                f"(alphabetical order; name {high!r} as the low level to reverse this)."
            )
        if factor.degree is not None:
            notes.append(
                f"Factor {factor.key} has {len(factor.levels)} values: it is fitted as a line and "
                f"a curve on its {factor.scale} scale."
            )
        if factor.key not in options.scale and _spaced_by_ratios(factor):
            notes.append(
                f"The values of {factor.key} are spaced as on a log scale and are fitted on a "
                f"linear one; name the scale {factor.key}=log to fit them there."
            )
    return notes


def _spaced_by_ratios(factor: FactorColumn) -> bool:
    """Return whether the median of three or more numbers is in the middle on a log scale alone."""
    if not factor.numeric or len(factor.levels) < 3 or min(map(float, factor.levels)) <= 0:
        return False
    values = np.array([float(level) for level in factor.levels])
    low, high = values.min(), values.max()
    middle = float(np.median(values))
    linear = (middle - low) / (high - low)
    log = math.log(middle / low) / math.log(high / low)
    return linear < 0.35 and 0.35 < log < 0.65


# Centre runs --------------------------------------------------------------------------------------


def _centre_rows(
    columns: Mapping[str, Sequence[Level]], levels: Mapping[str, Sequence[Level]]
) -> tuple[list[bool], set[str]]:
    """Rows where two or more factors have a number that lies between their others and is in no
    other row, and these factors; all others have levels there that other rows have too.
    """
    numeric = [
        key
        for key, values in columns.items()
        if len(set(values)) > 2 and all(map(is_number, values))
    ]
    for first in numeric:
        for value in sorted(set(columns[first]), key=_rank):
            rows = [v == value for v in columns[first]]
            middle = {k for k in numeric if _is_middle(columns[k], rows, levels.get(k, ()))}
            if len(middle) > 1 and all(
                _is_shared(columns[k], rows) for k in columns.keys() - middle
            ):
                return rows, middle
    return [False] * len(next(iter(columns.values()))), set()


def _is_shared(values: Sequence[Level], rows: Sequence[bool]) -> bool:
    """Return whether a factor has no level in these rows that others lack."""
    inside = {v for v, row in zip(values, rows, strict=True) if row}
    return inside <= {v for v, row in zip(values, rows, strict=True) if not row}


def _is_middle(values: Sequence[Level], rows: Sequence[bool], known: Sequence[Level]) -> bool:
    inside = {float(v) for v, row in zip(values, rows, strict=True) if row}
    others = {float(v) for v, row in zip(values, rows, strict=True) if not row}
    return (
        len(inside) == 1
        and 1 < len(others) <= MOST_LEVELS
        and not inside & others
        and not inside & {float(v) for v in known}
        and min(others) < min(inside) < max(others)
    )


def _centre_notes(
    columns: Mapping[str, Sequence[Level]], centre: Sequence[bool], centred: set[str]
) -> tuple[str, ...]:
    if not centred:
        return ()
    others = [key for key in columns if key not in centred]
    factor = f"every factor but {', '.join(others)}" if others else "every factor"
    return (f"{sum(centre)} rows with {factor} at its middle level are taken as centre runs.",)


# Facts of runs ------------------------------------------------------------------------------------


def _with_block(frame: pd.DataFrame, runs: Runs, block: str | None) -> Runs:
    """Return the runs with the block that is named, else with seeds that are crossed with the
    cells.
    """
    if block is not None and block in runs.keys:
        raise DoeError(f"{block!r} is given both as a factor and as the block; choose one")
    if block is not None:
        labels = [_level_text(value) for value in column(frame, block, "block").tolist()]
        if "" in labels:
            raise DoeError(f"column {block!r} names the block and is empty in some row")
        runs = replace(runs, facts={block: tuple(labels), **runs.facts})
        numbers = numbered(labels)
        return replace(runs, block=numbers, block_name=block) if numbers.max() > 0 else runs
    seeds = runs.facts.get(SEED, ())
    if SEED in runs.keys or not seeds or not _crossed(runs.cells, numbered(seeds)):
        return runs
    note = (
        f"The column {SEED!r} is taken as the block: configurations ran with the same "
        f"{len(set(seeds))} seeds."
    )
    return replace(runs, block=numbered(seeds), block_name=SEED, notes=(*runs.notes, note))


def _with_plots(frame: pd.DataFrame, runs: Runs, names: Sequence[str]) -> Runs:
    """Return the runs with their whole plots: those of a block that agree in all columns named."""
    if not names:
        return runs
    if len(names) >= len(runs.keys) and set(names) >= set(runs.keys):
        raise DoeError("the whole plots name every factor, so that no runs share one; name fewer")
    columns = []
    for name in names:
        if name in runs.keys:
            columns.append(runs.index[:, runs.keys.index(name)].tolist())
            continue
        labels = [_level_text(value) for value in column(frame, name, "whole plot").tolist()]
        if "" in labels:
            raise DoeError(f"column {name!r} names the whole plot and is empty in some row")
        runs = replace(runs, facts={name: tuple(labels), **runs.facts})
        columns.append(labels)
    block = [0] * runs.count if runs.block is None else runs.block.tolist()
    plots = numbered(zip(block, *columns, strict=True))
    if int(plots.max()) + 1 in (1, runs.count):
        raise DoeError(
            f"{', '.join(names)}: got {int(plots.max()) + 1} whole plots of {runs.count} runs; "
            "expected several, each of several runs"
        )
    return replace(runs, groups=(RandomGroup("whole plot", plots),))


def _crossed(cells: Ints, seeds: Ints) -> bool:
    """Return whether seeds repeat over configurations: three of four combinations ran, or more."""
    pairs = len(set(zip(cells.tolist(), seeds.tolist(), strict=True)))
    every = len(np.unique(cells)) * int(seeds.max() + 1)
    return bool(seeds.max() > 0) and 4 * pairs >= 3 * every


def _run_ids(frame: pd.DataFrame) -> tuple[str, ...]:
    """Names of the runs: the column run_id or run, else the row number from 1."""
    for name in ("run_id", "run"):
        if name in frame.columns:
            named = frame[name].astype(str)
            if twice := sorted(set(named[named.duplicated()])):
                raise DoeError(
                    f"run {', '.join(twice[:5])} appears more than once in the table; "
                    "expected one row per run: remove the copies"
                )
            return tuple(named)
    return tuple(f"row {i}" for i in range(1, len(frame) + 1))


def _run_order(frame: pd.DataFrame) -> tuple[int, ...] | None:
    """Order in which the runs were made: the column run_order; rows may have been sorted."""
    if "run_order" not in frame.columns:
        return None
    numbers = pd.to_numeric(frame["run_order"], errors="coerce")
    if not np.isfinite(numbers).all():
        raise DoeError("column 'run_order' holds no number in some row; fill it in or leave it out")
    return tuple(int(value) for value in numbers)


def _labels(frame: pd.DataFrame, name: str) -> tuple[str, ...] | None:
    """Return a column of labels, where the table has it and it says anything."""
    if name not in frame.columns:
        return None
    labels = tuple("" if pd.isna(value) else str(value) for value in frame[name])
    return labels if any(labels) else None


def _states(frame: pd.DataFrame) -> tuple[str, ...]:
    """State and reason of each run, empty where the table does not say."""
    state = _labels(frame, "state") or ("",) * len(frame)
    reason = _labels(frame, "reason") or ("",) * len(frame)
    return tuple(state_text(s, r) for s, r in zip(state, reason, strict=True))


def _equal_rows(frame: pd.DataFrame, among: Ints) -> list[str]:
    """Return a note of the rows that are the same in every column; two runs may well agree."""
    rows = frame.iloc[among].astype(str).itertuples(index=False)
    groups: dict[Hashable, list[str]] = {}
    for number, cells in zip(among.tolist(), rows, strict=True):
        groups.setdefault(tuple(cells), []).append(str(number + 1))
    if not (equal := [" and ".join(same) for same in groups.values() if len(same) > 1]):
        return []
    return [
        f"Rows {listed(equal, 4)} are the same in every column; if one is a copy of the other, "
        "remove it."
    ]


# Cells --------------------------------------------------------------------------------------------
Limit = tuple[str, float]


def _number(text: str) -> float | None:
    """Return a number as it is written in tables; Python's 1_238 is refused."""
    return float(text) if NUMBER.fullmatch(text.strip()) else None


def _value(cell: object, row: int, name: str, ids: Sequence[str]) -> tuple[float, Limit | None]:
    """Return a number, NaN for a missing one, or a limit."""
    if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
        return math.nan, None
    text = str(cell).strip()
    if text.lower() in EMPTY:
        return math.nan, None
    if (number := _number(text)) is not None:
        return (number if math.isfinite(number) else math.nan), None
    if (match := CENSORED.match(text)) and (limit := _number(match.group(2))) is not None:
        return math.nan, (">" if match.group(1) in ">≥" else "<", limit)
    raise DoeError(
        f"response {name!r} holds the text {text!r} in row {row + 1} (run {ids[row]}); "
        "expected a number, a limit such as >50, or nothing for a missing run"
    )


def _bounds(
    y: Floats,
    texts: Sequence[str],
    limits: Sequence[Limit | None],
    response: str,
    ceiling: float | None,
) -> tuple[Floats, Floats]:
    """Ends between which each value lies: half a last digit around a printed number, from a
    limit such as ``>20`` to the next one of the column or the ceiling, from 0 to ``<0.1``.
    """
    low, high = y.copy(), y.copy()
    steps = sorted({limit[1] for limit in limits if limit is not None and limit[0] == ">"})
    if ceiling is not None and steps and ceiling < steps[-1]:
        ends = (cell_text(end, "short") for end in (ceiling, steps[-1]))
        raise DoeError("the ceiling {} is below >{}, a limit in {!r}".format(*ends, response))
    top = math.inf if ceiling is None else ceiling
    for i, limit in enumerate(limits):
        if limit is None:
            half = _rounding(texts[i])
            low[i], high[i] = low[i] - half, high[i] + half
        elif limit[0] == ">":
            low[i], high[i] = limit[1], min((s for s in steps if s > limit[1]), default=top)
        else:
            low[i], high[i] = (0.0 if limit[1] > 0 else -math.inf), limit[1]
    return low, high


def _rounding(text: str) -> float:
    """Half a unit of the last printed digit."""
    try:
        exponent = Decimal(text.strip()).as_tuple().exponent
    except InvalidOperation:
        return 0.0
    return 0.5 * 10.0 ** min(exponent, 300) if isinstance(exponent, int) else 0.0
