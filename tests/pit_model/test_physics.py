import pytest
import torch

from pit_model.config import Config, Units
from pit_model.dataset import make_split, windows
from pit_model.physics import refine, trajectory, verlet_step
from pit_model.simulate import simulate_split

UNITS = Units.of(Config.from_settings({}))


def windows_of_flight(length=3):
    """Windows of simulated flight with the bounce flags in each."""
    flight = simulate_split("train", 40, 40, UNITS, (42,))
    parts = (torch.from_numpy(part) for part in flight)
    return [x.unfold(1, length, 1).movedim(-1, 2).flatten(0, 1) for x in parts]


def test_free_flight_is_exact_in_every_frame():
    position, velocity, bounce = windows_of_flight()
    inner = (position > UNITS.low + 2).all((1, 2)) & (position < UNITS.high - 2).all((1, 2))
    ahead = position[:, 0] + 2 * (position[:, 1] - position[:, 0])
    ahead[:, 1] += 3 * UNITS.gravity
    clear = (ahead > UNITS.low).all(1) & (ahead < UNITS.high).all(1)
    free = (bounce[:, 1:].sum(1) == 0) & inner & clear
    assert free.sum() > 300
    said = trajectory(position[free], UNITS)
    assert torch.allclose(said.position, position[free], atol=1e-9)
    assert torch.allclose(said.velocity, velocity[free], atol=1e-9)
    assert said.bounce.sum() == 0


def test_an_outlier_in_the_middle_is_replaced_by_the_parabola():
    p = torch.tensor([[100.0, 100.0], [103.0, 90.0], [110.0, 102.0]], dtype=torch.float64)
    said = trajectory(p, UNITS)
    g = UNITS.gravity
    assert said.position[1].tolist() == pytest.approx([105.0, 101.0 - g / 2])
    assert said.velocity[0].tolist() == pytest.approx([5.0, 1.0 - g])
    assert said.velocity[2].tolist() == pytest.approx([5.0, 1.0 + g])
    assert torch.allclose(said.position[[0, 2]], p[[0, 2]])


def test_a_step_by_hand():
    position = torch.tensor([100.0, 100.0], dtype=torch.float64)
    velocity = torch.tensor([3.0, -4.0], dtype=torch.float64)
    gravity = torch.tensor([0.0, 2.0], dtype=torch.float64)
    ahead, speed, hit = verlet_step(position, velocity, gravity, UNITS)
    assert ahead.tolist() == [103.0, 97.0]
    assert speed.tolist() == [3.0, -2.0]
    assert not hit


@pytest.mark.parametrize(
    ("position", "velocity", "where", "speed"),
    [
        ([220.0, 100.0], [10.0, 0.0], [222.0, 100.5], [-7.5, 1.0]),  # right wall
        ([5.0, 100.0], [-10.0, 0.0], [2.0, 100.5], [7.5, 1.0]),  # left wall
        ([100.0, 220.0], [0.0, 10.0], [100.0, 222.0], [0.0, -0.75 * 10.5 + 0.5]),  # floor
        ([100.0, 5.0], [0.0, -10.0], [100.0, 2.0], [0.0, 0.75 * 9.5 + 0.5]),  # ceiling
        ([220.0, 220.0], [10.0, 10.0], [222.0, 222.0], [-7.5, -0.75 * 10.5 + 0.5]),  # corner
    ],
)
def test_walls_reflect_and_hold(position, velocity, where, speed):
    gravity = torch.tensor([0.0, 1.0])
    ahead, after, hit = verlet_step(torch.tensor(position), torch.tensor(velocity), gravity, UNITS)
    assert hit
    assert ahead.tolist() == pytest.approx(where)
    assert after.tolist() == pytest.approx(speed)


def test_the_flag_stands_at_the_frame_after_the_wall():
    moving_right = torch.tensor([[200.0, 100.0], [212.0, 100.0], [216.0, 101.0]])
    said = trajectory(moving_right, UNITS)
    assert said.bounce.tolist() == [0, 0, 1]
    assert said.velocity[2, 0] == pytest.approx(-0.75 * 12)
    beyond = torch.tensor([[212.0, 100.0], [223.0, 100.0], [210.0, 101.0]])
    assert trajectory(beyond, UNITS).bounce.tolist() == [0, 1, 0]


def test_bounces_of_the_simulator_into_the_third_frame_are_flagged():
    position, _, bounce = windows_of_flight()
    step = position[:, 1] - position[:, 0]
    ahead = position[:, 1] + step
    deep = ((ahead < UNITS.low - 2) | (ahead > UNITS.high + 2)).any(1)
    inner = (position[:, :2] > UNITS.low + 1).all((1, 2)) & (position[:, :2] < UNITS.high - 1).all(
        (1, 2)
    )
    sure = deep & inner & (bounce[:, 1] == 0)
    assert sure.sum() > 50
    said = trajectory(position[sure], UNITS)
    assert torch.equal(said.bounce[:, 1:], bounce[sure][:, 1:])


def test_a_collision_never_adds_energy():
    generator = torch.manual_seed(3)
    position = torch.rand(500, 2, generator=generator, dtype=torch.float64) * 220 + 2
    velocity = torch.randn(500, 2, generator=generator, dtype=torch.float64) * 15
    gravity = torch.tensor([0.0, UNITS.gravity], dtype=torch.float64)
    ahead, after, hit = verlet_step(position, velocity, gravity, UNITS)
    assert hit.sum() > 20
    assert (ahead >= UNITS.low).all()
    assert (ahead <= UNITS.high).all()

    def energy(p, v):
        return (v**2).sum(-1) / 2 - UNITS.gravity * p[..., 1]

    assert torch.allclose(energy(ahead, after)[~hit], energy(position, velocity)[~hit])
    kicked = (velocity + gravity / 2).abs()
    assert ((after - gravity / 2).abs() <= kicked + 1e-12).all()


def test_gradients_away_from_the_kinks():
    smooth = torch.tensor([[[100.0, 100.0], [103.0, 90.0], [110.0, 102.0]]], dtype=torch.float64)
    bouncing = torch.tensor([[[200.0, 90.0], [212.0, 95.0], [216.0, 101.0]]], dtype=torch.float64)
    for landmarks in (smooth, bouncing):
        assert torch.autograd.gradcheck(
            lambda p: trajectory(p, UNITS)[:2], landmarks.requires_grad_()
        )


def floors(config, noise=0.0):
    """Errors of P, V and bounce on positions of whole test videos, true ones or nearly."""
    split = make_split(config, "test")
    position, velocity, bounce = (
        windows(x.double()) for x in (split.position, split.velocity, split.bounce)
    )
    seen = split.position + noise * torch.randn(
        split.position.shape, generator=torch.manual_seed(1)
    )
    said = refine(windows(seen.double()), len(split), config)
    true = (position, velocity, bounce)
    return [(a - b).abs().mean().item() for a, b in zip(said, true, strict=True)]


@pytest.mark.parametrize(
    ("physics", "window", "position", "velocity"),
    [
        ("paper", 3, 0.168, 0.376),
        ("reflect", 3, 0.067, 0.359),
        ("exact", 3, 0, 0),
        ("exact", 7, 0, 0),
    ],
)
def test_floors_of_the_three_models_on_true_positions(physics, window, position, velocity):
    """Means over the paper's 100 test videos, 15.5 % of whose windows hold a hit."""
    config = Config.from_settings({"physics": physics, "physics_window": window})
    p, v, bounce = floors(config)
    assert p == pytest.approx(position, abs=1e-3)
    assert v == pytest.approx(velocity, abs=3e-3)
    assert bounce < (0.07 if window == 3 else 0.01)


@pytest.mark.parametrize(
    ("physics", "window", "position", "velocity"),
    [
        ("paper", 3, 0.245, 0.442),
        ("reflect", 3, 0.148, 0.428),
        ("exact", 3, 0.071, 0.078),
        ("exact", 5, 0.046, 0.034),
        ("exact", 7, 0.037, 0.022),
        ("exact", 9, 0.032, 0.016),
    ],
)
def test_floors_behind_a_tracker_that_errs(physics, window, position, velocity):
    """With noise of the positions that makes B 0.088 px, as docs/paper.md has them."""
    config = Config.from_settings({"physics": physics, "physics_window": window})
    p, v, _ = floors(config, noise=0.11)
    assert p == pytest.approx(position, abs=2e-3)
    assert v == pytest.approx(velocity, rel=0.15)  # a few frames at a hit decide


def test_a_stuck_point_pleases_the_papers_module_and_no_longer_window():
    """Mean distance from landmarks, summed over x and y: true flight and a point at rest."""
    position = windows(make_split(Config(), "test").position.double())
    stuck = torch.full_like(position, 112.0)

    def residual(landmarks, physics, window):
        config = Config(physics=physics, physics_window=window)
        said = refine(landmarks, 100, config).position
        return (said - landmarks).abs().sum(-1).mean().item()

    assert residual(position, "paper", 3) == pytest.approx(0.337, abs=2e-3)
    assert residual(stuck, "paper", 3) == pytest.approx(0.131, abs=1e-3)
    for window, least in ((5, 0.5), (7, 1.2), (9, 2.1)):
        assert residual(position, "exact", window) < 0.01
        assert residual(stuck, "exact", window) > least


def test_reflected_steps_pass_on_what_they_overshoot():
    gravity = torch.tensor([0.0, 0.0])
    place, speed, hit = verlet_step(
        torch.tensor([220.0, 100.0]), torch.tensor([10.0, 0.0]), gravity, UNITS, reflect=True
    )
    assert hit
    assert place.tolist() == pytest.approx([222 - 0.75 * 8, 100])
    assert speed.tolist() == pytest.approx([-7.5, 0])


def test_exact_flight_uses_all_three_landmarks_of_free_flight():
    landmarks = torch.tensor([[[100.0, 100.0], [105.0, 99.0], [110.0, 100.0]]]).double()
    for physics, reached in (("paper", False), ("reflect", False), ("exact", True)):
        z = landmarks.clone().requires_grad_()
        refine(z, 1, Config(physics=physics)).position.sum().backward()
        assert bool((z.grad[0, 1] != 0).all()) == reached


def test_longer_windows_average_the_landmarks_of_a_frame():
    """Two chunks of eight frames: at their ends the window of seven is shifted inwards."""
    position, _, bounce = windows_of_flight(8)
    quiet = position[bounce[:, 1:].sum(1) == 0][:2]
    landmarks = windows(quiet)  # (12, 3, 2)
    config = Config(physics="exact", physics_window=7)
    assert torch.allclose(refine(landmarks, 2, config).position, landmarks, atol=1e-6)
    moved = landmarks.clone().requires_grad_()
    refine(moved, 2, config).position[0].sum().backward()
    touched = moved.grad.abs().sum((1, 2)) > 0
    assert touched.tolist() == [True] * 6 + [False] * 6
    assert moved.grad[5, 2].abs().sum() == 0  # frame 7 is beyond the first window of seven
