import numpy as np
import pytest
import torch

from pit_model.camera import draw_film
from pit_model.config import Config
from pit_model.dataset import Chunks, make_split
from pit_model.losses import total_loss, window_truth
from pit_model.network import Network
from pit_model.predict import predict, wanted_in_training
from pit_model.regime import levels, network_input, resize
from pit_model.rundir import SHIPPED, read_trained, read_weights, write_run
from pit_model.trainer import train

CAMERA = {"preset": "camera", "train_sequences": 12, "val_sequences": 4, "test_sequences": 4}


def test_a_film_is_decided_by_its_stream():
    one, flight = draw_film(np.random.default_rng([1, 2]), 64, 12, True)
    same, again = draw_film(np.random.default_rng([1, 2]), 64, 12, True)
    other, _ = draw_film(np.random.default_rng([1, 3]), 64, 12, True)
    assert torch.equal(one, same)
    np.testing.assert_array_equal(flight.position, again.position)
    assert not torch.equal(one, other)
    assert 0 <= one.min() < one.max() <= 1


def test_most_balls_are_brighter_than_what_is_around_them():
    """What is labelled is there: the mean contrast of balls is far above that of other places."""
    rng = np.random.default_rng(0)
    contrasts, elsewhere = [], []
    for i in range(40):
        frames, flight = draw_film(np.random.default_rng([5, i]), 64, 12, False)
        assert np.isfinite(flight.position).all()
        for frame, place in zip(frames, flight.position, strict=True):
            contrasts.append(contrast(frame, place))
            elsewhere.append(contrast(frame, rng.uniform(8, 56, 2)))
    assert np.mean(contrasts) > np.mean(elsewhere) + 0.25


def contrast(frame, place):
    x, y = place.round().astype(int).clip(1, 62)
    return float(frame[y - 1 : y + 2, x - 1 : x + 2].mean() - frame.mean())


def test_balls_leave_the_picture_in_training_only():
    config = Config.from_settings(CAMERA)
    train, val = make_split(config, "train"), make_split(config, "val")
    assert train.position.isnan().any()
    assert not val.position.isnan().any()
    seen = train.position[~train.position.isnan()]
    assert seen.min() >= -0.5
    assert seen.max() <= 63.5
    batch = train.batch(Chunks((0, 3), (0, 2), 8))
    assert batch.frames.shape == (2, 8, 64, 64)
    np.testing.assert_array_equal(batch.frames[1], train.films[3, 2:10].float() / 255)


def test_frames_without_a_ball_train_without_harm():
    config = Config.from_settings(CAMERA)
    split = make_split(config, "train")
    gone = split.position.isnan().any(-1).sum(1)
    batch = split.batch(Chunks((int(gone.argmax()), int(gone.argmin())), (0, 0), 12))
    assert batch.position.isnan().any()
    torch.manual_seed(0)
    network = Network(config)
    said = predict(network, batch.frames, config, wanted_in_training(config), True)
    losses = total_loss(said, window_truth(batch), config, 3)
    losses.total.backward()
    assert torch.isfinite(losses.total)
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)


@pytest.mark.parametrize("subtract", [True, False])
def test_dark_balls_become_bright(subtract):
    frames = torch.full((9, 40, 40), 0.7)
    for t, frame in enumerate(frames):
        frame[10:14, 4 * t : 4 * t + 4] = 0.2
    seen = network_input(frames, True, levels(frames, True, subtract))
    assert seen.max() == pytest.approx(1)
    assert seen[4, 11, 17] > 0.9
    assert seen[4, 30, 30] == pytest.approx(0)


def test_a_smaller_copy_keeps_places():
    """A spot at the clip's (x + 1/2) W/w − 1/2 is at x in the copy."""
    frames = torch.zeros(1, 120, 160)
    frames[0, 57:63, 97:103] = 1  # centre at (99.5, 59.5)
    small = resize(frames, 80)[0]
    assert small.shape == (64, 80)  # multiples of 8
    mass = small.sum()
    x = (small.sum(0) * torch.arange(80)).sum() / mass
    y = (small.sum(1) * torch.arange(64)).sum() / mass
    assert (x + 0.5) * 160 / 80 - 0.5 == pytest.approx(99.5, abs=0.02)
    assert (y + 0.5) * 120 / 64 - 0.5 == pytest.approx(59.5, abs=0.05)


def test_the_weights_that_come_along_are_those_of_the_preset():
    """The command in docs/track.md: the preset and configuration A1B1C1D0E1F0."""
    config, weights = read_weights(SHIPPED)
    assert config == Config.from_settings({"preset": "camera"})
    assert sum(p.numel() for p in Network(config).parameters()) == 122_323
    assert set(weights) == set(Network(config).state_dict())


def test_training_on_films_gives_the_same_weights_again(tmp_path):
    config = Config.from_settings({**CAMERA, "epochs": 1})
    runs = []
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        write_run(tmp_path / name, config, 100)
        train(config, 100, "cpu", tmp_path / name, lambda *_, **__: None)
        runs.append(read_trained(tmp_path / name).kept[0])
    one, two = runs
    assert all(torch.equal(one[name], two[name]) for name in one)
