"""The plain implementation that speed is measured against is the same model."""

import pytest
import torch

from benchmarks._plain import PlainNetwork, plain_loss, plain_read_out
from benchmarks.train import frame_macs, window_macs
from pit_model.config import Config, Units
from pit_model.dataset import Chunks, make_split
from pit_model.losses import total_loss, window_truth
from pit_model.network import Network
from pit_model.predict import METRICS, predict, wanted_in_training


def both():
    config = Config.from_settings({"image_size": 32, "frames": 3, "train_sequences": 4})
    torch.manual_seed(1)
    network, plain = Network(config), PlainNetwork()
    for mine, theirs in zip(plain.parameters(), network.parameters(), strict=True):
        mine.data.copy_(theirs.data)
    return config, network, plain


def test_the_same_loss_and_gradient():
    config, network, plain = both()
    batch = make_split(config, "train").batch(Chunks((0, 1, 2, 3), (0,) * 4, 3))
    truth = window_truth(batch)
    said = predict(network, batch.frames, config, wanted_in_training(config), True)
    mine = total_loss(said, truth, config, 3).total
    theirs = plain_loss(plain, truth, config, 3)
    assert mine.item() == pytest.approx(theirs.item(), rel=1e-4)
    mine.backward()
    theirs.backward()
    for a, b in zip(plain.parameters(), network.parameters(), strict=True):
        assert (a.grad - b.grad).norm() <= 1e-2 * b.grad.norm() + 1e-5


def test_the_same_outputs():
    config, network, plain = both()
    batch = make_split(config, "train").batch(Chunks((0, 1), (0, 0), 3))
    with torch.no_grad():
        said = predict(network.eval(), batch.frames, config, METRICS)
        theirs = plain_read_out(plain.eval(), batch.frames, Units.of(config))
    mine = [value for scale in said.scales for value in list(vars(scale).values())[1:]]
    for a, b in zip(mine, theirs, strict=True):
        assert torch.allclose(a, b.float(), atol=1e-2)


def test_operations_are_counted_as_the_network_performs_them():
    network = Network(Config.from_settings({"image_size": 32}))
    counts = {"frame": 0, "window": 0}

    def count(module, inputs, output, key):
        taps = module.weight[0].numel() if isinstance(module, torch.nn.Conv2d) else None
        if taps is None:  # a transposed convolution with stride 2 has one tap for each output pixel
            taps = module.weight.shape[0]
        counts[key] += taps * output.numel() // len(output)

    for name, module in network.named_modules():
        if isinstance(module, torch.nn.Conv2d | torch.nn.ConvTranspose2d):
            key = "frame" if name.split(".")[0] in ("encoder", "center", "residual") else "window"
            module.register_forward_hook(lambda m, i, o, key=key: count(m, i, o, key))
    network(torch.rand(1, 3, 32, 32))
    assert counts == {"frame": frame_macs(32), "window": window_macs(32)}
    assert frame_macs(224) == pytest.approx(2.1e9, rel=0.02)
