import pytest
import torch

from pit_model import expectation, init, physics, predict
from pit_model.config import CHOICES, Config, Units, config_label
from pit_model.dataset import Batch, Chunks, make_split
from pit_model.losses import total_loss, window_truth
from pit_model.network import Maps, Network
from pit_model.predict import METRICS, wanted_in_training

TINY = {
    "image_size": 16,
    "frames": 5,
    "train_sequences": 2,
    "val_sequences": 1,
    "test_sequences": 1,
}
ROWS = [{key: bool(row >> i & 1) for i, key in enumerate("ABCDEF")} for row in range(64)]


def blob(size, x, y):
    axis = torch.arange(size, dtype=torch.float32)
    distance = (axis[None, :] - x) ** 2 + (axis[:, None] - y) ** 2
    return torch.logit((-distance / 2).exp().clamp(1e-6, 1 - 1e-6))


def said_maps(heatmaps):
    """A network that always says the same."""
    return lambda frames, image: Maps(heatmaps, torch.empty(0))


def test_positions_are_heatmap_coordinates_times_the_stride():
    """The same ball at the three scales, moving by (4, 0) and (4, 4) pixels."""
    track = [(24.0, 32.0), (28.0, 32.0), (32.0, 36.0)]
    heatmaps = tuple(
        torch.stack([blob(64 // a, x / a, y / a) for x, y in track])[None] for a in (4, 2, 1)
    )
    config = Config.from_settings({"image_size": 64})
    units = Units.of(config)
    said = predict.predict(said_maps(heatmaps), torch.empty(1, 3, 64, 64), config, METRICS)
    wanted = torch.tensor(track)
    for scale, stride in zip(said.scales, (4, 2, 1), strict=True):
        assert torch.equal(scale.hard[0], wanted)
        assert (scale.soft[0] - wanted).abs().max() < 0.02 * stride
        refined = physics.trajectory(scale.soft, units)
        assert torch.equal(scale.position, refined.position)
        assert torch.equal(scale.velocity, refined.velocity)
        assert torch.equal(scale.bounce, refined.bounce)
        assert scale.velocity[0, :, 0].tolist() == pytest.approx([4, 4, 4], abs=0.05 * stride)


@pytest.mark.parametrize("readout", ["paper", "local"])
def test_each_scale_has_its_operator(readout):
    maps = tuple(torch.randn(1, 3, s, s, generator=torch.manual_seed(s)) for s in (8, 16, 32))
    config = Config.from_settings({"image_size": 32, "readout": readout})
    said = predict.predict(said_maps(maps), torch.empty(1, 3, 32, 32), config, METRICS)
    local = expectation.coarse_to_fine
    finer = (expectation.biquadratic, expectation.bicubic) if readout == "paper" else (local,) * 2
    for scale, x, operator, a in zip(said.scales, maps, (local, *finer), (4, 2, 1), strict=True):
        assert torch.equal(scale.soft, a * operator(torch.sigmoid(x)))


def test_aligned_cells_stand_in_the_middle_of_their_pixels():
    maps = tuple(blob(s, 3.0, 4.0).expand(1, 3, s, s) for s in (8, 16, 32))
    config = Config.from_settings({"image_size": 32, "coordinates": "aligned"})
    said = predict.predict(said_maps(maps), torch.empty(1, 3, 32, 32), config, METRICS)
    for scale, place in zip(said.scales, ((13.5, 17.5), (6.5, 8.5), (3.0, 4.0)), strict=True):
        assert torch.equal(scale.hard[0, 0], torch.tensor(place))
        assert torch.allclose(scale.soft[0, 0], torch.tensor(place), atol=0.1)


@pytest.mark.parametrize("factors", ROWS, ids=[config_label(f) for f in ROWS])
def test_each_configuration_runs_forward_and_backward(factors):
    config = Config.from_settings(TINY, factors)
    torch.manual_seed(0)
    network = Network(config)
    batch = make_split(config, "train").batch(Chunks((0, 1), (0, 0), 5))
    said = predict.predict(network, batch.frames, config, wanted_in_training(config), True)
    total_loss(said, window_truth(batch), config, 5).total.backward()
    grads = {name: p.grad for name, p in network.named_parameters() if p.grad is not None}
    assert all(grad.isfinite().all() for grad in grads.values())
    assert "decoder.image.weight" in grads
    supervised = factors["C"] or factors["D"] or factors["E"]
    assert ("encoder.conv1.conv.weight" in grads) == (supervised or factors["A"] or factors["B"])


@pytest.mark.parametrize("factors", ROWS[:32], ids=[config_label(f)[:10] for f in ROWS[:32]])
def test_what_no_loss_needs_is_not_run(factors, monkeypatch):
    """A loss that is off costs nothing: its operators are never called."""
    called = set()

    def watched(name, function):
        def wrapper(*args, **kwargs):
            called.add(name)
            return function(*args, **kwargs)

        return wrapper

    operators = zip(("coarse", "middle", "fine"), predict.OPERATORS["paper"], strict=True)
    monkeypatch.setitem(predict.OPERATORS, "paper", [watched(name, f) for name, f in operators])
    monkeypatch.setattr(predict, "refine", watched("physics", predict.refine))
    monkeypatch.setattr(predict, "hard_argmax", watched("hard", predict.hard_argmax))
    config = Config.from_settings(TINY, factors)
    batch = make_split(config, "train").batch(Chunks((0,), (0,), 4))
    predict.predict(Network(config), batch.frames, config, wanted_in_training(config))
    expected = {"coarse", "physics"} if factors["D"] or factors["E"] else set()
    if expected and factors["A"]:
        expected |= {"middle", "fine"}
    if factors["A"] and not (factors["C"] or factors["E"]):
        expected |= {"hard"}
    assert called == expected


@pytest.mark.parametrize("model", CHOICES["physics"])
def test_no_step_waits_for_the_device(model):
    """On torch's device without values, where a number that is read back is an error."""
    settings = {**TINY, "D": True, "physics": model, "physics_window": 5}
    config = Config.from_settings(settings)
    batch = Batch(*(torch.empty(2, 7, *x, device="meta") for x in ((16, 16), (2,), (2,), ())))
    logits = [torch.empty(10, 3, s, s, device="meta", requires_grad=True) for s in config.scales]
    maps = Maps(tuple(logits), logits[-1])
    said = predict.predict(lambda *_: maps, batch.frames, config, METRICS, True)
    total_loss(said, window_truth(batch), config, 1).total.backward()
    assert all(x.grad is not None for x in logits)


def test_metrics_need_no_reconstruction():
    config = Config.from_settings(TINY)
    network = Network(config).eval()
    frames = torch.rand(1, 4, 16, 16)
    with torch.no_grad():
        without = predict.predict(network, frames, config, METRICS)
        everything = predict.predict(network, frames, config, METRICS, with_image=True)
    assert without.image.numel() == 0
    assert everything.image.shape == (2, 3, 16, 16)
    for a, b in zip(without.scales, everything.scales, strict=True):
        assert all(torch.equal(x, vars(b)[name]) for name, x in vars(a).items())


def test_one_window_is_learnt_to_half_a_pixel():
    config = Config.from_settings(
        {**TINY, "image_size": 32, "frames": 3, "train_sequences": 1}, {"C": 1, "E": 1}
    )
    network = init.draw(config, 2)
    optimizer = torch.optim.Adam(network.parameters(), 3e-3)
    batch = make_split(config, "train").batch(Chunks((0,), (0,), 3))
    truth = window_truth(batch)
    for step in range(80):
        said = predict.predict(network, batch.frames, config, wanted_in_training(config), True)
        optimizer.zero_grad()
        total_loss(said, truth, config, step // 5).total.backward()
        optimizer.step()
    fine = said.scales[2]
    assert (fine.soft - truth.position).abs().mean() < 0.5
    assert (fine.position - truth.position).abs().mean() < 0.5
