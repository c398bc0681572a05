import pytest
import torch

from pit_model.baseline import centroid, evaluate, temporal_median, three_frame_difference
from pit_model.config import Config
from pit_model.dataset import draw, noise_image, windows


def video(places, size=32, key=None):
    ground = torch.zeros(size, size) if key is None else noise_image(key, size, 1.0)
    return draw(ground.expand(len(places), -1, -1), torch.tensor(places), 2.0)[None]


@pytest.mark.parametrize("key", [None, 3])
def test_a_moving_ball_on_a_still_background_is_found(key):
    places = [[5.0 + 5 * t, 20.0 - 3 * t] for t in range(5)]
    true = windows(torch.tensor([places]))
    for method in (three_frame_difference, temporal_median):
        found = method(video(places, key=key))
        assert found.shape == true.shape
        assert (found - true).abs().max() < (1e-6 if key is None else 1.0)


def test_a_ball_that_never_moves_leaves_no_trace():
    found = three_frame_difference(video([[8.0, 8.0]] * 3))
    assert torch.equal(found, torch.full((1, 3, 2), 16.0))


def test_a_frame_without_difference_takes_the_mean_of_the_others():
    frames = video([[8.0, 8.0], [20.0, 20.0], [8.0, 8.0]])
    frames[0, 1] = 0.0
    found = three_frame_difference(frames)
    assert torch.equal(found, torch.full((1, 3, 2), 8.0))


def test_the_centroid_is_x_then_y():
    mask = torch.zeros(1, 4, 4)
    mask[0, 1, 2:] = 1
    place, seen = centroid(mask)
    assert place.tolist() == [[2.5, 1.0]]
    assert seen.item()


@pytest.mark.slow
def test_errors_at_224_pixels_are_about_a_tenth_of_a_pixel():
    few = {"preset": "paper", "test_sequences": 10}
    clean = evaluate(Config.from_settings(few, {"F": False}))
    noisy = evaluate(Config.from_settings(few, {"F": True}))
    fresh = evaluate(Config.from_settings({**few, "noise": "per_frame"}, {"F": True}))
    for method in clean:
        assert 0.05 < clean[method]["B224"] < 0.12
        assert 0.10 < noisy[method]["B224"] < 0.18
        assert fresh[method]["B224"] > 20
