"""Goals of several responses as users write them: constraints and desirabilities."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import msgspec

from doe.errors import AddProblem, DoeError, nearest, short


class Desire(msgspec.Struct, frozen=True):
    """The desirability of a response's values (Derringer and Suich 1980)."""

    target: float
    """Value that is fully desirable."""
    low: float | None = None
    """Values at or below it are unacceptable; if omitted, smaller values are as good as the
    target."""
    high: float | None = None
    """Values at or above it are unacceptable; if omitted, larger values are as good as the
    target."""
    weight: float = 1.0
    """Weight of the response in the overall desirability."""


class Constraint(NamedTuple):
    """A limit on the mean of a response."""

    response: str
    upper: bool
    limit: float

    @property
    def text(self) -> str:
        """The constraint as written."""
        return f"{self.response} {'<=' if self.upper else '>='} {self.limit:g}"


def parse_constraint(text: str) -> Constraint:
    """Parse "seconds <= 60", or raise DoeError."""
    match = re.fullmatch(r"\s*(\w+)\s*(<=|>=|≤|≥)\s*(\S+)\s*", text)
    limit = _number(match[3]) if match else None
    if match is None or limit is None:
        raise DoeError(
            f"constraint {short(text)}: expected a response, <= or >=, and a number, as in "
            "'seconds <= 60'"
        )
    return Constraint(match[1], match[2] in ("<=", "≤"), limit)


def parse_desire(text: str) -> tuple[str, Desire]:
    """Parse "accuracy=0.9..0.98:2": the worst acceptable value, the target, and the weight.

    "seconds=60..10" falls, and "width=8..16..32" has its target between two ends.
    """
    name, _, values = text.partition("=")
    ends, _, weight = values.partition(":")
    numbers = [_number(end) for end in ends.split("..")]
    size = _number(weight) if weight else 1.0
    known = [number for number in numbers if number is not None]
    if size is None or len(known) != len(numbers) or len(numbers) not in (2, 3):
        raise DoeError(
            f"desirability {short(text)}: expected a response with the value of desirability 0, "
            "the target, and optionally a weight, as in seconds=60..10:2"
        )
    if len(known) == 3:
        desire = Desire(known[1], known[0], known[2], size)
    elif known[0] > known[1]:
        desire = Desire(known[1], high=known[0], weight=size)
    else:
        desire = Desire(known[1], low=known[0], weight=size)
    return name.strip(), desire


def check_constraints(texts: Sequence[str], known: Collection[str], add: AddProblem) -> None:
    """Check that constraints can be read and name known responses."""
    for text in texts:
        try:
            name = parse_constraint(text).response
        except DoeError as error:
            add(str(error))
            continue
        if name not in known:
            add(f"constraint {short(text)}: {name!r} is not a response{nearest(name, known)}")


def check_desires(
    desires: Mapping[str, Desire],
    known: Collection[str],
    goals: Mapping[str, str | None],
    add: AddProblem,
) -> None:
    """Check the desirability of each response."""
    if len(desires) == 1:
        add(
            f"desirability: got {next(iter(desires))} alone; expected two responses or more; a "
            "single response is ranked by its own goal"
        )
    for name, desire in desires.items():
        path = f"desirability.{name}"
        if name not in known:
            add(f"{path}: no such response{nearest(name, known)}")
        elif problem := _problem(desire, goals.get(name)):
            add(f"{path}: {problem}")


def _problem(desire: Desire, goal: str | None) -> str:
    low, target, high = desire.low, desire.target, desire.high
    if any(end is not None and not math.isfinite(end) for end in (low, target, high)):
        return "expected finite numbers"
    if low is None and high is None:
        return "expected low or high beside target, the value of desirability 0"
    if low is not None and low >= target:
        return f"low = {low:g} is not below target = {target:g}"
    if high is not None and high <= target:
        return f"high = {high:g} is not above target = {target:g}"
    if not (math.isfinite(desire.weight) and desire.weight > 0):
        return f"weight = {desire.weight:g}; expected a number above 0"
    if goal == "min" and high is None:
        return "its goal is min; expected target and high, at and above which nothing is acceptable"
    if goal == "max" and low is None:
        return "its goal is max; expected low, at and below which nothing is acceptable, and target"
    return ""


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
