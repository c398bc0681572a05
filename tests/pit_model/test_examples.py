"""The studies under examples/ that train PIT ask for runs that can be made."""

import tomllib
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("name", STUDIES)
@pytest.mark.parametrize("level", ["low", "high"])
def test_both_levels_of_every_factor_are_settings(name, level):
    study = STUDIES[name]
    levels = {key: factor[level] for key, factor in study["factors"].items()}
    config = Config.from_settings(study["settings"], levels)
    asked = {*study["responses"]["metrics"], *study["responses"]["further"]}
    assert asked == set(metric_names(config.scales))
