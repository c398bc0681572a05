import math

import pytest
import torch

from pit_model.config import Config, Units
from pit_model.flight import World, bounces, fit, fly, world_of
from pit_model.simulate import simulate, simulate_split

UNITS = Units.of(Config.from_settings({}))
WORLD = world_of(UNITS, torch.empty(0, dtype=torch.float64))


def simulated(count=40, frames=40):
    flight = simulate_split("train", count, frames, UNITS, (42,))
    return tuple(torch.from_numpy(part) for part in flight)


def slide(x, length):
    return x.unfold(1, length, 1).movedim(-1, 2).flatten(0, 1)


def test_flight_is_that_of_the_simulator():
    position, velocity, bounce = simulated()
    times = torch.arange(40.0, dtype=torch.float64)
    said = fly(position[:, 0], velocity[:, 0], times, WORLD, hits=20)
    assert torch.allclose(said.position, position, atol=1e-4)
    assert torch.allclose(said.velocity, velocity, atol=1e-2)
    assert torch.equal(bounces(said.hits, times).double(), bounce)


def test_a_ball_comes_to_rest_on_the_floor():
    times = torch.arange(60.0, dtype=torch.float64)
    said = fly(
        torch.tensor([100.0, 220.0]).double(), torch.tensor([1.0, 0.0]).double(), times, WORLD
    )
    true = simulate([100.0, 220.0], [1.0, 0.0], 60, UNITS)
    assert torch.allclose(said.position, torch.from_numpy(true.position), atol=0.02)
    assert said.velocity[-1].tolist() == [1.0, 0.0]


def test_hits_have_times_between_frames():
    inf = math.inf
    rows = [0.0, 2.0], [0.5, 0.5], [-inf, -inf], [inf, 9.0]
    floor = World(*(torch.tensor(row, dtype=torch.float64) for row in rows))
    said = fly(
        torch.tensor([0.0, 0.0]).double(),
        torch.tensor([3.0, 0.0]).double(),
        torch.arange(5.0, dtype=torch.float64),
        floor,
    )
    assert said.hits[:, 1].tolist() == pytest.approx([3.0])  # 9 = t², back after 2·3/2 = 3 more
    assert said.hits[:, 0].tolist() == [math.inf]
    assert said.position[:, 0].tolist() == [0, 3, 6, 9, 12]
    assert said.position[4].tolist() == pytest.approx([12.0, 9 - 3 + 1])
    assert said.velocity[3].tolist() == pytest.approx([3.0, -3.0])


def test_slopes_are_derivatives():
    position = torch.tensor([[218.0, 221.0], [100.0, 5.0], [40.0, 100.0]]).double()
    velocity = torch.tensor([[6.0, 1.5], [-20.0, -12.0], [2.0, 3.0]]).double()
    times = torch.arange(9.0, dtype=torch.float64)
    said = fly(position, velocity, times, WORLD)
    h = 1e-6
    for i, (dp, dv) in enumerate([(h, 0.0), (0.0, h)]):
        ahead = fly(position + dp, velocity + dv, times, WORLD)
        behind = fly(position - dp, velocity - dv, times, WORLD)
        for k in (0, 1):
            numeric = (ahead[k] - behind[k]) / (2 * h)
            assert torch.allclose(said.slopes[k][..., i], numeric, atol=1e-5)
    assert said.hits.isfinite().sum() >= 5


@pytest.mark.parametrize("length", [3, 5, 7, 9])
def test_a_fit_of_true_positions_is_exact(length):
    position, velocity, bounce = (slide(x, length) for x in simulated())
    said = fit(position, WORLD)
    assert (said.position - position).abs().mean() < 1e-3
    assert (said.velocity - velocity).abs().mean() < 1e-2
    assert (said.bounce - bounce)[:, 1:].abs().mean() < 1e-3


def test_a_longer_window_averages_out_more_noise():
    position, velocity, _ = simulated()
    noisy = position + 0.11 * torch.randn(position.shape, generator=torch.manual_seed(1)).double()
    errors = []
    for length in (3, 5, 9):
        said = fit(slide(noisy, length), WORLD)
        true = slide(position, length), slide(velocity, length)
        errors.append([(a - b).abs().mean().item() for a, b in zip(said[:2], true, strict=True)])
    (p3, v3), (p5, v5), (p9, v9) = errors
    assert 0.08 > p3 > p5 / 0.8 > p9 / 0.64
    assert 0.1 > v3 > v5 / 0.6 > v9 / 0.36


def test_gradients_in_free_flight_and_through_hits():
    position, _, bounce = (slide(x, 5) for x in simulated())
    for hit in (0, 1):
        some = position[bounce[:, 2] == hit][:3].clone().requires_grad_()
        assert torch.autograd.gradcheck(
            lambda z: fit(z, WORLD)[:2], some, eps=1e-4, atol=2e-3, rtol=2e-3
        )


def test_a_ball_held_by_a_wall_moves_along_it_alone():
    outside = torch.tensor([[1.0, 100.0], [6.0, 100.0], [10.0, 101.0]]).double().requires_grad_()
    said = fit(outside, WORLD)
    said.position[0, 0].backward()
    assert said.position[0, 0] == UNITS.low
    assert outside.grad.abs().sum() == 0
