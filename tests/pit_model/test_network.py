import copy

import pytest
import torch

from pit_model import init
from pit_model.config import Config
from pit_model.dataset import Chunks, make_split
from pit_model.losses import total_loss, window_truth
from pit_model.predict import METRICS, predict

TINY = {
    "image_size": 16,
    "frames": 5,
    "train_sequences": 2,
    "val_sequences": 1,
    "test_sequences": 1,
}


def config_of(**factors):
    return Config.from_settings(TINY, factors)


def network_of(config, seed=0):
    torch.manual_seed(seed)
    return init.draw(config, seed)


def count(module):
    return sum(p.numel() for p in module.parameters())


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("encoder.conv1", 9 * 1 * 32 + 2 * 32),
        ("encoder.res1", 2 * (9 * 32 * 32 + 2 * 32)),
        ("encoder.conv2", 9 * 32 * 64 + 2 * 64),
        ("encoder.res2", 2 * (9 * 64 * 64 + 2 * 64)),
        ("center", 64 + 1),
        ("residual", 9 * 64 * 6 + 6),
        ("fuse", 21 * 21 + 21),
        ("decoder.conv0", 9 * 21 * 24 + 24),
        ("decoder.up1", 4 * 24 * 16 + 16),
        ("decoder.center2", 19 * 3 + 3),
        ("decoder.up2", 4 * 19 * 8 + 8),
        ("decoder.center4", 14 * 3 + 3),
        ("decoder.image", 14 * 3 + 3),
    ],
)
def test_each_row_of_the_table_has_its_parameters(path, expected):
    assert count(network_of(config_of()).get_submodule(path)) == expected


def test_the_rows_are_the_whole_network():
    assert count(network_of(config_of())) == 122323


def test_each_row_of_the_table_has_its_shape():
    network = network_of(config_of())
    shapes = {}
    for name, module in network.named_modules():
        module.register_forward_hook(
            lambda _, __, out, name=name: shapes.__setitem__(name, tuple(getattr(out, "shape", ())))
        )
    network(torch.rand(2, 5, 16, 16))
    frames, windows = 2 * 5, 2 * 3
    expected = {
        "encoder.conv1": (frames, 32, 16, 16),
        "encoder.res1": (frames, 32, 16, 16),
        "encoder.conv2": (frames, 64, 8, 8),
        "encoder.res2": (frames, 64, 8, 8),
        "encoder": (frames, 64, 4, 4),
        "center": (frames, 1, 4, 4),
        "residual": (frames, 6, 4, 4),
        "fuse": (windows, 21, 4, 4),
        "decoder.conv0": (windows, 24, 4, 4),
        "decoder.up1": (windows, 16, 8, 8),
        "decoder.center2": (windows, 3, 8, 8),
        "decoder.up2": (windows, 8, 16, 16),
        "decoder.center4": (windows, 3, 16, 16),
        "decoder.image": (windows, 3, 16, 16),
    }
    assert {name: shapes[name] for name in expected} == expected


@pytest.mark.parametrize("size", [16, 24, 40])
def test_any_size_divisible_by_eight_and_any_chunk(size):
    network = network_of(config_of())
    for length in (3, 4, 6):
        maps = network(torch.rand(2, length, size, size))
        n = 2 * (length - 2)
        assert [x.shape for x in maps.heatmaps] == [(n, 3, size // a, size // a) for a in (4, 2, 1)]
        assert maps.image.shape == (n, 3, size, size)


def test_chunks_give_what_their_windows_give():
    """Encoding each frame once changes nothing: compare with windows of three, one by one."""
    network = network_of(config_of()).eval()
    frames = torch.rand(2, 5, 16, 16)
    with torch.no_grad():
        whole = network(frames)
        single = network(frames.unfold(1, 3, 1).movedim(-1, 2).flatten(0, 1))
    for a, b in zip((*whole.heatmaps, whole.image), (*single.heatmaps, single.image), strict=True):
        assert torch.allclose(a, b, atol=1e-5)


def test_fused_channels_are_three_heatmaps_then_residuals_in_time():
    network = network_of(config_of()).eval()
    seen = {}
    network.fuse.register_forward_hook(lambda _, x, __: seen.update(fused=x[0]))
    network.center.register_forward_hook(lambda _, __, out: seen.update(center=out.to_dense()))
    network.residual.register_forward_hook(
        lambda _, __, out: seen.update(residual=out.to_dense().relu())
    )
    with torch.no_grad():
        network(torch.rand(1, 4, 16, 16))
    second = seen["fused"][1]  # frames 1, 2, 3
    assert torch.allclose(second[:3], seen["center"][1:4, 0])
    assert torch.allclose(second[3:9], seen["residual"][1])
    assert torch.allclose(second[15:], seen["residual"][3])


@pytest.mark.parametrize("fuse_relu", ["all", "residual"])
def test_the_relu_of_latent_fuse(fuse_relu):
    network = network_of(Config.from_settings({**TINY, "fuse_relu": fuse_relu})).eval()
    torch.nn.init.constant_(network.fuse.bias, -100.0)
    seen = {}
    network.decoder.conv0.register_forward_hook(lambda _, x, __: seen.update(d56=x[0]))
    maps = network(torch.rand(1, 3, 16, 16))
    floor = 0.5 if fuse_relu == "all" else 0.0
    assert torch.allclose(torch.sigmoid(maps.heatmaps[0]), torch.tensor(floor))
    assert torch.allclose(seen["d56"][:, :3], torch.tensor(floor))
    assert (seen["d56"][:, 3:] == 0).all()


def test_layouts_agree():
    """The blocked layout of the CPU and plain double precision: the same network and gradient."""
    network = network_of(config_of())
    exact = copy.deepcopy(network).double()
    frames = torch.rand(2, 5, 16, 16, generator=torch.manual_seed(0))
    values = []
    for net, x in ((network, frames), (exact, frames.double())):
        maps = net(x)
        sum((m**2).mean() for m in (*maps.heatmaps, maps.image)).backward()
        values.append([*maps.heatmaps, maps.image, *(p.grad for p in net.parameters())])
    for a, b in zip(*values, strict=True):
        assert torch.allclose(a.double(), b, rtol=1e-3, atol=1e-4)
    for a, b in zip(network.buffers(), exact.buffers(), strict=True):
        assert torch.allclose(a.double(), b.double(), atol=1e-5)


def loss_of(config, network, part):
    """One named loss on a batch."""
    batch = make_split(config, "train").batch(Chunks((0, 1), (0, 0), 5))
    prediction = predict(network, batch.frames, config, METRICS, with_image=True)
    if part in ("hm4", "hm16"):
        index = {"hm4": 0, "hm16": 2}[part]
        return (prediction.scales[index].heatmap ** 2).sum()
    return total_loss(prediction, window_truth(batch), config, 0).parts[part]


def reached(config, part):
    """Which groups of parameters get gradient from a loss."""
    network = network_of(config)
    loss_of(config, network, part).backward()

    def touched(tensor):
        return tensor is not None and bool((tensor != 0).any())

    fuse = network.fuse.weight.grad
    groups = {
        "encoder": any(touched(p.grad) for p in network.encoder.parameters()),
        "center": touched(network.center.weight.grad),
        "residual": touched(network.residual.weight.grad),
        "fuse heatmap rows": fuse is not None and touched(fuse[:3]),
        "fuse residual rows": fuse is not None and touched(fuse[3:]),
        "conv0": touched(network.decoder.conv0.weight.grad),
        "center2": touched(network.decoder.center2.weight.grad),
        "center4": touched(network.decoder.center4.weight.grad),
        "image": touched(network.decoder.image.weight.grad),
    }
    return {name for name, yes in groups.items() if yes}


ENCODER = {"encoder", "center", "residual"}


@pytest.mark.parametrize("part", ["ae", "hm16"])
@pytest.mark.parametrize(("a", "b"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_a_and_b_open_the_ways_from_decoder_losses_to_the_encoder(part, a, b):
    groups = reached(config_of(A=a, B=b, C=1), part)
    expected = {"conv0", "image" if part == "ae" else "center4"}
    if a:
        # The skip of H112 opens its own head to the losses behind it.
        expected |= {"fuse heatmap rows", "center2"} | ENCODER
    if b:
        expected |= {"fuse residual rows"} | ENCODER
    assert groups == expected


@pytest.mark.parametrize(("a", "b"), [(0, 0), (1, 0), (0, 1), (1, 1)])
def test_the_coarse_heatmap_trains_the_encoder_whatever_a_and_b_say(a, b):
    groups = reached(config_of(A=a, B=b, C=1), "hm4")
    assert groups == {"fuse heatmap rows"} | ENCODER


@pytest.mark.parametrize(("a", "b"), [(1, 0), (1, 1)])
def test_the_cone_follows_the_same_ways(a, b):
    groups = reached(config_of(A=a, B=b, C=1), "cone")
    assert {"fuse heatmap rows", "encoder"} <= groups
    assert ("fuse residual rows" in groups) == bool(b)


def test_weights_of_any_image_size_fit_any_other():
    small = network_of(config_of())
    large = network_of(Config.from_settings({"image_size": 32}), seed=1)
    large.load_state_dict(small.state_dict())
