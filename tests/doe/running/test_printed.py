"""Numbers that a command prints: read as they stand, or not at all."""

import math

import pytest

from doe.errors import DoeError
from doe.running.metrics import Output, read_metrics
from doe.study.values import MetricsSection


def reading(lines, name="reward", key=None):
    """What is recorded of a metric that a command prints."""
    section = MetricsSection(file="stdout", keys={name: key} if key else {})
    output = Output(section, [name])
    for line in lines.splitlines():
        output.add_line(line)
    return read_metrics(section, [name], (), None, {}, output)[name]


@pytest.mark.parametrize(
    ("line", "number"),
    [
        ("reward: -1203.5", -1203.5),
        ("reward:-1203.5", -1203.5),
        ("reward = -88.25", -88.25),
        ("reward \u22125", -5.0),
        ("reward - 5", 5.0),
        ("reward -> -5", -5.0),
        ("reward .5", 0.5),
        ("reward ..... .5", 0.5),
        ("reward +1E+3", 1000.0),
        ("reward: 1.2e-3;", 0.0012),
        ("global_step=12, reward=[371.]", 371.0),
        ("reward: np.float64(-0.5)", -0.5),
        ("reward: tensor([0.25], device='cpu')", 0.25),
        ("reward 0.25(0.30)", 0.25),
        ("Reward: 9812/10000 (98%)", 9812.0),
        ("reward 0.91%", 0.91),
        ("{'reward': -0.69, 'epoch': 1.0}", -0.69),
        ("reward: 0.5 - loss: 0.1", 0.5),
        ("reward 1 reward 2", 2.0),
        ("reward 2.", 2.0),
        ("\x1b[32mreward\x1b[0m: \x1b[1m7\x1b[0m", 7.0),
        ("reward inf", math.inf),
        ("reward=-Infinity,", -math.inf),
    ],
)
def test_a_number_behind_its_name(line, number):
    assert reading(line) == number


@pytest.mark.parametrize("word", ["nan", "NaN", "-nan", "-nan(ind)"])
def test_a_nan_in_the_last_line_is_a_divergence(word):
    assert math.isnan(reading(f"loss 2.3\nloss {word}", "loss"))


@pytest.mark.parametrize(
    "line",
    [
        "val_reward 1",
        "rewards 1",
        "reward",
        "reward of step 3",
        "reward-5",
        "reward: - 5",
        "reward none",
        "reward@5",
        "reward[5]",
        "reward #5",
        "reward 3: none",
        "reward [3] = none",
    ],
)
def test_what_may_be_another_number_is_not_recorded(line):
    with pytest.raises(DoeError, match="has no 'reward'"):
        reading(line)


@pytest.mark.parametrize(
    "word", ["1,203.5", "1.5M", "1_000", "1.2.3", "12:30", "5e", "-1,203.5", "2026-11-18"]
)
def test_a_later_value_that_cannot_be_read_leaves_no_earlier_one(word):
    """999.5 would be recorded for a run that ended at 1,203.5."""
    with pytest.raises(DoeError, match=f"'reward' is .{word}.; expected a number"):
        reading(f"reward 999.5\nreward {word}")


@pytest.mark.parametrize(
    "line", ["reward@1: 0.5", "reward[1]: 0.5", "reward 1: 0.5", "reward (1): 0.5"]
)
def test_an_index_behind_the_name_is_not_its_number(line):
    assert reading(f"reward 7\n{line}") == 7.0


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("test_loss", "Test set: Average loss: 0.5, test loss: 3"),
        ("test_loss", "test/loss=3"),
        ("test_loss", "Test-Loss 3"),
        ("eval_logloss", "[9]\ttrain-logloss:0.1\teval-logloss:3"),
        ("val_loss", "step 250: train loss 1.96, val loss 3"),
        ("accuracy", "9/9 - accuracy: 3 - val_accuracy: 0.5"),
    ],
)
def test_names_are_found_as_programs_write_them(name, line):
    assert reading(line, name) == 3.0


@pytest.mark.parametrize(
    ("key", "line", "number"),
    [
        ("Average reward", "average reward: -4.", -4.0),
        (r"reward: (\S+)", "reward: -4;", -4.0),
        (r"reward: (\S+)", "reward: [-4.]", -4.0),
        (r"(?:a|b) (\S+)", "b -4%", -4.0),
    ],
)
def test_a_key_is_what_precedes_the_number_or_has_it_as_its_group(key, line, number):
    assert reading(line, key=key) == number
