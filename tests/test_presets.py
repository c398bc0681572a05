"""What the studies of `pit_model` ask for is what its runs return."""

import pytest

from doe.study.presets import preset_study
from pit_model.config import Config, preset_names
from pit_model.metrics import metric_names


@pytest.mark.parametrize("preset", preset_names())
def test_a_study_asks_for_the_metrics_that_its_runs_return(preset):
    study = preset_study(preset)
    config = Config.from_settings(study.settings, dict.fromkeys(study.keys, True))
    asked = {*study.responses.metrics, *study.responses.further}
    assert asked == set(metric_names(config.scales))


@pytest.mark.parametrize("preset", preset_names())
def test_a_preset_of_the_trainer_is_the_study_of_that_name(preset):
    study = preset_study(preset)
    assert Config.from_settings(study.settings) == Config.from_settings({"preset": preset})


def test_the_tables_are_the_papers():
    paper = preset_study("paper")
    errors = {f"{method}{scale}" for method in "BHP" for scale in (112, 224)}
    assert paper.responses.averages["enc_avg"] == ("B56", "H56", "P56")
    assert set(paper.responses.averages["dec_avg"]) == errors
    assert [set(group.responses) for group in paper.report.groups] == [
        {"B56", "H56", "P56"},
        errors,
    ]
    assert paper.seeds == (100, 101, 102, 103)
