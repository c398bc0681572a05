"""From a table of results to runs and observations, with every mistake reported by name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from decimal import Decimal, InvalidOperation

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from doe.analysis.contrasts import Floats, Ints, cell_index
from doe.analysis.data import FactorLevels, Observations, Runs, numbered, state_text
from doe.analysis.levels.layout import Level, LevelObservations, LevelRuns, layout_of
from doe.errors import DoeError, nearest
from doe.numbers import cell_text

BOOKKEEPING = frozenset(
    {"run_id", "run", "run_order", "row", "replicate", "block", "seed", "config"}
    | {"state", "reason", "slot", "host", "started", "ended", "seconds", "imported"}
)
"""Columns that are never a response or a factor unless named."""

CONFIG = re.compile(r"([A-Za-z])([01])")
INFINITE = {sign + word for sign in ("", "-", "+") for word in ("inf", "infinity")}
EMPTY = {"", "na", "n/a", "nan", "none", "null", "-", "–"} | INFINITE
NUMBER = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")
CENSORED = re.compile(r"^\s*([<>≤≥])\s*=?\s*([-+0-9.eE]+)\s*$")


def column(frame: pd.DataFrame, name: str, what: str) -> pd.Series:
    """A column by name, or an error with the nearest name."""
    if name not in frame.columns:
        known = [str(c) for c in frame.columns]
        raise DoeError(
            f"{what} {name!r} is no column of the table{nearest(name, known)}; "
            f"it has {', '.join(known)}"
        )
    chosen = frame[name]
    if isinstance(chosen, pd.DataFrame):
        raise DoeError(f"the table has {chosen.shape[1]} columns named {name!r}; expected one")
    return chosen


def table_runs(
    frame: pd.DataFrame,
    factors: Sequence[str],
    low: Mapping[str, str] | None = None,
    block: str | None = None,
) -> Runs:
    """Read the design part of a table: factors (with named low levels), block, runs."""
    frame, keys = _with_factors(frame, factors)
    notes: list[str] = []
    low = _named_lows(low, keys)
    levels, columns = [], []
    for key in keys:
        factor, code, note = _two_levels(column(frame, key, "factor"), key, low.get(key))
        levels.append(factor)
        columns.append(code)
        notes += note
    coded = np.column_stack(columns).astype(np.int8)
    blocks = _blocks(frame, block, keys)
    run_ids = _run_ids(frame)
    notes += _check_duplicates(frame, coded, run_ids, block)
    several = blocks is not None and blocks.max() > 0
    return Runs(
        factors=tuple(levels),
        coded=coded,
        block=blocks if several else None,
        block_name=block if several else None,
        run_ids=run_ids,
        run_order=_run_order(frame),
        slot=_labels(frame, "slot"),
        host=_labels(frame, "host"),
        states=_states(frame),
        notes=tuple(notes),
    )


def has_levels(frame: pd.DataFrame, factors: Sequence[str]) -> bool:
    """Whether some factor of a table has more than two levels, so that they are read as such."""
    keys = [key for key in factors if key in frame.columns]
    return any(len(_distinct([_level_text(v) for v in frame[key].tolist()])) > 2 for key in keys)


def _distinct(texts: Sequence[str]) -> set[float] | set[str]:
    """Different levels; 0.001 and 1e-3 are one."""
    numbers = _numbers(texts)
    return set(texts) if numbers is None else set(numbers)


def table_levels(
    frame: pd.DataFrame,
    factors: Sequence[str],
    low: Mapping[str, str] | None = None,
    block: str | None = None,
) -> LevelRuns:
    """Read the design part of a table whose factors have any number of levels.

    Numbers rise, words stand in the alphabet's order; a level that `low` names comes first. Rows
    with two or more factors at a middle level that occurs nowhere else are centre runs.
    """
    columns: dict[str, list[Level]] = {}
    order: dict[str, list[Level]] = {}
    low = _named_lows(low, factors)
    for key in _once(factors):
        columns[key] = _levels(_level_texts(column(frame, key, "factor"), key))
        if key in low:
            texts = sorted({str(level) for level in columns[key]})
            first = _low_first(texts, key, low[key])[0]
            rest = sorted({level for level in columns[key] if str(level) != first})
            order[key] = [next(v for v in columns[key] if str(v) == first), *rest]
    blocks = _blocks(frame, block, factors)
    labels = None if blocks is None else blocks.tolist()
    layout = layout_of(columns, order, block=labels, block_name=block or "block")
    if (count := int(layout.is_centre.sum())) > 0:
        middle = zip(layout.keys, layout.centred.tolist(), strict=True)
        others = [key for key, at_middle in middle if not at_middle]
        factor = f"every factor but {', '.join(others)}" if others else "every factor"
        note = f"{count} rows with {factor} at its middle level are taken as centre runs."
        layout = replace(layout, notes=(note,))
    return layout


def _levels(texts: Sequence[str]) -> list[Level]:
    """Levels as numbers or switches where all of them are, else as words."""
    numbers = _numbers(texts)
    if numbers is not None:
        return [int(v) if v.is_integer() and abs(v) < 2**53 else v for v in numbers]
    if {text.lower() for text in texts} == {"true", "false"}:
        return [text.lower() == "true" for text in texts]
    return list(texts)


def observe_levels(
    frame: pd.DataFrame, layout: LevelRuns, response: str, goal: str | None
) -> LevelObservations:
    """Read one response of a table whose factors have levels."""
    y, limits = _values(frame, response, _run_ids(frame))
    if limited := [row for row, limit in enumerate(limits, start=1) if limit]:
        raise DoeError(
            f"response {response!r} has a limit in row {limited[0]}; factors with more than "
            "two levels need values"
        )
    return LevelObservations(layout, response, y, goal=goal)


def observe(
    frame: pd.DataFrame,
    runs: Runs,
    response: str,
    *,
    goal: str | None = None,
    ceiling: float | None = None,
) -> Observations:
    """Read one response; values like ``>50`` become intervals up to the next printed limit."""
    if ceiling is not None and not math.isfinite(ceiling):
        raise DoeError(f"the ceiling {ceiling} is no number; expected the largest possible value")
    y, limits = _values(frame, response, runs.run_ids)
    low, high = y, y
    if any(limits):
        texts = [str(cell) for cell in frame[response].tolist()]
        low, high = _bounds(y, texts, limits, response, ceiling)
    return Observations(runs, response, y, low, high, goal=goal)


def observe_table(
    frame: pd.DataFrame,
    factors: Sequence[str],
    responses: Sequence[str] = (),
    low: Mapping[str, str] | None = None,
    block: str | None = None,
    goal: str | None = None,
    ceiling: float | None = None,
) -> list[Observations | LevelObservations]:
    """Read some responses of a table, "all" of them, or the only one where none is named."""
    if goal not in (None, "min", "max"):
        raise DoeError(f"the goal {goal!r} is neither min nor max")
    wide = has_levels(frame, factors)
    runs = (table_levels if wide else table_runs)(frame, factors, low, block)
    known = response_columns(frame, [*runs.keys, *([block] if block else [])])
    names = [n for name in responses for n in (known if name == "all" else [name])]
    if not names:
        if len(known) != 1:
            raise DoeError(
                f"which response? Name one of {', '.join(known) or 'none found'}, or all"
            )
        names = known
    if not isinstance(runs, Runs):
        return [observe_levels(frame, runs, name, goal) for name in dict.fromkeys(names)]
    return [observe(frame, runs, name, goal=goal, ceiling=ceiling) for name in dict.fromkeys(names)]


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


# Factors and runs -------------------------------------------------------------------------------


def _with_factors(
    frame: pd.DataFrame, factors: Sequence[str]
) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The table with a column for every factor, read from `config` labels where it has none."""
    absent = [key for key in factors if key not in frame.columns]
    if factors and not absent:
        return frame, _once(factors)
    labels_of = _config_columns(frame)
    if not factors:
        if not labels_of:
            raise DoeError(
                "which columns are the factors? Name them; columns with two values: "
                f"{', '.join(_candidates(frame)) or 'none'}"
            )
        factors = tuple(labels_of)
    added = {k: labels_of[k] for k in factors if k in labels_of and k not in frame.columns}
    return frame.assign(**added), _once(factors)


def _named_lows(low: Mapping[str, str] | None, keys: Sequence[str]) -> Mapping[str, str]:
    """The low levels that are named, all of them of factors."""
    if unknown := [key for key in low or {} if key not in keys]:
        raise DoeError(
            f"a low level is named for {unknown[0]!r}, which is no factor"
            f"{nearest(unknown[0], keys)}; the factors are {', '.join(keys)}"
        )
    return low or {}


def _once(factors: Sequence[str]) -> tuple[str, ...]:
    if twice := [key for key in factors if list(factors).count(key) > 1]:
        raise DoeError(f"factor {twice[0]!r} is named twice")
    return tuple(factors)


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


def _candidates(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame.columns if frame[name].nunique() == 2]


def _two_levels(
    values: pd.Series, key: str, low: str | None
) -> tuple[FactorLevels, NDArray[np.int8], list[str]]:
    """Code a factor -1/+1: the smaller number, false, or the level that `low` names is low."""
    texts = _level_texts(values, key)
    levels = sorted(set(texts))
    notes: list[str] = []
    numbers = _numbers(levels)
    if numbers is not None:
        spelling: dict[float, str] = {}  # 0.001 and 1e-3 are one level, known by its first spelling
        for value, text in sorted(zip(numbers, levels, strict=True)):
            spelling.setdefault(value, text)
        same = {text: spelling[value] for value, text in zip(numbers, levels, strict=True)}
        texts = [same[text] for text in texts]
        levels = list(spelling.values())
    if len(levels) != 2:
        shown = ", ".join(levels[:5]) + (", …" if len(levels) > 5 else "")
        noun = "level" if len(levels) == 1 else "levels"
        raise DoeError(
            f"factor {key!r} has {len(levels)} {noun} ({shown}); expected two. Leave it out of "
            "the factors, or keep the rows of two levels"
        )
    if low is not None:
        levels = _low_first(levels, key, low)
    elif numbers is None and [level.lower() for level in levels] != ["false", "true"]:
        notes.append(
            f"Factor {key}: {levels[0]!r} is taken as low and {levels[1]!r} as high "
            f"(alphabetical order; name {levels[1]!r} as the low level to turn it round)."
        )
    coded = np.array([1 if text == levels[1] else -1 for text in texts], dtype=np.int8)
    return FactorLevels(key, levels[0], levels[1]), coded, notes


def _low_first(levels: list[str], key: str, low: str) -> list[str]:
    for level in levels:
        same = _numbers([level, low])
        if level.lower() == low.lower() or (same is not None and same[0] == same[1]):
            return [level, *(other for other in levels if other != level)]
    raise DoeError(f"{low!r} is no level of {key!r}; its levels are {', '.join(levels)}")


def _level_texts(values: pd.Series, key: str) -> list[str]:
    """The level of a factor in each row, as text."""
    texts = [_level_text(value) for value in values.tolist()]
    if "" in texts:
        raise DoeError(f"factor {key!r} has no level in row {texts.index('') + 1}; fill it in")
    return texts


def _level_text(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    text = str(value).strip()
    return "" if text.lower() == "nan" else text


def _numbers(levels: Sequence[str]) -> list[float] | None:
    numbers = [_number(level) for level in levels]
    finite = [number for number in numbers if number is not None]
    return finite if len(finite) == len(numbers) else None


def _blocks(frame: pd.DataFrame, block: str | None, keys: Sequence[str]) -> Ints | None:
    """Number of each run's block; None where no column names it."""
    if block is None:
        return None
    if block in keys:
        raise DoeError(f"{block!r} is given both as a factor and as the block; choose one")
    values = column(frame, block, "block")
    if values.isna().any() or (values.astype(str).str.strip() == "").any():
        raise DoeError(f"column {str(values.name)!r} names the block and is empty in some row")
    return numbered(values.astype(str))


def _run_ids(frame: pd.DataFrame) -> tuple[str, ...]:
    """Names of the runs: the column run_id or run, else the row number from 1."""
    for name in ("run_id", "run"):
        if name in frame.columns:
            return tuple(str(value) for value in frame[name])
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
    """A column of labels, where the table has it and it says anything."""
    if name not in frame.columns:
        return None
    labels = tuple("" if pd.isna(value) else str(value) for value in frame[name])
    return labels if any(labels) else None


def _states(frame: pd.DataFrame) -> tuple[str, ...]:
    """State and reason of each run, empty where the table does not say."""
    state = _labels(frame, "state") or ("",) * len(frame)
    reason = _labels(frame, "reason") or ("",) * len(frame)
    return tuple(state_text(s, r) for s, r in zip(state, reason, strict=True))


def _check_duplicates(
    frame: pd.DataFrame, coded: NDArray[np.int8], ids: tuple[str, ...], block: str | None
) -> list[str]:
    """Refuse a run that stands twice; rows that merely look alike give a note."""
    named = pd.Series(ids)
    if named.duplicated().any():
        twice = sorted(set(named[named.duplicated()]))
        raise DoeError(
            f"run {', '.join(twice[:5])} stands more than once in the table; "
            "expected one row per run: remove the copies"
        )
    if "replicate" in frame.columns:
        # Columns of two values may be factors that are left out of this analysis.
        known = {"replicate", "block", "seed", "config", "row"}
        chosen = [c for c in frame.columns if c in known or frame[c].nunique() == 2]
        again = frame[chosen].assign(cell_of_run=cell_index(coded)).duplicated()
        if again.any():
            row = int(np.flatnonzero(again.to_numpy())[0])
            raise DoeError(
                f"row {row + 1} repeats a configuration within replicate "
                f"{frame['replicate'].iloc[row]}; expected one run of each: remove the copy"
            )
    if not (same := frame.duplicated(keep=False)).any():
        return []
    rows = ", ".join(str(i + 1) for i in np.flatnonzero(same.to_numpy())[:6])
    if block is not None:
        raise DoeError(
            f"rows {rows} are the same in every column, block {block!r} included; "
            "a run stands twice: remove the copy, or number the runs in a column run_id"
        )
    return [f"Rows {rows} are the same in every column; make sure that no run stands twice."]


# Cells ------------------------------------------------------------------------------------------

Limit = tuple[str, float]


def _number(text: str) -> float | None:
    """A number as it is written in tables; Python's 1_238 is none."""
    return float(text) if NUMBER.fullmatch(text.strip()) else None


def _values(
    frame: pd.DataFrame, response: str, ids: Sequence[str]
) -> tuple[Floats, list[Limit | None]]:
    """The value of a response in each row, NaN where it has none, and the limits in its place."""
    cells = column(frame, response, "response").tolist()
    parsed = [_value(cell, i, response, ids) for i, cell in enumerate(cells)]
    return np.array([value for value, _ in parsed]), [limit for _, limit in parsed]


def _value(cell: object, row: int, name: str, ids: Sequence[str]) -> tuple[float, Limit | None]:
    """A number, NaN for a missing one, or a limit."""
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
    return 0.5 * 10.0**exponent if isinstance(exponent, int) else 0.0
