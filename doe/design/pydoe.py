"""The package that computes design matrices: pydoe, or pyDOE2."""

from __future__ import annotations

import importlib.util
import sys
import types
from functools import cache
from pathlib import Path
from typing import Any

from doe.errors import DoeError

PYDOE = {
    "pydoe": ("factorial/factorial.py", "factorial/gsd.py", "factorial/plackett_burman.py"),
    "pyDOE2": ("doe_factorial.py", "doe_gsd.py", "doe_plackett_burman.py"),
}
"""Supported packages and their files; pydoe is the maintained one."""


@cache
def pydoe() -> Any:
    """Load the functions of pydoe, or of pyDOE2 if that is installed: both give the same rows.

    The modules are loaded from their files: importing either package imports most of SciPy.
    """
    for package, files in PYDOE.items():
        spec = importlib.util.find_spec(package)
        if spec is not None and spec.submodule_search_locations:
            folder = Path(spec.submodule_search_locations[0])
            modules = [_loaded(package, folder / file) for file in files]
            return types.SimpleNamespace(**{k: v for m in modules for k, v in vars(m).items()})
    raise DoeError("designs need the package pydoe; install it with pip install pydoe")


def _loaded(package: str, path: Path) -> types.ModuleType:
    spec = importlib.util.spec_from_file_location(f"{package}.{path.stem}", path)
    if spec is None or spec.loader is None:
        raise DoeError(f"cannot load {path}; install pydoe again")
    module = importlib.util.module_from_spec(spec)
    absent = "imp" not in sys.modules  # pyDOE2 imports it, gone in Python 3.12, without using it
    if absent:
        sys.modules["imp"] = types.ModuleType("imp")
    try:
        spec.loader.exec_module(module)
    finally:
        if absent:
            del sys.modules["imp"]
    return module
