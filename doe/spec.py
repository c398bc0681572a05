"""The TOML form of a study: read and check, or write."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from doe.check import checked_study, read_toml
from doe.errors import DoeError
from doe.study import Augment, Factor, Level, Responses, Study

__all__ = [
    "Augment",
    "Factor",
    "Level",
    "Responses",
    "Study",
    "dump_study",
    "load_study",
    "parse_study",
]


def load_study(path: Path) -> Study:
    """Read and check a study file.

    Raises
    ------
    DoeError
        If the file cannot be read or holds no valid study; every mistake is listed.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise DoeError(f"cannot read the study file {path}: {error.strerror}") from error
    return parse_study(data, source=str(path))


def parse_study(data: bytes, source: str = "the study") -> Study:
    """Turn the bytes of a TOML file into a checked Study, or raise SpecError."""
    return checked_study(read_toml(data, source), source)


def dump_study(study: Study) -> str:
    """Write a study as TOML, every setting explicit, always the same bytes for the same study."""
    table: dict[str, Any] = {
        field: _plain(getattr(study, field))
        for field in study.__struct_fields__
        if field not in ("factors", "responses", "augment", "settings", "slurm")
    }
    table["settings"] = study.settings
    table["factors"] = {
        factor.key: {
            "name": factor.name,
            "description": factor.description,
            "low": factor.low,
            "high": factor.high,
        }
        for factor in study.factors
    }
    table["responses"] = _plain(msgspec.structs.asdict(study.responses))
    if study.slurm:
        table["slurm"] = study.slurm
    if study.augment:
        table["augment"] = [_plain(msgspec.structs.asdict(step)) for step in study.augment]
    return msgspec.toml.encode(table).decode()


def _plain(value: Any) -> Any:
    """Turn tuples into lists, the only sequence that TOML writes, all the way down."""
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    return value
