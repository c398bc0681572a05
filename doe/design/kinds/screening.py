"""Screening designs: many factors in few runs, for main effects."""

from __future__ import annotations

from itertools import product
from typing import Literal

import msgspec
import numpy as np

from doe.design.configurations import Levels, Point, centre_points
from doe.design.model import Floats
from doe.design.pydoe import pydoe
from doe.errors import DoeError
from doe.study.levels import exclusions
from doe.study.values import Factor, Study

MOST_CHOICES = 4096
"""Number of sign choices for mid-level words that are tried."""
PLACKETT_BURMAN, DEFINITIVE = "plackett-burman", "definitive"


class Settings(msgspec.Struct, frozen=True):
    """Settings of a screening design."""

    method: Literal["plackett-burman", "definitive"] = "plackett-burman"
    """Two levels of every factor (plackett-burman), or three of the numeric ones (definitive)."""


def points(study: Study, settings: Settings) -> list[Point]:
    """Return a Plackett–Burman or definitive screening design, and centre runs."""
    if exclusions(study):
        raise DoeError(
            "exclude and when: a screening design needs all of its combinations; remove "
            'them, or use kind = "optimal"'
        )
    if settings.method == PLACKETT_BURMAN:
        positions = _plackett_burman(study)
    else:
        positions = _definitive(study)
    found = [Point(_levels(study, row)) for row in positions.tolist()]
    return found + centre_points(study)


def terms(study: Study, settings: Settings) -> tuple[int, ...]:
    """Return the main effects."""
    return tuple(1 << i for i in range(len(study.factors)))


def describe(study: Study, settings: Settings) -> str:
    """Describe the design and what it confounds."""
    if settings.method == PLACKETT_BURMAN:
        runs = len(_plackett_burman(study))
        regular = runs & (runs - 1) == 0
        share = "fully aliased" if regular else "partially aliased"
        return (
            f"Plackett–Burman design of {runs} runs: main effects are orthogonal to each other, "
            f"and {share} with two-factor interactions; the foldover clears them."
        )
    words = [factor.key for factor in study.factors if not factor.numeric]
    beside = f" but those of {', '.join(words)}, nearly so" if words else ""
    return (
        f"Definitive screening design of {len(_definitive(study))} runs: main effects are "
        f"orthogonal to each other{beside}, and clear of all squares and two-factor interactions, "
        "which are partially aliased with each other."
    )


def _levels(study: Study, positions: list[float]) -> Levels:
    """Return levels at −1, 0 and 1."""
    return tuple(
        factor.levels[round((z + 1) / 2 * (len(factor.levels) - 1))]
        if len(factor.levels) > 2 or z
        else factor.level_at(0)
        for factor, z in zip(study.factors, positions, strict=True)
    )


def _plackett_burman(study: Study) -> Floats:
    if wide := next((f for f in study.factors if len(f.levels) != 2), None):
        raise DoeError(
            f"factors.{wide.key} has {len(wide.levels)} levels; a Plackett–Burman design needs two "
            'of every factor; give two, or use method = "definitive" or kind = "optimal"'
        )
    count = len(study.factors)
    for size in range(count, count + 12):
        try:
            return np.asarray(pydoe().pbdesign(size)[:, :count], dtype=np.float64)
        except (ValueError, AssertionError):  # pydoe's message for an unknown size
            continue
    raise DoeError(f"no Plackett–Burman design for {count} factors is known")


def _definitive(study: Study) -> Floats:
    """Return runs x factors: a conference matrix, its mirror image, and the centre.

    Words have no middle: their zeros become a pair of opposite signs, and the centre runs once at
    either sign (Jones and Nachtsheim 2013), chosen for the largest determinant of the main effects.
    """
    for factor in study.factors:
        _check_three(factor)
    count = len(study.factors)
    if count < 3:
        raise DoeError(f"a definitive screening design needs at least 3 factors; got {count}")
    half = conference_matrix(count)[:, :count]
    words = [i for i, factor in enumerate(study.factors) if not factor.numeric]
    if not words:
        return np.vstack([half, -half, np.zeros((1, count))])
    half = np.vstack([half, np.zeros((1, count))])
    zeros = [(row, i) for i in words for row in np.flatnonzero(half[:, i] == 0)]
    signs = _sign_choices(len(zeros))
    halves = np.repeat(half[None], len(signs), axis=0)
    for j, (row, i) in enumerate(zeros):
        halves[:, row, i] = signs[:, j]
    # Each run has its mirror image, so the mean is orthogonal to the main effects.
    half = halves[np.linalg.det(halves.transpose(0, 2, 1) @ halves).argmax()]
    return np.vstack([half, -half])


def _sign_choices(number: int) -> Floats:
    """Return all choices of so many signs, or a random sample of them."""
    if 2**number <= MOST_CHOICES:
        return np.array(list(product((1.0, -1.0), repeat=number)))
    return np.random.default_rng(1).choice((1.0, -1.0), size=(MOST_CHOICES, number))


def _check_three(factor: Factor) -> None:
    """Refuse a factor that has neither a middle nor two levels."""
    path = f"factors.{factor.key}"
    other = 'give a range, two words, or use kind = "optimal"'
    if not factor.numeric and len(factor.levels) != 2:
        raise DoeError(f"{path} has {len(factor.levels)} words as levels; {other}")
    if factor.numeric and not factor.ranged and len(factor.levels) % 2 == 0:
        raise DoeError(f"{path} has {len(factor.levels)} numbers as levels and no middle; {other}")
    if factor.ranged and factor.level_at(0) in factor.levels:
        raise DoeError(f"{path}: no whole number lies between {factor.low} and {factor.high}")


def conference_matrix(least: int) -> Floats:
    """Return the smallest conference matrix C of at least so many columns: ``C'C = (m − 1) I``.

    Paley's construction from the squares of a field of m − 1 elements, a prime or 9; of order 16,
    twice the skew one of order 8.
    """
    for order in range(max(4, least + least % 2), 100, 2):
        if order == 16:
            skew = _paley(7)
            one = np.eye(8)
            return np.block([[skew, skew + one], [skew - one, -skew]])
        if order == 10 or all((order - 1) % d for d in range(2, order - 1)):
            return _paley(order - 1)
    raise DoeError(f"no conference matrix of {least} columns is implemented")


def _paley(q: int) -> Floats:
    """Return a border of ones around the quadratic characters of all differences."""
    prime = 3 if q == 9 else q
    field = list(product(range(prime), range(q // prime)))  # a + b i with i² = −1

    def square(a: int, b: int) -> tuple[int, int]:
        return (a * a - b * b) % prime, 2 * a * b % prime

    squares = {square(*element) for element in field} - {(0, 0)}

    def character(x: tuple[int, int], y: tuple[int, int]) -> int:
        difference = (x[0] - y[0]) % prime, (x[1] - y[1]) % prime
        return 0 if difference == (0, 0) else 1 if difference in squares else -1

    inside = np.array([[character(x, y) for y in field] for x in field], np.float64)
    sign = 1.0 if q % 4 == 1 else -1.0
    matrix = np.zeros((q + 1, q + 1))
    matrix[0, 1:], matrix[1:, 0], matrix[1:, 1:] = 1.0, sign, inside
    return matrix
