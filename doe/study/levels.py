"""Levels of factors: as text, as row numbers, and the combinations that cannot run."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from doe.errors import DoeError, nearest
from doe.study.values import Factor, Level, Study
from doe.terms import level_text

SWITCH_WORDS = {True: ("true", "on", "yes", "1"), False: ("false", "off", "no", "0")}
"""Words for the states of a switch."""


def factor_settings(study: Study, levels: Mapping[str, Level]) -> dict[str, Any]:
    """Return the settings that some levels make."""
    made: dict[str, Any] = {}
    for factor in study.factors:
        if factor.sets and factor.key in levels:
            made |= factor.sets[str(levels[factor.key])]
    return made


def kind_of(level: Level) -> str:
    """Return the kind of a level: switch, number or word."""
    if isinstance(level, bool):
        return "switch"
    return "word" if isinstance(level, str) else "number"


def level_numbers(row: int, sizes: Sequence[int]) -> tuple[int, ...]:
    """Return the number of each factor's level in a row of the full factorial, first factor
    fastest."""
    numbers = []
    for size in sizes:
        row, number = divmod(row, size)
        numbers.append(number)
    return tuple(numbers)


def row_of(numbers: Sequence[int], sizes: Sequence[int]) -> int:
    """Return the row of the full factorial with these levels."""
    row = 0
    for number, size in zip(reversed(numbers), reversed(sizes), strict=True):
        row = row * size + number
    return row


def coded_level(number: int, size: int) -> int:
    """Code a level's number around zero: −1 and +1 of two levels, −1, 0, +1 of three."""
    return 2 * number - (size - 1) if size % 2 == 0 else number - (size - 1) // 2


def read_level(text: str, factor: Factor) -> int:
    """Return the number of the level that a text names.

    Raises
    ------
    DoeError
        If the factor has no such level; says which it has.
    """
    words = text.strip().strip("'\"")
    for number, level in enumerate(factor.levels):
        if same_level(words, level):
            return number
    known = [level_text(level) for level in factor.levels]
    raise DoeError(
        f"{words!r} is not a level of {factor.key}{nearest(words, known)}; "
        f"its levels are {', '.join(known)}"
    )


def same_level(text: str, level: Level) -> bool:
    """Return whether a text names a level: the same words, number or switch."""
    if text == level_text(level):
        return True
    if isinstance(level, bool):
        return text.lower() in SWITCH_WORDS[level]
    if isinstance(level, str):
        return False
    try:
        return float(text) == float(level)
    except ValueError:
        return False


def exclusions(study: Study) -> tuple[dict[int, int], ...]:
    """Return each combination that never runs: number of a factor -> number of its level.

    Excluded ones, and all but the first level of a factor beside levels where it does not matter.

    Raises
    ------
    DoeError
        If one cannot be read; says which, by its place in the list.
    """
    read = [
        {other: absent, i: number}
        for i, (other, absences) in conditions(study).items()
        for absent in absences
        for number in range(1, len(study.factors[i].levels))
    ]
    return (*read, *excluded_levels(study))


def excluded_levels(study: Study) -> list[dict[int, int]]:
    """Parse `exclude`: number of a factor -> number of its level; raises as `exclusions`."""
    read = []
    for i, text in enumerate(study.exclude):
        try:
            read.append(_combination(text, study))
        except DoeError as error:
            raise DoeError(f"exclude[{i}] = {text!r}: {error}") from None
    return read


def conditions(study: Study) -> dict[int, tuple[int, list[int]]]:
    """Map each conditional factor to its parent and the parent's levels where it has no effect.

    Raises
    ------
    DoeError
        If a condition names no level of another factor.
    """
    read = {}
    for i, factor in enumerate(study.factors):
        if not factor.when:
            continue
        try:
            ((other, number),) = _combination(factor.when, study).items()
            if other == i:
                raise DoeError("a factor cannot depend on itself")
        except (DoeError, ValueError) as error:
            reason = str(error) if isinstance(error, DoeError) else "expected one KEY=LEVEL"
            raise DoeError(f"factors.{factor.key}.when = {factor.when!r}: {reason}") from None
        absent = [n for n in range(len(study.factors[other].levels)) if n != number]
        read[i] = other, absent
    for i, factor in enumerate(study.factors):
        path = [i]
        while path[-1] in read and len(path) <= len(read):
            path.append(read[path[-1]][0])
        if i in path[1:]:
            raise DoeError(
                f"factors.{factor.key}.when = {factor.when!r}: "
                f"{study.keys[path[1]]} depends on {factor.key} itself; remove one of the two"
            )
    return read


def _combination(text: str, study: Study) -> dict[int, int]:
    levels: dict[int, int] = {}
    for part in text.split(","):
        key, equals, level = (piece.strip() for piece in part.partition("="))
        if not equals or not level:
            raise DoeError(f"{part.strip()!r} is not a level; expected KEY=LEVEL, KEY=LEVEL")
        if key not in study.keys:
            raise DoeError(
                f"{key!r} is not a factor{nearest(key, study.keys)}; "
                f"the factors are {', '.join(study.keys)}"
            )
        number = study.keys.index(key)
        if number in levels:
            raise DoeError(f"{key} is named twice; expected each factor once")
        levels[number] = read_level(level, study.factors[number])
    return levels


def allowed_rows(study: Study, rows: Sequence[int] | None = None) -> list[int]:
    """Return rows of the full factorial, or those given, that no exclusion names."""
    sizes, excluded = study.sizes, exclusions(study)
    every = range(math.prod(sizes)) if rows is None else rows
    if not excluded:
        return list(every)
    kept = []
    for row in every:
        numbers = level_numbers(row, sizes)
        if not any(all(numbers[i] == level for i, level in bad.items()) for bad in excluded):
            kept.append(row)
    return kept


def inestimable_factor(study: Study, rows: Sequence[int]) -> str:
    """Return a factor whose main effect is aliased on these rows; empty if none is.

    Its levels less one are the rank that it must add to the mean and all other factors.
    """
    import numpy as np

    numbers = np.array([level_numbers(row, study.sizes) for row in rows])
    columns = [np.eye(size)[numbers[:, i]][:, 1:] for i, size in enumerate(study.sizes)]

    def rank(left_out: int) -> int:
        parts = [c for i, c in enumerate(columns) if i != left_out]
        X = np.column_stack([np.ones(len(rows)), *parts])
        return int(np.linalg.matrix_rank(X.T @ X))

    whole = rank(-1)
    for i, factor in enumerate(study.factors):
        if whole - rank(i) < len(factor.levels) - 1:
            return factor.key
    return ""
