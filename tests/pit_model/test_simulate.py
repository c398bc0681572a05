import time
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pit_model.config import Config, Units
from pit_model.simulate import SPLITS, Axis, State, advance, simulate, simulate_split

UNITS = Units.of(Config())
SEED = (42,)


def stepped(position, velocity, frames, units, steps):
    """Small explicit steps with reflection, many balls (V, 2) at once: independent and simple."""
    p, v = position.copy(), velocity.copy()
    dt, acceleration = 1.0 / steps, np.array([0.0, units.gravity])
    positions, bounces = [p], [np.zeros(len(p))]
    for _ in range(frames - 1):
        hit = np.zeros(len(p), bool)
        for _ in range(steps):
            p, v = p + v * dt + acceleration * dt**2 / 2, v + acceleration * dt
            out = ((p < units.low) & (v < 0)) | ((p > units.high) & (v > 0))
            v = np.where(out, -units.restitution * v, v)
            p = np.clip(p, units.low, units.high)
            hit |= out.any(1)
        positions.append(p)
        bounces.append(hit.astype(float))
    return np.stack(positions, 1), np.stack(bounces, 1)


def energy(flight, units):
    """½v² − g·y: y points down, so height is −y."""
    return (flight.velocity**2).sum(-1) / 2 - units.gravity * flight.position[..., 1]


def test_free_flight_is_the_parabola():
    flight = simulate((30.0, 60.0), (3.0, -5.0), 12, UNITS)
    t = np.arange(12.0)
    assert flight.bounce.sum() == 0
    np.testing.assert_allclose(flight.position[:, 0], 30 + 3 * t, atol=1e-9)
    np.testing.assert_allclose(flight.position[:, 1], 60 - 5 * t + 0.7848 * t**2 / 2, atol=1e-9)
    np.testing.assert_allclose(flight.velocity[:, 1], -5 + 0.7848 * t, atol=1e-9)


def test_agrees_with_a_fine_step_integrator():
    exact = simulate_split("test", 40, 40, UNITS, SEED)
    position, bounce = stepped(exact.position[:, 0], exact.velocity[:, 0], 40, UNITS, steps=1000)
    assert exact.bounce.sum() > 100
    np.testing.assert_allclose(exact.position, position, atol=0.2)
    assert (exact.bounce != bounce).mean() < 0.002  # a hit on a frame may fall on either side


def test_a_single_wall_hit_in_closed_form():
    flight = simulate((220.0, 50.0), (4.0, 0.0), 2, replace(UNITS, gravity=0.0))
    # Half a frame to the wall at 222, then half a frame back at three quarters of the speed.
    np.testing.assert_allclose(flight.position[1], [222 - 0.5 * 3, 50.0], atol=1e-12)
    np.testing.assert_allclose(flight.velocity[1], [-3.0, 0.0], atol=1e-12)
    assert flight.bounce.tolist() == [0.0, 1.0]


def test_a_corner_is_hit_on_both_walls_at_once():
    flight = simulate((220.0, 4.0), (4.0, -4.0), 2, replace(UNITS, gravity=0.0))
    np.testing.assert_allclose(flight.position[1], [220.5, 3.5], atol=1e-12)
    np.testing.assert_allclose(flight.velocity[1], [-3.0, 3.0], atol=1e-12)
    assert flight.bounce[1] == 1


def test_many_hits_within_one_frame():
    axis = Axis(low=0.0, high=1.0, acceleration=0.0, restitution=1.0)
    state, hit = advance(State(0.0, 10.25), axis)
    assert hit
    assert state.p == pytest.approx(0.25)
    assert state.v == pytest.approx(10.25)


def test_a_hit_on_a_frame_belongs_to_that_frame():
    axis = Axis(low=0.0, high=10.0, acceleration=0.0, restitution=0.5)
    state, hit = advance(State(8.0, 2.0), axis)
    assert (state, hit) == (State(10.0, -1.0), True)
    assert advance(state, axis) == (State(9.0, -1.0), False)


def test_the_ball_comes_to_rest_when_the_series_of_hops_ends():
    axis = Axis(low=0.0, high=100.0, acceleration=1.0, restitution=0.5)
    # Falls 2 px in 2 frames, arrives at speed 2 and hops at 1: (2·1/1)/(1 − 1/2) = 4 frames more.
    state, flags = State(98.0, 0.0), []
    for _ in range(8):
        state, hit = advance(state, axis)
        flags.append(hit)
    assert state == State(100.0, 0.0)
    assert flags == [False, True, False, True, True, True, False, False]


def test_elastic_hops_of_any_number_keep_their_height():
    axis = Axis(low=0.0, high=100.0, acceleration=1.0, restitution=1.0)
    # From 1/800 px above the floor a hop lasts 0.1 frames: ten in a frame, back where it began.
    state, hit = advance(State(100 - 1 / 800, 0.0), axis)
    assert hit
    assert state.p == pytest.approx(100 - 1 / 800, abs=1e-9)
    assert state.v == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize("e", [0.3, 0.75, 0.95])
def test_one_long_step_equals_many_short_ones(e):
    axis = Axis(low=0.0, high=20.0, acceleration=1.0, restitution=e)
    for height in (0.01, 0.3, 2.0, 15.0):
        long, _ = advance(State(20 - height, -0.1), axis, 4.0)
        short = State(20 - height, -0.1)
        for _ in range(40):
            short, _ = advance(short, axis, 0.1)
        assert long.p == pytest.approx(short.p, abs=1e-9)
        assert long.v == pytest.approx(short.v, abs=1e-6)


def test_energy_never_grows_and_the_ball_stays_inside():
    flight = simulate_split("train", 100, 200, UNITS, SEED)
    assert (np.diff(energy(flight, UNITS), axis=1) <= 1e-9).all()
    assert flight.position.min() >= UNITS.low
    assert flight.position.max() <= UNITS.high
    rests = flight.velocity[:, -1, 1] == 0
    assert rests.any()  # 200 frames are long enough for some to come to rest
    assert (flight.position[rests, -1, 1] == UNITS.high).all()


@settings(max_examples=150, deadline=None)
@given(
    x=st.floats(2, 222),
    y=st.floats(2, 222),
    vx=st.floats(-300, 300),
    vy=st.floats(-300, 300),
    e=st.floats(0, 1),
    g=st.floats(0, 20),
)
def test_any_start_stays_inside_and_loses_energy(x, y, vx, vy, e, g):
    units = replace(UNITS, restitution=e, gravity=g)
    flight = simulate((x, y), (vx, vy), 20, units)
    assert np.isfinite(flight.position).all()
    assert flight.position.min() >= units.low
    assert flight.position.max() <= units.high
    total = energy(flight, units)
    assert (np.diff(total) <= 1e-9 * (1 + np.abs(total[:-1]))).all()
    assert set(flight.bounce) <= {0.0, 1.0}
    free = flight.bounce[1:] == 0
    moved = flight.position[1:] - flight.position[:-1] - flight.velocity[:-1]
    resting = flight.velocity[:-1, 1] == 0
    np.testing.assert_allclose(moved[free, 0], 0, atol=1e-9)
    np.testing.assert_allclose(moved[free & ~resting, 1], g / 2, atol=1e-9)


def test_a_sequence_does_not_depend_on_how_many_others_are_drawn():
    few = simulate_split("val", 3, 10, UNITS, SEED)
    many = simulate_split("val", 7, 10, UNITS, SEED)
    np.testing.assert_array_equal(few.position, many.position[:3])


def test_splits_share_no_sequence_and_follow_their_seed():
    starts = [simulate_split(name, 50, 2, UNITS, SEED).position[:, 0] for name in SPLITS]
    assert len(np.unique(np.concatenate(starts), axis=0)) == 150
    other = simulate_split("train", 50, 2, UNITS, (43,)).position[:, 0]
    assert not np.isin(other, starts[0]).any()


def test_starts_are_uniform_between_the_walls():
    flight = simulate_split("train", 2000, 1, UNITS, SEED)
    for value, low, high in ((flight.position, 2, 222), (flight.velocity, -22.2, 22.2)):
        assert low <= value.min()
        assert value.max() <= high
        share = np.histogram(value, bins=10, range=(low, high))[0] / value.size
        np.testing.assert_allclose(share, 0.1, atol=0.03)


def test_all_250_sequences_take_less_than_a_second():
    begin = time.process_time()  # not the time that other processes take
    for name, count in zip(SPLITS, (100, 50, 100), strict=True):
        simulate_split(name, count, 40, UNITS, SEED)
    assert time.process_time() - begin < 1.0
