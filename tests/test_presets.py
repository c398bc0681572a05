"""The two packages do not know each other; what both say of a preset must agree."""

import pytest

from doe.builtin import PRESETS, pit_study
from pit_model.config import PRESETS as SETTINGS
from pit_model.config import Config
from pit_model.metrics import metric_names


def test_both_sides_know_the_same_presets():
    assert set(PRESETS) == set(SETTINGS)


@pytest.mark.parametrize("preset", PRESETS)
def test_a_study_asks_for_the_metrics_that_its_runs_return(preset):
    study = pit_study(preset)
    config = Config.from_settings(study.settings, dict.fromkeys(study.keys, True))
    assert config.image_size == PRESETS[preset].image_size
    asked = {*study.responses.metrics, *study.responses.further}
    assert asked == set(metric_names(config.scales))
