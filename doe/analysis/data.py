"""Tables of results as frozen values, with every mistake in them reported by name."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from doe.analysis.contrasts import Floats, Ints, cell_index
from doe.analysis.levels import (
    check_duplicates,
    codes,
    labels,
    run_ids,
    run_order,
    states,
    two_levels,
    with_factors,
)
from doe.analysis.values import FactorLevels
from doe.errors import DoeError, nearest

BOOKKEEPING = frozenset(
    {"run_id", "run", "run_order", "row", "replicate", "block", "seed", "config"}
    | {"state", "reason", "slot", "host", "seconds"}
)
"""Columns that are never a response or a factor unless named."""

EMPTY = {"", "na", "n/a", "nan", "none", "null", "-", "–", "inf", "-inf", "+inf"}
CENSORED = re.compile(r"^\s*([<>≤≥])\s*=?\s*([-+0-9.eE]+)\s*$")


@dataclass(frozen=True)
class Layout:
    """Which run had which levels: the part that all responses of a table share."""

    factors: tuple[FactorLevels, ...]
    coded: NDArray[np.int8]  # runs x factors, -1 or +1
    block: Ints | None  # 0, 1, ...
    block_name: str | None
    run_ids: tuple[str, ...]
    run_order: tuple[int, ...]
    slot: tuple[str, ...] | None
    host: tuple[str, ...] | None
    states: tuple[str, ...]  # state and reason where the table has them, else ""
    notes: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """Factor keys."""
        return tuple(factor.key for factor in self.factors)

    @property
    def cells(self) -> Ints:
        """Row of each run in the full standard order."""
        return cell_index(self.coded)

    def config(self, cell: int) -> str:
        """Label of a configuration: ``A1B0`` for one-letter keys, else ``lr=0.01,aug=on``."""
        if all(len(key) == 1 for key in self.keys):
            return "".join(f"{key}{cell >> i & 1}" for i, key in enumerate(self.keys))
        return ",".join(
            f"{f.key}={f.high if cell >> i & 1 else f.low}" for i, f in enumerate(self.factors)
        )


@dataclass(frozen=True)
class Observations:
    """One response on a layout; NaN where a run has no value."""

    layout: Layout
    response: str
    y: Floats  # value, NaN where missing or censored
    low: Floats  # bounds of censored values, NaN where there is no value at all
    high: Floats
    unit: str = ""
    goal: str = "min"

    @property
    def censored(self) -> bool:
        """Whether some values are only known to lie above or below a limit."""
        return bool((~np.isnan(self.low) & np.isnan(self.y)).any())


def read_table(path: str) -> pd.DataFrame:
    """Read a CSV file as text: what a cell means is decided here, not by a parser's guess."""
    try:
        frame = pd.read_csv(path, dtype=str, keep_default_na=False, skipinitialspace=True)
    except FileNotFoundError:
        raise DoeError(f"there is no table {path}") from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, UnicodeDecodeError) as error:
        raise DoeError(f"{path} is not a CSV table: {error}") from None
    frame.columns = [str(name).strip() for name in frame.columns]
    if frame.empty:
        raise DoeError(f"{path} has no rows below its header")
    return frame


def column(frame: pd.DataFrame, name: str, what: str) -> pd.Series:
    """A column by name, or an error with the nearest name."""
    if name not in frame.columns:
        known = [str(c) for c in frame.columns]
        raise DoeError(
            f"{what} {name!r} is no column of the table{nearest(name, known)}; "
            f"it has {', '.join(known)}"
        )
    found = frame[name]
    if isinstance(found, pd.DataFrame):
        raise DoeError(f"the table has {found.shape[1]} columns named {name!r}; expected one")
    return found


def layout(
    frame: pd.DataFrame,
    factors: Sequence[str],
    low: Mapping[str, str] | None = None,
    block: str | None = None,
) -> Layout:
    """Read the design part of a table: factors (with named low levels), block, runs."""
    frame, names = with_factors(frame, factors)
    notes: list[str] = []
    low = dict(low or {})
    if unknown := [key for key in low if key not in names]:
        raise DoeError(
            f"--low names {unknown[0]!r}, which is no factor{nearest(unknown[0], names)}; "
            f"the factors are {', '.join(names)}"
        )
    levels, columns = [], []
    for key in names:
        found, code, note = two_levels(column(frame, key, "factor"), key, low.get(key))
        levels.append(found)
        columns.append(code)
        notes += note
    coded = np.column_stack(columns).astype(np.int8)
    if block in names:
        raise DoeError(f"{block!r} is given both as a factor and as the block; choose one")
    numbered = None if block is None else codes(column(frame, block, "block"))
    ids = run_ids(frame)
    notes += check_duplicates(frame, coded, ids, block)
    return Layout(
        factors=tuple(levels),
        coded=coded,
        block=numbered if numbered is not None and numbered.max() > 0 else None,
        block_name=block if numbered is not None and numbered.max() > 0 else None,
        run_ids=ids,
        run_order=run_order(frame),
        slot=labels(frame, "slot"),
        host=labels(frame, "host"),
        states=states(frame),
        notes=tuple(notes),
    )


def study_layout(frame: pd.DataFrame, factors: Sequence[FactorLevels]) -> Layout:
    """The layout of a study's responses table, whose factors are already coded.

    A replicate is a block when all configurations share its seed; blocks of the design count as
    they are.
    """
    for factor in factors:
        column(frame, f"{factor.key}_coded", "coded factor")
    ids = run_ids(frame)
    coded = frame[[f"{f.key}_coded" for f in factors]].to_numpy(dtype=np.int8)
    block = codes(frame["block"]) if "block" in frame.columns else np.zeros(len(frame), np.int64)
    if not _shared_seeds(frame):
        block = np.zeros(len(frame), np.int64)
    same = "replicate" in frame.columns and (codes(frame["replicate"]) == block).all()
    check_duplicates(frame, coded, ids, "block")
    return Layout(
        factors=tuple(factors),
        coded=coded,
        block=block if block.max() > 0 else None,
        block_name=("replicate" if same else "block") if block.max() > 0 else None,
        run_ids=ids,
        run_order=run_order(frame),
        slot=labels(frame, "slot"),
        host=labels(frame, "host"),
        states=states(frame),
        notes=(),
    )


def _shared_seeds(frame: pd.DataFrame) -> bool:
    """Whether all configurations of a replicate ran with one seed."""
    if "seed" not in frame.columns or "replicate" not in frame.columns:
        return True
    return bool((frame.groupby("replicate")["seed"].nunique() <= 1).all())


def observe(
    frame: pd.DataFrame,
    where: Layout,
    response: str,
    *,
    unit: str = "",
    goal: str = "min",
    ceiling: float | None = None,
) -> Observations:
    """Read one response; values like ``>50`` become intervals up to the next printed limit."""
    cells = column(frame, response, "response")
    parsed = [_value(cell, i, response, where) for i, cell in enumerate(cells.tolist())]
    y = np.array([value for value, _ in parsed])
    low, high = y, y
    if any(limit is not None for _, limit in parsed):
        texts = [str(cell) for cell in cells.tolist()]
        low, high = _bounds(y, texts, [limit for _, limit in parsed], response, ceiling)
    if not np.isfinite(low).any() and not np.isfinite(y).any():
        raise DoeError(f"response {response!r} has no value in any run")
    return Observations(where, response, y, low, high, unit, goal)


def response_columns(frame: pd.DataFrame, used: Sequence[str]) -> list[str]:
    """Columns that hold numbers and are neither factors, block nor bookkeeping."""
    skip = {*used, *BOOKKEEPING}
    chosen = []
    for name in map(str, frame.columns):
        if name in skip or name.endswith(("_coded", "_std")):
            continue
        texts = [str(cell).strip() for cell in frame[name].tolist()]
        texts = [text for text in texts if text.lower() not in EMPTY]
        if texts and all(_number(text) is not None or CENSORED.match(text) for text in texts):
            chosen.append(name)
    return chosen


# Cells ------------------------------------------------------------------------------------------

Limit = tuple[str, float]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _value(cell: object, row: int, name: str, where: Layout) -> tuple[float, Limit | None]:
    """A number, NaN for a missing one, or a limit."""
    if cell is None or (isinstance(cell, float) and not math.isfinite(cell)):
        return math.nan, None
    text = str(cell).strip()
    if text.lower() in EMPTY:
        return math.nan, None
    if (number := _number(text)) is not None:
        return number, None
    if (match := CENSORED.match(text)) and (limit := _number(match.group(2))) is not None:
        return math.nan, (">" if match.group(1) in ">≥" else "<", limit)
    raise DoeError(
        f"response {name!r} holds the text {text!r} in row {row + 1} (run {where.run_ids[row]}); "
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
        raise DoeError(f"--ceiling {ceiling:g} is below >{steps[-1]:g}, a limit in {response!r}")
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
