import subprocess
import sys

import pytest

from pit_model.config import (
    FACTORS,
    Config,
    Units,
    config_label,
    parse_label,
    preset_names,
    preset_settings,
)
from pit_model.errors import PitError


def test_units_at_224_pixels_are_the_papers():
    units = Units.of(Config())
    assert units.scale == pytest.approx(0.02)
    assert units.gravity == pytest.approx(0.7848)
    assert units.v_max == pytest.approx(22.2)
    assert (units.low, units.high) == (2.0, 222.0)


@pytest.mark.parametrize("size", [32, 56, 112])
def test_the_physical_domain_is_the_same_at_every_size(size):
    units = Units.of(Config(image_size=size))
    assert units.scale * size == pytest.approx(4.48)
    assert units.gravity == pytest.approx(0.7848 * size / 224)
    assert units.radius == 2.0


@pytest.mark.parametrize("preset", preset_names())
def test_a_preset_fills_in_what_is_not_given(preset):
    config = Config.from_settings({"preset": preset, "epochs": 3}, {"F": True})
    assert config.epochs == 3
    assert config.image_size == preset_settings(preset).get("image_size", 224)
    assert config.F


def test_noise_is_switched_by_factor_f():
    assert Config(F=False, noise_sigma=0.5).sigma == 0.0
    assert Config(F=True, noise_sigma=0.5).sigma == 0.5


def test_any_setting_may_be_a_factor():
    config = Config.from_settings({"preset": "demo"}, {"A": 0, "learning_rate": 1})
    assert config.A is False
    assert config.learning_rate == 1.0


def test_scales_are_a_quarter_a_half_and_all():
    assert Config().scales == (56, 112, 224)
    assert Config(image_size=56).scales == (14, 28, 56)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"image_sise": 56}, "unknown setting 'image_sise' (did you mean 'image_size'?)"),
        ({"preset": "smal"}, "unknown preset 'smal' (did you mean 'small'?)"),
        ({"image_size": 60}, "image_size = 60; expected a multiple of 8; 64 is near"),
        ({"image_size": 8}, "image_size = 8; expected at least 16"),
        ({"image_size": 56.0}, "image_size = 56.0; expected a whole number"),
        ({"frames": 2}, "frames = 2; expected at least 3"),
        ({"epochs": True}, "epochs = True; expected a whole number"),
        ({"A": 2}, "A = 2; expected true or false"),
        ({"learning_rate": "fast"}, "learning_rate = 'fast'; expected a number"),
        ({"learning_rate": 0}, "learning_rate = 0.0; expected a number above 0"),
        ({"gravity": float("nan")}, "gravity = nan; expected a finite number"),
        ({"noise": "perframe"}, "expected one of static, per_frame (did you mean 'per_frame'?)"),
        ({"decoder_losses": "with_a"}, "one of with_A, always (did you mean 'with_A'?)"),
        ({"first_weights": "dead"}, "first_weights = 'dead'; expected one of dark, alive, pytorch"),
        ({"warmup_steps": -1}, "warmup_steps = -1; expected at least 0"),
        ({"gradient_norm": -1}, "gradient_norm = -1.0; expected at least 0.0"),
        ({"restitution": 1.5}, "restitution = 1.5; expected between 0 and 1"),
        ({"image_size": 16, "radius_px": 8}, "radius_px = 8.0; expected a ball that fits"),
    ],
)
def test_a_bad_setting_gets_one_clear_message(settings, message):
    with pytest.raises(PitError) as caught:
        Config.from_settings(settings)
    assert message in str(caught.value)


def test_a_factor_that_is_also_a_setting_is_refused():
    with pytest.raises(PitError, match="both a factor"):
        Config.from_settings({"A": True}, {"A": False})


def test_labels_round_trip_over_all_64():
    for row in range(64):
        levels = {key: bool(row >> i & 1) for i, key in enumerate(FACTORS)}
        assert parse_label(config_label(levels)) == levels
    assert Config.from_settings({}, parse_label("A1B0C1D0E1F1")).label == "A1B0C1D0E1F1"


@pytest.mark.parametrize("label", ["", "A1B1", "A1B1C1D0E1F2", "B1A1C1D0E1F1", "A1B1C1D0E1F1G0"])
def test_a_bad_label_is_refused(label):
    with pytest.raises(PitError, match="expected each of A to F"):
        parse_label(label)


def test_settings_are_read_without_numpy_or_torch():
    code = "import sys, pit_model.config; sys.exit(bool({'numpy', 'torch'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
