import copy

import pytest
import torch

from pit_model import init
from pit_model.config import Config
from pit_model.dataset import make_split, training_batches
from pit_model.losses import window_truth
from pit_model.network import STRIDES

TINY = {
    "image_size": 16,
    "frames": 5,
    "train_sequences": 2,
    "val_sequences": 1,
    "test_sequences": 1,
}


def test_heatmaps_start_alive_unless_the_first_weights_are_pytorchs():
    """Both draw the same random numbers; the first brightens, each frame its own heatmap."""
    alive = init.draw(Config.from_settings({**TINY, "first_weights": "alive"}), 0)
    plain = init.draw(Config.from_settings({**TINY, "first_weights": "pytorch"}), 0)
    assert torch.equal(alive.center.weight, plain.center.weight.abs())
    assert (plain.center.weight < 0).any()
    identity = torch.eye(21)[..., None, None]
    assert torch.equal(alive.fuse.weight, plain.fuse.weight + identity)
    for (name, a), b in zip(alive.named_parameters(), plain.parameters(), strict=True):
        assert name in ("center.weight", "fuse.weight") or torch.equal(a, b)


def test_decoders_that_start_dark_hold_every_pixel_near_zero():
    """By two biases; their heatmaps are then below a hundredth on any frame."""
    alive = init.draw(Config.from_settings({**TINY, "first_weights": "alive"}), 0)
    dark = init.draw(Config.from_settings({**TINY, "first_weights": "dark"}), 0)
    others = ("encoder.conv1.conv.weight", "decoder.center2.bias", "decoder.center4.bias")
    for (name, a), b in zip(alive.named_parameters(), dark.parameters(), strict=True):
        assert torch.equal(a, b) == (name not in others), name
    frames = torch.rand(2, 5, 16, 16)
    brightest = [
        [torch.sigmoid(maps).max().item() for maps in network(frames).heatmaps[1:]]
        for network in (alive, dark)
    ]
    assert min(brightest[0]) > 0.3
    assert max(brightest[1]) < 0.01


def test_a_ball_in_noise_stands_out_of_heatmaps_that_start_dark():
    """In standard deviations of its heatmap, averaged over the balls of noisy videos."""
    contrast = {}
    for first_weights in ("dark", "alive"):
        settings = {**TINY, "image_size": 56, "first_weights": first_weights}
        config = Config.from_settings(settings, {"F": True})
        batch = next(training_batches(make_split(config, "train"), 5, 0))
        logits = before_the_floor(init.draw(config, 0), batch.frames)  # (N, 3, 14, 14)
        at = (window_truth(batch).position / STRIDES[0]).round().long().clamp(0, 13)
        n, t = torch.meshgrid(*map(torch.arange, logits.shape[:2]), indexing="ij")
        ball = logits[n, t, at[..., 1], at[..., 0]]
        contrast[first_weights] = ((ball - logits.mean()) / logits.std()).mean().item()
    assert contrast["dark"] > 2 > contrast["alive"]


@pytest.mark.parametrize("brightness", [1.0, 50.0])
@pytest.mark.parametrize("first_weights", ["alive", "dark"])
def test_first_heatmaps_are_set_by_a_shift_of_their_biases(first_weights, brightness):
    """A shift of three biases by what the frames show, and no trace in the running statistics."""
    config = Config.from_settings({**TINY, "first_weights": first_weights})
    network = init.draw(config, 0)
    before = copy.deepcopy(network)
    frames = brightness * torch.rand(2, 5, 16, 16)
    init.set_first_heatmaps(network, frames, config)
    for name, a in network.state_dict().items():
        b = before.state_dict()[name]
        if name == "fuse.bias":
            assert (a[:3] != b[:3]).all()
            assert torch.equal(a[3:], b[3:])
        else:
            assert torch.equal(a, b), name


def test_heatmaps_start_a_little_above_their_floor():
    config = Config.from_settings({**TINY, "first_weights": "alive"})
    network = init.draw(config, 0)
    frames = torch.rand(2, 5, 16, 16)
    init.set_first_heatmaps(network, frames, config)
    means = before_the_floor(network, frames).mean((0, 2, 3))
    assert means == pytest.approx([3.0, 3.0, 3.0], abs=1e-5)


def test_heatmaps_that_start_dark_have_as_many_bright_pixels_as_their_targets():
    """A Gaussian with σ = 2 is above a half within 2.35 pixels: 17.4 of 256, in six windows."""
    config = Config.from_settings({**TINY, "image_size": 64, "target_sigma": 2.0})
    network = init.draw(config, 0)
    frames = torch.rand(2, 5, 64, 64, generator=torch.Generator().manual_seed(0))
    init.set_first_heatmaps(network, frames, config)
    maps = before_the_floor(network, frames)
    assert (maps > 0).sum((0, 2, 3)).tolist() == [105, 105, 105]
    # none on the floor itself, where layouts would round to either side of it
    assert (maps.abs().amin((0, 2, 3)) > 1e-6).all()


def test_heatmaps_of_few_pixels_start_above_their_floor_but_one():
    config = Config.from_settings({**TINY, "target_sigma": 5.0})
    network = init.draw(config, 0)
    frames = torch.rand(2, 5, 16, 16)
    init.set_first_heatmaps(network, frames, config)
    assert (before_the_floor(network, frames) < 0).sum((0, 2, 3)).tolist() == [1, 1, 1]


def before_the_floor(network, frames):
    """Heatmaps of the encoder as they come into the ReLU of LatentFuse."""
    outputs = []
    hook = network.fuse.register_forward_hook(lambda _, __, out: outputs.append(out[:, :3].clone()))
    with torch.no_grad():
        network(frames)
    hook.remove()
    return outputs[0]
