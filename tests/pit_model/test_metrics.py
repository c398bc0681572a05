from math import inf, nan

import pytest
import torch

from pit_model.config import Config
from pit_model.dataset import Batch, evaluation_batches, make_split, windows
from pit_model.metrics import (
    NOT_ASKED,
    Outputs,
    add,
    choose_epochs,
    epochs_to_keep,
    metric_names,
    no_totals,
    read,
)


def constant(batch, place, velocity=0.0, bounce=0.0):
    n = len(windows(batch.bounce))
    p = torch.full((n, 3, 2), float(place))
    return Outputs(NOT_ASKED, p, p, p, torch.full((n, 3, 2), velocity), torch.full((n, 3), bounce))


def test_names_are_by_heatmap_size():
    assert metric_names((56, 112, 224)) == (
        *("B56", "B112", "B224", "H56", "H112", "H224", "P56", "P112", "P224"),
        *("V56", "V112", "V224", "bounce56", "bounce112", "bounce224"),
    )


def test_a_tracker_stuck_at_the_centre_scores_as_in_the_paper():
    """The paper's collapsed scales: about 57 px, and 8.17 px/frame."""
    config = Config()
    totals = no_totals()
    split = make_split(config, "test")
    for first in range(0, len(split), 10):
        some = slice(first, first + 10)
        batch = Batch(
            torch.empty(0), split.position[some], split.velocity[some], split.bounce[some]
        )
        totals = add(totals, [constant(batch, 112)] * 3, batch)
    values = read(totals, config.scales)
    assert totals.windows == 100 * 38
    assert 56 <= values["B56"] <= 57
    assert 8.0 <= values["V224"] <= 8.2
    assert 0.05 < values["bounce112"] < 0.1


def test_errors_by_hand_at_each_scale():
    position = torch.zeros(1, 4, 2)
    velocity = torch.ones(1, 4, 2)
    bounce = torch.tensor([[0.0, 1.0, 0.0, 0.0]])
    batch = Batch(torch.empty(0), position, velocity, bounce)
    zero = torch.zeros(2, 3, 2)
    soft = zero.clone()
    soft[0, 0] = torch.tensor([3.0, -1.0])  # 4 px over 2 windows × 3 frames × 2 coordinates
    track = Outputs(NOT_ASKED, soft, zero + 1, zero - 2, zero + 1.5, torch.zeros(2, 3))
    values = read(add(no_totals(), [track] * 3, batch), (8, 16, 32))
    assert values["B8"] == pytest.approx(4 / 12)
    assert values["H16"] == pytest.approx(1.0)
    assert values["P32"] == pytest.approx(2.0)
    assert values["V8"] == pytest.approx(0.5)
    assert values["bounce32"] == pytest.approx(2 / 6)  # frame 1 stands in both windows


def test_the_split_into_batches_does_not_matter():
    config = Config.from_settings({"preset": "demo", "val_sequences": 5})
    values = []
    for videos in (1, 2, 5):
        one = Config.from_settings({"preset": "demo", "val_sequences": 5, "eval_videos": videos})
        totals = no_totals()
        for batch in evaluation_batches(make_split(one, "val")):
            totals = add(totals, [constant(batch, 16, 0.5, 1.0)] * 3, batch)
        values.append(read(totals, config.scales))
    assert values[1] == pytest.approx(values[0])
    assert values[2] == pytest.approx(values[0])


def test_a_prediction_that_is_not_finite_is_not_hidden():
    batch = Batch(torch.empty(0), torch.zeros(1, 3, 2), torch.zeros(1, 3, 2), torch.zeros(1, 3))
    values = read(add(no_totals(), [constant(batch, float("nan"))] * 3, batch), (8, 16, 32))
    assert values["B8"] != values["B8"]
    assert values["V8"] == 0.0


def test_each_metric_chooses_its_own_smallest_value():
    history = [{"B": 3.0, "V": 1.0}, {"B": 1.0, "V": 2.0}, {"B": 2.0, "V": 0.5}]
    assert choose_epochs(history) == {"B": 1, "V": 2}
    assert epochs_to_keep(choose_epochs(history)) == (1, 2)


def test_ties_go_to_the_earliest_epoch():
    assert choose_epochs([{"B": 2.0}, {"B": 1.0}, {"B": 1.0}]) == {"B": 1}


def test_a_value_that_is_not_finite_is_never_chosen():
    assert choose_epochs([{"B": nan}, {"B": -inf}, {"B": 5.0}, {"B": inf}]) == {"B": 2}
    assert choose_epochs([{"B": nan, "V": 1.0}]) == {"V": 0}
    assert choose_epochs([]) == {}
