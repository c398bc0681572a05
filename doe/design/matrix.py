"""The rows of a design, as pydoe makes them."""

from __future__ import annotations

import importlib.util
import math
import sys
import types
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from doe.errors import DoeError
from doe.study.levels import allowed_rows, inestimable_factor
from doe.study.values import Study
from doe.terms import Generator

LETTERS = "abcdefghijklmnop"
"""Names of the basic factors in pydoe's generators."""
PYDOE = {
    "pydoe": ("factorial/factorial.py", "factorial/gsd.py"),
    "pyDOE2": ("doe_factorial.py", "doe_gsd.py"),
}
"""Packages that make designs, and their files; pydoe is the maintained one."""


def standard_rows(study: Study) -> list[int]:
    """Rows of the full factorial, of a fraction or of a first part, without excluded ones.

    A row is the number of a configuration in the standard order of the full factorial, the first
    factor fastest: of two-level factors, bit i is 1 where factor i is high.
    """
    if study.parts:
        return part_rows(study, study.parts)[0]
    if study.generators:
        return allowed_rows(study, _two_level_rows(len(study.factors), study.generators))
    return allowed_rows(study)


def part_rows(study: Study, parts: int) -> list[list[int]]:
    """The parts of a generalised subset design (Surowiec et al. 2017), which make up the whole.

    The first is one whose runs can estimate every main effect.

    Raises
    ------
    DoeError
        If there is none.
    """
    every, first = _ordered(study, parts)
    if first is not None:
        return [every[first], *every[:first], *every[first + 1 :]]
    most = max((len(rows) for rows in every), default=0)
    runs = f"{most} runs, {_coefficients(study)} coefficients" if most else "there are not so many"
    larger = next((n for n in range(parts - 1, 1, -1) if _ordered(study, n)[1] is not None), 1)
    advice = f"take 1/{larger}" if larger > 1 else "take all of them"
    raise DoeError(
        f'fraction = "1/{parts}": no part of {" × ".join(map(str, study.sizes))} combinations can '
        f"estimate every main effect ({runs}); {advice}"
    )


def _coefficients(study: Study) -> int:
    """The mean and the main effects."""
    return 1 + sum(size - 1 for size in study.sizes)


def _ordered(study: Study, parts: int) -> tuple[list[list[int]], int | None]:
    """All parts, and the number of the first that can estimate every main effect."""
    every = [allowed_rows(study, rows) for rows in _parts(study.sizes, parts)]
    for i, rows in enumerate(every):
        if len(rows) >= _coefficients(study) and not inestimable_factor(study, rows):
            return every, i
    return every, None


@cache
def _parts(sizes: tuple[int, ...], parts: int) -> tuple[tuple[int, ...], ...]:
    if parts == 1:
        return (tuple(range(math.prod(sizes))),)
    if len(sizes) < 2 or parts > math.prod(sizes):
        return ()
    try:
        return tuple(tuple(_rows(part, sizes)) for part in _pydoe().gsd(list(sizes), parts, parts))
    except (ValueError, AssertionError):  # its words for a reduction that does not fit
        return ()


def _rows(matrix: Any, sizes: Sequence[int]) -> list[int]:
    """Numbers of the configurations in a matrix of level numbers, in standard order."""
    weights = [math.prod(sizes[:i]) for i in range(len(sizes))]
    return sorted(int(row) for row in matrix.astype(int) @ weights)


def _two_level_rows(factors: int, generators: Sequence[Generator]) -> list[int]:
    """Rows of `fracfact` with its generators."""
    words = _words(factors, generators)
    # pydoe refuses two factors of one word, such as C=AB and D=-AB.
    distinct = list(dict.fromkeys(word for _, word in words))
    matrix = _pydoe().fracfact(" ".join(distinct))
    columns = [distinct.index(word) for _, word in words]
    return _rows(matrix[:, columns] * [sign for sign, _ in words] > 0, (2,) * factors)


def _words(factors: int, generators: Sequence[Generator]) -> list[tuple[int, str]]:
    """The sign and the word of each factor in pydoe's form, the basic ones a, b, c, …"""
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


@cache
def _pydoe() -> Any:
    """Functions of pydoe, or of pyDOE2 where that is installed: both make the same rows.

    The modules are loaded from their files: importing either package imports most of SciPy.
    """
    for package, files in PYDOE.items():
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            folder = Path(spec.submodule_search_locations[0])
            modules = [_loaded(package, folder / file) for file in files]
            return types.SimpleNamespace(**{k: v for m in modules for k, v in vars(m).items()})
    raise DoeError("designs are made by the package pydoe; install it with pip install pydoe")


def _loaded(package: str, path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"{package}.{path.stem}", path)
    if spec is None or spec.loader is None:
        raise DoeError(f"cannot load {path}; install pydoe again")
    module = importlib.util.module_from_spec(spec)
    absent = "imp" not in sys.modules  # pyDOE2 imports it, gone in Python 3.12, and never uses it
    if absent:
        sys.modules["imp"] = types.ModuleType("imp")
    try:
        spec.loader.exec_module(module)
    finally:
        if absent:
            del sys.modules["imp"]
    return module
