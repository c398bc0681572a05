from dataclasses import replace
from math import exp, log

import pytest
import torch

from pit_model.config import Config
from pit_model.dataset import Batch
from pit_model.expectation import to_image, to_map
from pit_model.losses import (
    Truth,
    cone_loss,
    heatmap_loss,
    pill_loss,
    pills_loss,
    ramp,
    reconstruction_loss,
    total_loss,
    window_truth,
)
from pit_model.metrics import Outputs
from pit_model.predict import Prediction


def test_reconstruction_is_the_mean_cross_entropy():
    image = torch.tensor([0.0, log(3.0)])
    frames = torch.tensor([1.0, 0.25])
    by_hand = (log(2) - (0.25 * log(0.75) + 0.75 * log(0.25))) / 2
    assert reconstruction_loss(image, frames) == pytest.approx(by_hand)


def test_extreme_logits_stay_finite():
    image = torch.tensor([[[[-200.0, 200.0], [200.0, -200.0]]] * 3], requires_grad=True)
    frames = torch.tensor([[[[0.0, 1.0], [0.0, 1.0]]] * 3])
    centre = torch.zeros(1, 3, 2)
    loss = (
        reconstruction_loss(image, frames)
        + cone_loss(image, frames, centre, 2.0)
        + heatmap_loss(image, centre, 1.0)
    )
    loss.backward()
    assert loss.isfinite()
    assert image.grad.isfinite().all()


def cone(dx, dy, sigma=6.0):
    return exp(-(dx * dx + dy * dy) / (2 * sigma * sigma))


def test_cone_weighs_errors_by_their_distance_from_the_ball():
    frames = torch.zeros(1, 3, 96, 96)
    image = torch.full((1, 3, 96, 96), -100.0)
    image[0, 0, 50, 40] = 100.0  # row 50, column 40: off by 1 in the first frame
    image[0, 2, 10, 13] = log(3.0)  # off by 3/4 in the third
    centre = torch.tensor([[[43.0, 52.0], [9.0, 9.0], [9.0, 9.0]]])
    by_hand = (cone(-3, -2) + 0.75 * cone(4, 1)) / (3 * 96 * 96)
    assert cone_loss(image, frames, centre, 2.0) == pytest.approx(by_hand)


def test_cone_has_a_peak_of_one_on_the_grid():
    frames = torch.zeros(1, 3, 16, 16)
    image = torch.full((1, 3, 16, 16), -100.0)
    image[:, :, 5, 8] = 100.0
    centre = torch.tensor([7.6, 5.3]).expand(1, 3, 2)
    assert cone_loss(image, frames, centre, 0.5) == pytest.approx(1 / 256)


def test_cone_at_the_border_counts_no_pixel_twice():
    frames = torch.zeros(1, 3, 96, 96)
    image = torch.full((1, 3, 96, 96), -100.0)
    image[:, :, 0, 0] = 100.0
    centre = torch.tensor([2.0, 0.0]).expand(1, 3, 2)
    assert cone_loss(image, frames, centre, 2.0) == pytest.approx(cone(2, 0) / (96 * 96))


def dense_focal(logits, centre, sigma):
    """Equation by equation over whole maps."""
    size = logits.shape[-1]
    axis = torch.arange(size, dtype=logits.dtype)
    dx = axis[None, :] - centre[..., 0, None, None]
    dy = axis[:, None] - centre[..., 1, None, None]
    target = (-(dx**2 + dy**2) / (2 * sigma**2)).exp()
    heat = torch.sigmoid(logits)
    positive = target > 0.5
    terms = positive * (1 - heat) ** 2 * heat.log()
    terms = terms + (1 - target) ** 4 * heat**2 * (1 - heat).log()
    return -terms.sum() / positive.sum()


def test_focal_loss_by_hand():
    logits = torch.zeros(1, 1, 9, 9, dtype=torch.float64)  # H = ½ everywhere
    centre = torch.tensor([[[4.0, 4.0]]], dtype=torch.float64)
    distances = [(i - 4) ** 2 + (j - 4) ** 2 for i in range(9) for j in range(9)]
    targets = [exp(-d / 2) for d in distances]
    positives = [t for t in targets if t > 0.5]
    assert len(positives) == 5
    total = sum(0.25 * log(0.5) for _ in positives)
    total += sum((1 - t) ** 4 * 0.25 * log(0.5) for t in targets)
    assert heatmap_loss(logits, centre, 1.0) == pytest.approx(-total / 5)


@pytest.mark.parametrize("sigma", [0.8, 1.0, 2.0])
def test_focal_loss_and_gradient_equal_the_whole_sum(sigma):
    generator = torch.manual_seed(0)
    logits = torch.randn(4, 3, 40, 40, dtype=torch.float64, generator=generator)
    centre = torch.rand(4, 3, 2, dtype=torch.float64, generator=generator) * 39
    centre[0, 0] = torch.tensor([0.2, 38.9])
    a, b = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    heatmap_loss(a, centre, sigma).backward()
    dense_focal(b, centre, sigma).backward()
    assert heatmap_loss(a, centre, sigma).item() == pytest.approx(
        dense_focal(b, centre, sigma).item(), rel=1e-6
    )
    assert torch.allclose(a.grad, b.grad, atol=1e-7)


def moving_scale(logits=None):
    soft = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]])
    position = soft + torch.tensor([[[0.0, 0.0], [1.0, -2.0], [0.0, 0.5]]])
    velocity = torch.full((1, 3, 2), 2.0)
    bounce = torch.tensor([[0.0, 0.0, 1.0]])
    return Outputs(logits, soft, soft, position, velocity, bounce)


def test_pill_sums_coordinates_and_averages_windows_and_frames():
    assert pill_loss(moving_scale()) == pytest.approx((0 + 3 + 0.5) / 3)


def test_pills_by_hand():
    scale = moving_scale()
    truth = Truth(torch.empty(0), scale.position + 1, scale.velocity - 0.5, torch.zeros(1, 3))
    assert pills_loss(scale, truth) == pytest.approx(2 + 1 + 0.01 / 3)


def test_ramps_are_the_papers():
    assert ramp(0, 0.01, 10) == 0.01
    assert ramp(5, 0.01, 10) == pytest.approx(0.01 + 0.99 * 0.5)
    assert ramp(10, 0.001, 20) == pytest.approx(0.001 + 0.999 * 0.5)
    assert ramp(35, 0.001, 20) == 1.0


def test_the_total_is_the_weighted_sum_of_what_is_on():
    logits = [torch.randn(1, 3, s, s, generator=torch.manual_seed(s)) for s in (4, 8, 16)]
    scales = tuple(moving_scale(x) for x in logits)
    image = torch.randn(1, 3, 16, 16, generator=torch.manual_seed(1))
    truth = Truth(
        torch.rand(1, 3, 16, 16), torch.full((1, 3, 2), 7.0), torch.ones(1, 3, 2), torch.ones(1, 3)
    )
    weight = {"pill": ramp(3, 0.01, 10), "pills": ramp(3, 0.001, 20)}
    parts = {}
    for row in range(32):
        factors = {key: bool(row >> i & 1) for i, key in enumerate("ABCDE")}
        config = Config.from_settings({"image_size": 16}, factors)
        total, on = total_loss(Prediction(scales, image), truth, config, 3)
        names = {"A": "cone", "C": "hm", "D": "pill", "E": "pills"}
        wanted = {"ae", *(name for key, name in names.items() if factors[key])}
        assert set(on) == wanted
        assert total == pytest.approx(float(sum(weight.get(k, 1) * v for k, v in on.items())))
        parts |= on
    hm = sum(
        heatmap_loss(x, truth.position / a, 1.0) for x, a in zip(logits, (4, 2, 1), strict=True)
    )
    assert parts["hm"] == pytest.approx(float(hm))
    assert parts["pill"] == pytest.approx(3 * float(pill_loss(scales[0])))


def random_case():
    logits = [torch.randn(1, 3, n, n, generator=torch.manual_seed(n)) for n in (4, 8, 16)]
    image = torch.randn(1, 3, 16, 16, generator=torch.manual_seed(1))
    truth = Truth(
        torch.rand(1, 3, 16, 16, generator=torch.manual_seed(2)),
        torch.full((1, 3, 2), 7.0),
        torch.ones(1, 3, 2),
        torch.ones(1, 3),
    )
    return logits, Prediction(tuple(moving_scale(x) for x in logits), image), truth


def test_targets_stand_where_positions_are_read_out():
    logits, prediction, truth = random_case()
    config = Config.from_settings({"image_size": 16, "coordinates": "aligned"})
    hm = sum(
        heatmap_loss(x, torch.full((1, 3, 2), c), 1.0)
        for x, c in zip(logits, (7.5 / 4 - 0.5, 7.5 / 2 - 0.5, 7.0), strict=True)
    )
    assert total_loss(prediction, truth, config, 3).parts["hm"] == pytest.approx(float(hm))
    for stride in (4, 2, 1):
        for coordinates in ("paper", "aligned"):
            cell = to_map(truth.position, stride, coordinates)
            assert torch.equal(to_image(cell, stride, coordinates), truth.position)


@pytest.mark.parametrize("part", ["ae", "cone", "hm", "pill", "pills"])
def test_each_loss_has_a_weight(part):
    _, prediction, truth = random_case()
    words = {"ae": "reconstruction", "hm": "heatmap"}
    settings = {"image_size": 16, "D": True}
    plain = total_loss(prediction, truth, Config.from_settings(settings), 40)
    name = f"{words.get(part, part)}_weight"
    tripled = total_loss(prediction, truth, Config.from_settings({**settings, name: 3}), 40)
    assert tripled.total == pytest.approx(float(plain.total + 2 * plain.parts[part]))


def test_the_bounce_flag_has_a_weight_within_pills():
    _, prediction, truth = random_case()
    losses = [
        total_loss(prediction, truth, Config.from_settings({"bounce_weight": w}), 40).parts["pills"]
        for w in (0.0, 1.0)
    ]
    assert losses[1] - losses[0] == pytest.approx(3 * 2 / 3)  # two flags of three, at three scales


@pytest.mark.parametrize("decoder_losses", ["with_A", "always"])
@pytest.mark.parametrize("a", [0, 1])
@pytest.mark.parametrize(("key", "part"), [("C", "hm"), ("D", "pill"), ("E", "pills")])
def test_without_a_tracking_losses_act_on_the_encoder_alone(key, part, a, decoder_losses):
    """Which scales have a gradient, under the paper's reading and under the other one."""
    logits = [torch.zeros(1, 3, s, s, requires_grad=True) for s in (4, 8, 16)]
    scales = tuple(
        Outputs(x, *(x.mean() + y for y in list(vars(moving_scale()).values())[1:]))  # hang on it
        for x in logits
    )
    image = torch.zeros(1, 3, 16, 16)
    truth = Truth(image, torch.full((1, 3, 2), 7.0), torch.ones(1, 3, 2), torch.ones(1, 3))
    switches = {**dict.fromkeys("BCDE", 0), "A": a, key: 1}
    config = Config.from_settings({"image_size": 16, "decoder_losses": decoder_losses}, switches)
    parts = total_loss(Prediction(scales, image), truth, config, 3).parts
    parts[part].backward()
    everywhere = bool(a) or decoder_losses == "always"
    assert [x.grad is not None for x in logits] == [True, everywhere, everywhere]


def test_the_cone_stands_on_the_truth_only_where_it_is_used():
    """C or E: ground truth; neither: the predicted peak."""
    scale = replace(moving_scale(torch.zeros(1, 3, 16, 16)), hard=torch.full((1, 3, 2), 3.0))
    image = torch.full((1, 3, 16, 16), -100.0)
    image[:, :, 3, 3] = 100.0
    position = torch.full((1, 3, 2), 12.0)
    truth = Truth(torch.zeros(1, 3, 16, 16), position, torch.ones(1, 3, 2), torch.ones(1, 3))
    settings = {"image_size": 16, "radius_px": 1.0}
    values = {}
    for key, factors in {"none": {}, "C": {"C": 1}, "E": {"E": 1}}.items():
        config = Config.from_settings(settings, {"A": 1, "C": 0, "E": 0, **factors})
        values[key] = float(
            total_loss(Prediction((scale,) * 3, image), truth, config, 0).parts["cone"]
        )
    assert values["none"] == pytest.approx(1 / 256)
    assert values["C"] == values["E"] == pytest.approx(cone(9, 9, 3.0) / 256)


def test_windows_follow_time_within_each_chunk():
    frames = torch.arange(2 * 5.0).view(2, 5, 1, 1)
    position = torch.arange(2 * 5 * 2.0).view(2, 5, 2)
    truth = window_truth(Batch(frames, position, position, frames.flatten(1)))
    assert truth.bounce.tolist()[:4] == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [5, 6, 7]]
    assert truth.position[3].tolist() == position[1, :3].tolist()
