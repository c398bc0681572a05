"""Studies that installed packages offer by name, through the entry point group `doe.studies`.

An entry's value is a package; each TOML file in it is a preset of that name:

    [project.entry-points."doe.studies"]
    your_package = "your_package.studies"

Where the studies' backend needs an extra of its package, the entry names it: "your_package.studies
[train]". Without what that extra brings, a preset says what is missing.
"""

from __future__ import annotations

import contextlib
import re
from importlib.metadata import EntryPoint, PackageNotFoundError, distribution, entry_points
from importlib.resources import files
from pathlib import Path

from doe.errors import DoeError, nearest
from doe.study.file import load_study, parse_study
from doe.study.values import STUDY_FILE, Study

GROUP = "doe.studies"


def preset_names() -> tuple[str, ...]:
    """Return the names of presets that can be planned here."""
    return tuple(sorted(_entries()))


def preset_study(name: str) -> Study:
    """Return the study that a package offers under this name.

    Raises
    ------
    DoeError
        If no package offers it, if two do, or if an extra of its package is missing.
    """
    entries = _entries()
    if name not in entries:
        raise DoeError(
            f"preset {name!r} is unknown{nearest(name, entries)}; known are "
            f"{', '.join(sorted(entries)) or 'none: no installed package offers a study'}"
        )
    if len(entries[name]) > 1:
        packages = " and ".join(entry.module for entry in entries[name])
        raise DoeError(f"preset {name!r} is offered by {packages}; plan the study's file instead")
    (entry,) = entries[name]
    _check_extras(entry, name)
    data = (files(entry.module) / f"{name}.toml").read_bytes()
    return parse_study(data, source=f"{entry.module}/{name}.toml")


def study_or_preset(study: Study | Path | None, preset: str | None = None) -> Study:
    """Return the study given as a value, a file or a preset, or the file `study.toml` here."""
    if study is not None and preset is not None:
        raise DoeError("got both a study and a preset; a preset is a complete study; choose one")
    if preset is not None:
        return preset_study(preset)
    if study is None and not Path(STUDY_FILE).exists():
        raise DoeError(
            f"no study given and no {STUDY_FILE} in this directory; write one with `doe init`, or "
            f"give a file or one of the presets: {', '.join(preset_names()) or 'none is installed'}"
        )
    if isinstance(study, Study):
        return study
    return load_study(study or Path(STUDY_FILE))


def _entries() -> dict[str, list[EntryPoint]]:
    """Map each preset to the entries whose package has its file; removed packages offer nothing."""
    offers: dict[str, list[EntryPoint]] = {}
    for entry in entry_points(group=GROUP):
        with contextlib.suppress(ImportError):
            for resource in files(entry.module).iterdir():
                if resource.name.endswith(".toml"):
                    offers.setdefault(resource.name.removesuffix(".toml"), []).append(entry)
    return offers


def _check_extras(entry: EntryPoint, name: str) -> None:
    """Refuse a study whose backend needs packages that are not installed."""
    for extra in entry.extras:
        if entry.dist is not None and (missing := _missing(entry.dist.requires or [], extra)):
            raise DoeError(
                f"preset {name!r} needs {', '.join(missing)}, from the extra {extra!r}: "
                f"pip install '{entry.dist.name}[{extra}]'"
            )


def _missing(requirements: list[str], extra: str) -> list[str]:
    """Return packages that an extra requires and that are not installed."""
    asked = re.compile(rf"""([\w.-]+).*;.*\bextra *== *['"]{re.escape(extra)}['"]""")
    names = [match[1] for line in requirements if (match := asked.match(line))]
    return [name for name in names if not _installed(name)]


def _installed(name: str) -> bool:
    try:
        distribution(name)
    except PackageNotFoundError:
        return False
    return True
