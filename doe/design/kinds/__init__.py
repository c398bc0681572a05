"""Kinds of designs, one module each, found by the name in `[design]`.

A module offers its `Settings`, a msgspec struct that the other keys of `[design]` fill; `points`,
the configurations of one replicate; `terms`, its usual model, or None for as many interactions as
the runs can tell apart; and `describe`, what it is and what it can estimate, in sentences.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    NamedTuple,
    Protocol,
    get_args,
    get_origin,
    get_type_hints,
)

import msgspec

from doe.errors import DoeError, nearest, short
from doe.study.checks import MOST_PLANNED_RUNS
from doe.study.values import FACTORIAL, Study

if TYPE_CHECKING:
    from doe.design.configurations import Point

BY_FRACTION = ("fraction", "subset")
"""Kinds selected by `fraction` of a factorial."""


class Kind(Protocol):
    """Interface of the modules of this package."""

    Settings: type[msgspec.Struct]

    def points(self, study: Study, settings: Any) -> list[Point]:
        """Return the configurations of one replicate, with their blocks."""

    def terms(self, study: Study, settings: Any) -> Sequence[int] | None:
        """Return the usual model; None for as many interactions as the runs can estimate."""

    def describe(self, study: Study, settings: Any) -> str:
        """Describe the design and what it can estimate, in sentences."""


def kind_names() -> list[str]:
    """Return the names allowed in `[design]`."""
    return [m.name for m in iter_modules(__path__) if m.name not in BY_FRACTION]


class ChosenKind(NamedTuple):
    """The kind of a study's design with the study's settings."""

    study: Study
    kind: Kind
    settings: Any

    def points(self) -> list[Point]:
        """Return the configurations of one replicate, with their blocks."""
        points = self.kind.points(self.study, self.settings)
        if len(points) * self.study.replicates > MOST_PLANNED_RUNS:
            raise DoeError(
                f"the design has {len(points)} runs per replicate, {self.study.replicates} "
                f"replicates; expected at most {MOST_PLANNED_RUNS} runs"
            )
        return points

    def terms(self) -> Sequence[int] | None:
        """Return the usual model, or that for which points were added last; None for as many
        interactions as the runs can tell apart."""
        from doe.design.model import bends, named_terms

        for step in reversed(self.study.augment):
            if step.axial or step.runs:
                squares = any(map(bends, self.study.factors))
                usual = "quadratic" if squares else "interactions"
                return named_terms(self.study.factors, step.model or usual)
        return self.kind.terms(self.study, self.settings)

    def describe(self) -> str:
        """Describe the design and what it can estimate, in sentences."""
        return self.kind.describe(self.study, self.settings)


def chosen_kind(study: Study) -> ChosenKind:
    """Return the kind of design of a study.

    Raises
    ------
    DoeError
        If there is none of that name, or its settings are not those that it takes.
    """
    names = kind_names()
    if study.kind not in names:
        raise DoeError(
            f"design.kind = {short(study.kind)}: not a kind of design{nearest(study.kind, names)}; "
            f"expected {', '.join(names)}"
        )
    name = study.kind
    if name == FACTORIAL and study.fraction:
        name = "subset" if study.parts else "fraction"
    kind: Any = import_module(f"{__name__}.{name}")
    return ChosenKind(study, kind, _settings(kind.Settings, study))


def _settings(kind: type[msgspec.Struct], study: Study) -> msgspec.Struct:
    given = {key: value for key, value in study.design.items() if key != "kind"}
    known = kind.__struct_fields__
    for key in given:
        if key not in known:
            expected = f"it has {', '.join(known)}" if known else "it has none"
            raise DoeError(
                f"design.{key}: not a setting of {study.kind}{nearest(key, known)}; {expected}"
            )
    try:
        return msgspec.convert(given, kind)
    except msgspec.ValidationError as error:
        key = str(error).rpartition("$.")[2].rstrip("`").partition("[")[0]
        expected = _words(get_type_hints(kind)[key])
        raise DoeError(f"design.{key} = {short(given[key])}: expected {expected}") from None


def _words(hint: Any) -> str:
    """Describe the values of a type in words."""
    words = {int: "a whole number", float: "a number", str: "a word", bool: "true or false"}
    if hint in words:
        return words[hint]
    if get_origin(hint) is tuple:
        return "a list of words"
    parts = [f'"{p}"' if get_origin(hint) is Literal else _words(p) for p in get_args(hint)]
    return " or ".join(parts)
