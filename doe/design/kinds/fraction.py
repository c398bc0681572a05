"""Regular fractions of two-level factorials, by generators."""

from __future__ import annotations

from collections.abc import Sequence

from doe.design.configurations import Point
from doe.design.fractions import resolution, roman
from doe.design.kinds.factorial import Settings, blocked_points, row_numbers
from doe.design.kinds.factorial import terms as terms
from doe.design.pydoe import pydoe
from doe.study.levels import allowed_rows
from doe.study.values import Study
from doe.terms import Generator

LETTERS = "abcdefghijklmnop"
"""Names of the basic factors in pydoe's generators."""


def points(study: Study, settings: Settings) -> list[Point]:
    """Return the fraction without excluded combinations, in blocks, with centre runs."""
    rows = two_level_rows(len(study.factors), study.generators)
    return blocked_points(study, allowed_rows(study, rows))


def describe(study: Study, settings: Settings) -> str:
    """Describe resolution and generators."""
    return f"Resolution {roman(resolution(study.generators) or 0)}: {study.fraction}."


def two_level_rows(factors: int, generators: Sequence[Generator]) -> list[int]:
    """Return the rows of `fracfact` with its generators."""
    words = _words(factors, generators)
    # Pydoe refuses two factors with one word, such as C=AB and D=-AB.
    distinct = list(dict.fromkeys(word for _, word in words))
    matrix = pydoe().fracfact(" ".join(distinct))
    columns = [distinct.index(word) for _, word in words]
    return row_numbers(matrix[:, columns] * [sign for sign, _ in words] > 0, (2,) * factors)


def _words(factors: int, generators: Sequence[Generator]) -> list[tuple[int, str]]:
    """Return the sign and the word of each factor in pydoe's form, the basic ones a, b, c, …"""
    generated = {generator.factor: generator for generator in generators}
    masks = [1 << i for i in range(factors)]
    basic = [mask for mask in masks if mask not in generated]
    letters = dict(zip(basic, LETTERS, strict=False))
    words = []
    for mask in masks:
        if generator := generated.get(mask):
            word = "".join(letters[m] for m in basic if generator.interaction & m)
            words.append((generator.sign, word))
        else:
            words.append((1, letters[mask]))
    return words
