"""Columns of a table of results: two-level factors, blocks, run names, duplicates."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from doe.analysis.contrasts import Ints, cell_index
from doe.analysis.values import FactorLevels
from doe.errors import DoeError

CONFIG = re.compile(r"([A-Za-z])([01])")


def with_factors(
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
                "which columns are the factors? Give --factors, as in --factors "
                f"{','.join(_candidates(frame)[:3]) or 'A,B,C'}; "
                f"columns with two values: {', '.join(_candidates(frame)) or 'none'}"
            )
        factors = tuple(labels_of)
    added = {k: labels_of[k] for k in factors if k in labels_of and k not in frame.columns}
    return frame.assign(**added), _once(factors)


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
            found = CONFIG.findall(label)
            if "".join(key + level for key, level in found) != label.strip():
                return {}
            rows.append(dict(found))
    if not rows or any(row.keys() != rows[0].keys() for row in rows):
        return {}
    return {key: [row[key] for row in rows] for key in rows[0]}


def _candidates(frame: pd.DataFrame) -> list[str]:
    return [str(name) for name in frame.columns if frame[name].nunique() == 2]


def two_levels(
    values: pd.Series, key: str, low: str | None
) -> tuple[FactorLevels, NDArray[np.int8], list[str]]:
    """Code a factor -1/+1: the smaller number, false, or the level that `low` names is low."""
    texts = [_level_text(value) for value in values.tolist()]
    if "" in texts:
        raise DoeError(f"factor {key!r} has no level in row {texts.index('') + 1}; fill it in")
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
            "--factors, or keep the rows of two levels"
        )
    if low is not None:
        levels = _low_first(levels, key, low)
    elif numbers is None and [level.lower() for level in levels] != ["false", "true"]:
        notes.append(
            f"factor {key}: {levels[0]!r} is taken as low and {levels[1]!r} as high "
            f"(alphabetical order; --low {key}={levels[1]} turns it round)"
        )
    coded = np.array([1 if text == levels[1] else -1 for text in texts], dtype=np.int8)
    return FactorLevels(key, levels[0], levels[1]), coded, notes


def _low_first(levels: list[str], key: str, low: str) -> list[str]:
    for level in levels:
        same = _numbers([level, low])
        if level.lower() == low.lower() or (same is not None and same[0] == same[1]):
            return [level, *(other for other in levels if other != level)]
    raise DoeError(f"--low {key}={low} is no level of {key!r}; its levels are {', '.join(levels)}")


def _level_text(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    if isinstance(value, (bool, np.bool_)):
        return str(value).lower()
    return str(value).strip()


def _numbers(levels: Sequence[str]) -> list[float] | None:
    try:
        return [float(level) for level in levels]
    except ValueError:
        return None


def codes(values: pd.Series) -> Ints:
    """Number the distinct values 0, 1, … in the order in which they appear."""
    if values.isna().any() or (values.astype(str).str.strip() == "").any():
        raise DoeError(f"column {str(values.name)!r} names the block and is empty in some row")
    return pd.factorize(values.astype(str))[0].astype(np.int64)


def run_ids(frame: pd.DataFrame) -> tuple[str, ...]:
    """Names of the runs: the column run_id or run, else the row number from 1."""
    for name in ("run_id", "run"):
        if name in frame.columns:
            return tuple(str(value) for value in frame[name])
    return tuple(f"row {i}" for i in range(1, len(frame) + 1))


def run_order(frame: pd.DataFrame) -> tuple[int, ...]:
    """Order in which the runs were made: the column run_order, else that of the table."""
    if "run_order" in frame.columns:
        numbers = pd.to_numeric(frame["run_order"], errors="coerce")
        if not numbers.isna().any():
            return tuple(int(value) for value in numbers)
    return tuple(range(1, len(frame) + 1))


def labels(frame: pd.DataFrame, name: str) -> tuple[str, ...] | None:
    """A column of labels, where the table has it and it says anything."""
    if name not in frame.columns:
        return None
    found = tuple("" if pd.isna(value) else str(value) for value in frame[name])
    return found if any(found) else None


def states(frame: pd.DataFrame) -> tuple[str, ...]:
    """State and reason of each run, empty where the table does not say."""
    state = labels(frame, "state") or ("",) * len(frame)
    reason = labels(frame, "reason") or ("",) * len(frame)
    pairs = zip(state, reason, strict=True)
    return tuple(f"{s}: {r}" if s and r else s or r for s, r in pairs)


def check_duplicates(
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
    return [f"rows {rows} are the same in every column; make sure that no run stands twice"]
