"""The studies under examples/ that train PIT ask for runs that can be made."""

import tomllib
from pathlib import Path

import pytest

from pit_model.backend import NAMED
from pit_model.config import Config
from pit_model.metrics import metric_names

EXAMPLES = Path(__file__).parents[2] / "examples"
STUDIES = {
    str(path.relative_to(EXAMPLES)): study
    for path in sorted(EXAMPLES.glob("*/*.toml"))
    if (study := tomllib.loads(path.read_text()))["backend"] == "pit_model.backend:run"
}


def test_there_are_some():
    assert "readings/study.toml" in STUDIES


def levels_of(factor):
    """The levels of a factor, each as the settings that it stands for."""
    key, described = factor
    levels = described.get("levels", [described.get("low"), described.get("high")])
    if isinstance(levels, dict):  # a level with a name is several settings
        assert key == NAMED
        return list(levels.values())
    return [{key: level} for level in levels]


@pytest.mark.parametrize("name", STUDIES)
def test_every_level_of_every_factor_is_a_setting(name):
    study = STUDIES[name]
    choices = [levels_of(factor) for factor in study["factors"].items()]
    for number in range(max(map(len, choices))):
        levels = {}
        for choice in choices:
            levels |= choice[min(number, len(choice) - 1)]
        config = Config.from_settings(study["settings"], levels)
        asked = {*study["responses"]["metrics"], *study["responses"]["further"]}
        assert asked == set(metric_names(config.scales))
