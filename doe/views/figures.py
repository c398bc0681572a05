"""Charts as files for a paper, drawn on all cores, and only those that changed."""

from __future__ import annotations

import contextlib
import hashlib
import json
import multiprocessing
import os
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

from doe.errors import DoeError
from doe.store.files import write_atomic

Spec = dict[str, Any]
KINDS = ("svg", "pdf", "png")
DRAWN = "figures.json"
"""Name of each figure and the digest of what it was drawn from."""
PER_PROCESS = 4
"""Figures for which it is worth starting a process."""


def save_figures(charts: Mapping[str, Spec], folder: Path) -> tuple[list[Path], list[Path]]:
    """Write filled charts as SVG, PDF and PNG; return their files, and those drawn anew."""
    folder.mkdir(parents=True, exist_ok=True)
    digests = {
        name: hashlib.sha256(
            f"{version('vl-convert-python')}{json.dumps(chart, sort_keys=True)}".encode()
        ).hexdigest()[:16]
        for name, chart in charts.items()
    }
    old = _drawn(folder)
    changed = [
        name
        for name in charts
        if old.get(name) != digests[name] or not all(path.exists() for path in files(folder / name))
    ]
    processes = min(len(os.sched_getaffinity(0)), len(changed) // PER_PROCESS)
    if processes > 1:
        spawn = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(processes, mp_context=spawn) as pool:
            stems = [folder / name for name in changed]
            list(pool.map(save, [charts[name] for name in changed], stems))
    else:
        for name in changed:
            save(charts[name], folder / name)
    write_atomic(folder / DRAWN, json.dumps(old | digests, indent=1, sort_keys=True) + "\n")
    return _files(folder, charts), _files(folder, changed)


def _files(folder: Path, names: Iterable[str]) -> list[Path]:
    return [path for name in names for path in files(folder / name)]


def _drawn(folder: Path) -> dict[str, str]:
    try:
        digests: dict[str, str] = json.loads((folder / DRAWN).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return digests


def files(stem: Path) -> tuple[Path, ...]:
    """Return the files of a figure."""
    return tuple(stem.with_name(f"{stem.name}.{kind}") for kind in KINDS)


def save(chart: Spec, stem: Path) -> None:
    """Write a filled chart as SVG, PDF and PNG (300 dots per inch at 360 px = 3.3 in)."""
    import vl_convert

    drawing = vl_convert.vegalite_to_svg(chart)
    svg, pdf, png = files(stem)
    svg.write_text(drawing, encoding="utf-8")
    pdf.write_bytes(vl_convert.svg_to_pdf(drawing))
    png.write_bytes(vl_convert.svg_to_png(drawing, scale=2.75))


def cached(name: str, make: Callable[[], str]) -> str:
    """Return the text of that name from the cache, or made anew; the name says all that it depends
    on.
    """
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    path = Path(home) / "pit-doe" / name
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")
    text = make()
    with contextlib.suppress(DoeError):  # a home that one may not write to
        write_atomic(path, text)
    return text
