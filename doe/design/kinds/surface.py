"""Response surface designs: central composite and Box–Behnken."""

from __future__ import annotations

import math
from itertools import combinations, product
from typing import Literal

import msgspec

from doe.design.configurations import Levels, Point
from doe.design.fractions import minimum_aberration
from doe.design.kinds.fraction import two_level_rows
from doe.errors import DoeError, short
from doe.numbers import to_figures
from doe.study.levels import exclusions, level_numbers
from doe.study.values import Factor, Level, Study

CENTRE_RUNS = {"central-composite": 4, "box-behnken": 3}
"""Default number of centre runs in each block of a single replicate; 1 with several replicates,
which estimate the error themselves."""
AXIAL_CENTRE_RUNS = 2
"""Centre runs with axial points that are added to a design without any."""
Positions = tuple[float, ...]
GENERATED = {5: 1, 6: 1, 7: 1, 8: 2, 9: 2, 10: 3, 11: 4}
"""Factors -> p of the smallest 2^(k−p) fraction of resolution V; for fewer factors, the full
factorial."""
TRIPLES = {
    6: "013 124 235 034 145 025",
    7: "345 056 146 013 236 024 125",
}
"""Factors that vary together in Box–Behnken designs of six and seven; for fewer, all pairs."""
BLOCKS = {
    4: ("01 23", "02 13", "03 12"),
    5: ("01 12 23 34 04", "02 13 24 03 14"),
}
"""Pairs of factors in each orthogonal block of Box–Behnken designs."""


class Settings(msgspec.Struct, frozen=True):
    """Settings of a response surface design."""

    method: Literal["central-composite", "box-behnken"] = "central-composite"
    alpha: Literal["face", "rotatable", "orthogonal"] | float = "face"
    """Distance of the axial points: on the faces, rotatable, for orthogonal blocks, or a number."""
    inscribe: bool = False
    """Whether the whole design shrinks so that axial points beyond the faces stay within the
    range."""
    blocks: int = 1
    """Orthogonal blocks: 2 for a central composite design, 3 or 2 for Box–Behnken designs of 4 or 5
    factors."""


def points(study: Study, settings: Settings) -> list[Point]:
    """Return the design of the numeric factors, at each combination of the others' levels."""
    if settings.method == "box-behnken":
        return _crossed(study, _box_behnken(study, settings, len(_numeric(study))))
    return _crossed(study, _central_composite(study, settings, len(_numeric(study))))


def axial_points(study: Study, alpha: float) -> list[Levels]:
    """Return axial points and centre runs that turn a factorial into a surface design."""
    factors = len(_numeric(study))
    several = 1 if study.replicates > 1 else AXIAL_CENTRE_RUNS
    centre = [(0.0,) * factors] * (study.centre or several)
    placed = [(positions, 0) for positions in (*_axial(factors, alpha), *centre)]
    return [point.levels for point in _crossed(study, placed)]


def _crossed(study: Study, placed: list[tuple[Positions, int]]) -> list[Point]:
    """Return positions of the numeric factors at each combination of the others' levels."""
    others = [(None,) if f.ranged else f.levels for f in study.factors]
    return [
        Point(_levels(study, combination, positions), block)
        for combination in product(*others)
        for positions, block in placed
    ]


def terms(study: Study, settings: Settings) -> tuple[int, ...]:
    """Return the full second-order model."""
    from doe.design.model import named_terms  # numpy, which reading a plan does not need

    return named_terms(study.factors, "quadratic")


def describe(study: Study, settings: Settings) -> str:
    """Describe the name, the axial distance and what can be estimated."""
    numeric = _numeric(study)
    if settings.method == "box-behnken":
        name = "Box–Behnken design"
    else:
        alpha = _alpha(study, settings, len(numeric))
        shrunk = ", inscribed" if settings.inscribe and alpha > 1 else ""
        name = f"Central composite design, axial points at ±{to_figures(alpha, 3)}{shrunk}"
    crossed = (
        " at each combination of the other factors" if len(numeric) < len(study.factors) else ""
    )
    return f"{name}{crossed}: main effects, two-factor interactions and squares can be estimated."


def _numeric(study: Study) -> list[Factor]:
    """Return factors of the surface: ranges of numbers; all others are crossed with it."""
    if exclusions(study):
        raise DoeError(
            "exclude and when: a surface design needs all of its combinations; remove "
            'them, or use kind = "optimal"'
        )
    numeric = [factor for factor in study.factors if factor.ranged]
    if len(numeric) < 2:
        raise DoeError(
            "a response surface needs at least two factors with a range of numbers (low and high); "
            f"got {len(numeric)}"
        )
    for factor in numeric:
        if factor.level_at(0) in factor.levels:
            raise DoeError(
                f"factors.{factor.key}: no whole number lies between {factor.low} and "
                f"{factor.high}; a square needs a third value"
            )
    return numeric


def _levels(study: Study, combination: tuple[Level | None, ...], positions: Positions) -> Levels:
    left = iter(positions)
    return tuple(
        factor.level_at(next(left)) if level is None else level
        for factor, level in zip(study.factors, combination, strict=True)
    )


def _centre(study: Study, settings: Settings, blocks: int) -> list[int]:
    """Return the block of each centre run, distributed over the blocks in turn."""
    several = 1 if study.replicates > 1 else CENTRE_RUNS[settings.method]
    number = study.centre or several * blocks
    return [i % blocks for i in range(number)]


def _cube(factors: int) -> list[Positions]:
    """Return the factorial part, or the smallest fraction of it of resolution V."""
    if factors > max(GENERATED):
        raise DoeError(f"a central composite design needs 2 to 11 ranges of numbers; got {factors}")
    generators = minimum_aberration(factors, GENERATED.get(factors, 0))
    rows = two_level_rows(factors, generators) if generators else range(2**factors)
    sizes = (2,) * factors
    return [tuple(2.0 * n - 1.0 for n in level_numbers(row, sizes)) for row in rows]


def _axial(factors: int, alpha: float) -> list[Positions]:
    """Return two points on the axis of each factor."""
    return [
        tuple(side * alpha if j == i else 0.0 for j in range(factors))
        for i in range(factors)
        for side in (-1.0, 1.0)
    ]


def _alpha(study: Study, settings: Settings, factors: int) -> float:
    """Return the distance of the axial points from the centre, with the cube at ±1."""
    cube = len(_cube(factors))
    blocks = _centre(study, settings, 2)
    named = {
        "face": 1.0,
        "rotatable": math.sqrt(math.sqrt(cube)),
        # Each block has the same mean square of every factor (Box and Hunter 1957).
        "orthogonal": math.sqrt(
            cube * (2 * factors + blocks.count(1)) / (2 * (cube + blocks.count(0)))
        ),
    }
    if isinstance(settings.alpha, str):
        return named[settings.alpha]
    if not 0 < settings.alpha < 100:
        raise DoeError(
            f"design.alpha = {short(settings.alpha)}: expected a number above 0, up to 100"
        )
    return settings.alpha


def _central_composite(
    study: Study, settings: Settings, factors: int
) -> list[tuple[Positions, int]]:
    if settings.blocks not in (1, 2):
        raise DoeError(f"design.blocks = {settings.blocks}: expected 1, or 2 (cube and axial)")
    cube, alpha = _cube(factors), _alpha(study, settings, factors)
    if settings.blocks == 2 and abs(alpha - _alpha(study, _orthogonal(settings), factors)) > 1e-3:
        raise DoeError(
            f"design.alpha = {short(settings.alpha)}: with two blocks the axial points are at "
            f"{to_figures(_alpha(study, _orthogonal(settings), factors), 4)}; set alpha = "
            '"orthogonal"'
        )
    if alpha > 1 and not settings.inscribe:
        raise DoeError(
            f"design.alpha = {short(settings.alpha)}: axial points at ±{to_figures(alpha, 4)} "
            "leave the range of the factors; set inscribe = true to shrink the design, or alpha = "
            '"face"'
        )
    shrink = 1.0 / max(alpha, 1.0)
    axial = _axial(factors, alpha)
    last = settings.blocks - 1
    placed = [(tuple(z * shrink for z in p), 0) for p in cube]
    placed += [(tuple(z * shrink for z in p), last) for p in axial]
    middle = (0.0,) * factors
    return placed + [(middle, block) for block in _centre(study, settings, settings.blocks)]


def _orthogonal(settings: Settings) -> Settings:
    return msgspec.structs.replace(settings, alpha="orthogonal")


def _box_behnken(study: Study, settings: Settings, factors: int) -> list[tuple[Positions, int]]:
    if not 3 <= factors <= 7:
        raise DoeError(f"a Box–Behnken design needs 3 to 7 ranges of numbers; got {factors}")
    groups = BLOCKS.get(factors, ())
    if settings.blocks not in (1, len(groups)):
        can = f"1 or {len(groups)}" if groups else "1"
        raise DoeError(
            f"design.blocks = {settings.blocks}: a Box–Behnken design of {factors} factors has "
            f"{can} orthogonal blocks"
        )
    together = [[int(i) for i in text] for text in TRIPLES.get(factors, "").split()]
    sets = [(group, 0) for group in together or combinations(range(factors), 2)]
    if settings.blocks > 1:
        sets = [
            ([int(i) for i in pair], block)
            for block, text in enumerate(groups)
            for pair in text.split()
        ]
    placed = []
    for group, block in sets:
        for signs in product((-1.0, 1.0), repeat=len(group)):
            at = dict(zip(group, signs, strict=True))
            placed.append((tuple(at.get(i, 0.0) for i in range(factors)), block))
    middle = (0.0,) * factors
    return placed + [(middle, block) for block in _centre(study, settings, settings.blocks)]
