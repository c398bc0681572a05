"""Configurations: a level of every factor, wherever it lies, with its code, name and number."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate, product
from operator import getitem, mul
from typing import NamedTuple

from doe.errors import DoeError
from doe.numbers import to_figures
from doe.study.levels import coded_level
from doe.study.values import FACTORIAL, Factor, Level, Study
from doe.terms import BETWEEN, level_text, single_letters

Levels = tuple[Level, ...]
"""One level per factor, in the order of the factors."""
Code = int | float
Coded = tuple[Code, ...]
"""Levels of one run as numbers around zero, one per factor: −1 and +1 of two levels."""
CENTRE = "centre"
"""The configuration with every factor at its middle, if that is not one of its levels."""


class Point(NamedTuple):
    """A configuration of a replicate, at levels or between them."""

    levels: Levels
    block: int = 0
    """Block within its replicate, from 0."""
    plot: int = 0
    """Whole plot within its block among those with the same levels of the hard-to-change
    factors."""


class Configuration(NamedTuple):
    """The levels of some factors: labels, names, values, codes."""

    label: str
    name: str
    levels: dict[str, Level]
    coded: Coded


class _Codes(dict[Level, Code]):
    """Level of one factor -> its code; between the levels it is computed on first use."""

    def __init__(self, factor: Factor) -> None:
        size = len(factor.levels)
        super().__init__({level: coded_level(i, size) for i, level in enumerate(factor.levels)})
        self._factor = factor

    def __missing__(self, level: Level) -> Code:
        self[level] = code_between(self._factor, level)
        return self[level]


def code_between(factor: Factor, level: Level) -> Code:
    """Return the code of a number that is not one of the factor's levels; 0 is the middle of its
    scale."""
    if not factor.numeric or isinstance(level, str):
        known = ", ".join(map(level_text, factor.levels))
        raise DoeError(f"{level_text(level)!r} is not a level of {factor.key}; expected {known}")
    if level == factor.centre:
        return 0
    outermost = coded_level(len(factor.levels) - 1, len(factor.levels))
    return float(to_figures(factor.position(level) * outermost, 12))


class Configurations:
    """Names, codes and numbers of the configurations of some factors.

    A design may have 100,000, so what they are made of is looked up.
    """

    def __init__(
        self,
        factors: Sequence[Factor],
        known: Mapping[Levels, int] = {},
        factorial: bool = True,
    ) -> None:
        """`known` numbers the configurations of an existing design."""
        self.keys = [factor.key for factor in factors]
        combinations = math.prod(len(f.levels) for f in factors) if factorial else 0
        self.width = max(3, len(str(combinations - 1)))
        weights = accumulate((len(f.levels) for f in factors), mul, initial=1)
        self._places = [
            {level: i * weight for i, level in enumerate(factor.levels) if factorial}
            for factor, weight in zip(factors, weights, strict=False)
        ]
        self._codes = [_Codes(factor) for factor in factors]
        self._single = single_letters(self.keys)
        self._names = [
            {
                level: f"{factor.key}{i}" if self._single else f"{factor.key}={level_text(level)}"
                for i, level in enumerate(factor.levels)
            }
            for factor in factors
        ]
        self._others = {levels: row for levels, row in known.items() if row >= combinations}
        self._next = max(self._others.values(), default=combinations - 1) + 1

    def number(self, levels: Levels) -> int:
        """Return the number in the standard order of the full factorial, from 0, the first factor
        fastest.

        Configurations between the levels have the next numbers, as they come; so have all of a
        design of another kind.
        """
        try:
            return sum(map(getitem, self._places, levels))
        except KeyError:
            row = self._others.setdefault(levels, self._next)
            self._next = max(self._next, row + 1)
            return row

    def at(self, levels: Levels) -> Configuration:
        """Return the configuration with these levels."""
        coded = tuple(map(getitem, self._codes, levels))
        try:
            parts = list(map(getitem, self._names, levels))
            name = ("" if self._single else ",").join(parts)
        except KeyError:
            pairs = zip(self.keys, map(level_text, levels), strict=True)
            name = CENTRE if not any(coded) else ",".join(f"{key}={text}" for key, text in pairs)
        label = name if self._single else BETWEEN.join(map(level_text, levels))
        return Configuration(label, name, dict(zip(self.keys, levels, strict=True)), coded)


def study_configurations(study: Study, known: Mapping[Levels, int] = {}) -> Configurations:
    """Return names, codes and numbers of the configurations of a study."""
    return Configurations(study.factors, known, study.kind == FACTORIAL)


def centre_points(study: Study, blocks: int = 1) -> list[Point]:
    """Return the centre runs of a replicate, distributed over its blocks in turn."""
    if not study.centre:
        return []
    middle = tuple(factor.centre for factor in study.factors)
    return [Point(middle, i % blocks) for i in range(study.centre)]


def levels_of_rows(factors: Sequence[Factor], rows: Iterable[int]) -> list[Levels]:
    """Return levels in rows of the full factorial, the first factor fastest."""
    half = len(factors) // 2
    first, second = (
        [levels[::-1] for levels in product(*(f.levels for f in reversed(part)))]
        for part in (factors[:half], factors[half:])
    )
    return [first[row % len(first)] + second[row // len(first)] for row in rows]
