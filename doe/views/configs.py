"""Configurations as tables show them: levels under a header of names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from doe.study.levels import level_text
from doe.study.values import Level


def config_title(keys: Sequence[str], title: str = "Configuration") -> str:
    """What stands above configurations: the names of the factors where their levels stand below."""
    return title if all(len(key) == 1 for key in keys) else " · ".join(keys)


def config_text(config: str, levels: Mapping[str, Level]) -> str:
    """A configuration as it stands below `config_title`: short, and no two alike."""
    if "=" not in config:
        return config
    return " · ".join(level_text(level) for level in levels.values())
