"""The matrix of a two-level design, as pyDOE2 makes it."""

from __future__ import annotations

import sys
import types
from collections.abc import Sequence
from typing import Any

from doe.terms import Generator

LETTERS = "abcdefghijklmnop"
"""Names of the basic factors in pyDOE2's generators."""


def standard_rows(factors: int, generators: Sequence[Generator]) -> list[int]:
    """Rows of the full factorial (`ff2n`) or of a fraction (`fracfact`) that are run.

    A row is the number of a configuration in the standard order of the full factorial: bit i is 1
    where factor i is high.
    """
    pydoe = _pydoe()
    matrix = pydoe.fracfact(_words(factors, generators)) if generators else pydoe.ff2n(factors)
    weights = [1 << i for i in range(factors)]
    return sorted(((matrix > 0) @ weights).tolist())


def _words(factors: int, generators: Sequence[Generator]) -> str:
    """Generators in pyDOE2's form: a word per factor, the basic ones a, b, c, …"""
    generated = {generator.factor: generator for generator in generators}
    masks = [1 << i for i in range(factors)]
    basic = [mask for mask in masks if mask not in generated]
    letters = dict(zip(basic, LETTERS, strict=False))
    words = []
    for mask in masks:
        if generator := generated.get(mask):
            word = "".join(letters[m] for m in basic if generator.interaction & m)
            words.append(f"-{word}" if generator.sign < 0 else word)
        else:
            words.append(letters[mask])
    return " ".join(words)


def _pydoe() -> Any:
    """Import pyDOE2, which asks for the module `imp` (gone in Python 3.12) and never uses it."""
    absent = "imp" not in sys.modules
    if absent:
        sys.modules["imp"] = types.ModuleType("imp")
    try:
        import pyDOE2
    finally:
        if absent:
            del sys.modules["imp"]
    return pyDOE2
