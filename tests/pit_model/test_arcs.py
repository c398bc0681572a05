"""Arcs, hits, gravity and restitution from detections with noise, gaps and false alarms."""

import numpy as np
import pytest

from pit_model.arcs import Detections, find_arcs
from pit_model.config import Units
from pit_model.hits import fit_flights
from pit_model.simulate import simulate


def detections(position, rng, noise=0.3, wrong=0.2):
    """A ball seen with noise, a false alarm in each frame, the likelier one in some."""
    frames = len(position)
    places = np.full((frames, 3, 2), np.nan)
    places[:, 0] = position + noise * rng.normal(size=(frames, 2))
    places[:, 1] = rng.uniform(0, 400, (frames, 2))
    confidence = np.tile([0.9, 0.3, 0.0], (frames, 1))
    swapped = rng.random(frames) < wrong
    places[swapped] = places[swapped][:, [1, 0, 2]]
    return Detections(np.arange(frames, dtype=float), places, confidence)


def world(gravity, restitution):
    return Units(400, 1.0, gravity, 10.0, 5.0, 5.0, 395.0, restitution)


@pytest.mark.parametrize(("g", "e", "frames"), [(2.0, 0.8, 60), (0.5, 0.7, 120), (6.0, 0.6, 30)])
def test_gravity_restitution_and_hits_are_found(g, e, frames):
    rng = np.random.default_rng(1)
    true = simulate([60, 100], [2.1 * np.sqrt(g), -3.0], frames, world(g, e))
    flights = fit_flights(detections(true.position, rng), 2.5)
    assert flights.gravity == pytest.approx(g, rel=0.01)
    assert abs(flights.gravity - g) < 4 * flights.acceleration_error
    assert flights.restitution == pytest.approx(e, abs=0.01)
    known = flights.arc >= 0
    assert known.mean() > 0.9
    assert np.abs(flights.position - true.position)[known].max() < 1.0
    times = [hit.time for hit in flights.hits]
    assert {int(np.ceil(time)) for time in times} <= set(np.flatnonzero(true.bounce))
    assert len(times) >= 2


def test_the_time_of_a_hit_lies_between_frames():
    """Without noise it is that of the simulator: the fall from height h takes √(2h/g)."""
    true = simulate([100, 100], [3.0, 0.0], 40, world(1.0, 0.8))
    flights = fit_flights(detections(true.position, np.random.default_rng(0), 0.0, 0.0), 2.5)
    assert flights.hits[0].time == pytest.approx(np.sqrt(2 * 295 / 1.0), abs=1e-6)
    assert flights.hits[0].position[1] == pytest.approx(395, abs=1e-6)
    assert flights.hits[0].before[1] == pytest.approx(np.sqrt(2 * 295), abs=1e-6)
    assert flights.hits[0].restitution == pytest.approx(0.8, abs=1e-6)


def test_a_tilted_camera_has_the_same_gravity():
    true = simulate([60, 100], [4.0, -12.0], 45, world(2.0, 0.8)).position
    angle = np.radians(10)
    turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
    flights = fit_flights(detections(true @ turn, np.random.default_rng(2)), 2.5)
    assert flights.gravity == pytest.approx(2.0, rel=0.01)
    assert flights.restitution == pytest.approx(0.8, abs=0.01)
    assert np.degrees(np.arctan2(*flights.acceleration)) == pytest.approx(-10, abs=0.5)


def test_a_gap_and_uneven_times_do_no_harm():
    rng = np.random.default_rng(3)
    time = np.cumsum(rng.uniform(0.7, 1.3, 25))
    position = np.stack([20 + 9 * time, 300 - 30 * time + 1.5 * time**2 / 2], 1)
    seen = detections(position, rng)
    seen.position[10:12] = np.nan
    flights = fit_flights(seen._replace(time=time), 2.5)
    assert flights.gravity == pytest.approx(1.5, rel=0.01)
    assert flights.arcs == 1
    assert (flights.arc == 0).all()
    assert (flights.choice[10:12] == -1).all()
    assert np.abs(flights.position - position).max() < 1


@pytest.mark.parametrize("motion", ["rest", "even", "noise"])
def test_what_does_not_fall_is_no_flight(motion):
    rng = np.random.default_rng(4)
    time = np.arange(40.0)[:, None]
    position = {
        "rest": np.full((40, 2), 200.0),
        "even": [50.0, 200.0] + time * [6.0, 1.0],
        "noise": rng.uniform(0, 400, (40, 2)),
    }[motion]
    flights = fit_flights(detections(np.asarray(position), rng), 2.5)
    assert flights.arcs == 0
    assert np.isnan(flights.gravity)
    assert flights.restitution is None


@pytest.mark.parametrize("behind", [8.0, 0.0])
def test_rims_of_a_ball_that_rolls_are_no_flight(behind):
    """The lower one is seen in three frames of five: parabolas go from one to the other."""
    x = 6.0 * np.arange(45)
    upper = np.stack([x, np.full(45, 192.7)], 1)
    lower = np.stack([x - behind, np.full(45, 204.6)], 1)
    lower[np.arange(45) % 5 < 2] = np.nan
    confidence = np.stack([np.full(45, 0.5), np.where(np.isnan(lower[:, 0]), 0, 0.2)], 1)
    seen = Detections(np.arange(45.0), np.stack([upper, lower], 1), confidence)
    assert fit_flights(seen, 1.8).arcs == 0


def test_a_throw_begins_an_arc_and_is_no_bounce():
    """A hand adds speed: a hit without restitution."""
    rise = simulate([100, 100], [2.0, 5.0], 10, world(1.0, 0.8)).position
    start = rise[-1] + [2.0, -25.0]
    no_walls = Units(9999, 1.0, 1.0, 9.0, 5.0, -9999.0, 9999.0, 0.8)
    flight = simulate(start, [2.0, -25.0], 30, no_walls).position
    flights = fit_flights(detections(np.concatenate([rise, flight]), np.random.default_rng(5)), 2.5)
    assert flights.arcs == 2
    assert [hit.restitution for hit in flights.hits] == [None]
    assert flights.restitution is None


def test_the_arc_with_most_support_comes_first_and_no_frame_is_used_twice():
    rng = np.random.default_rng(6)
    true = simulate([60, 100], [3.0, -3.0], 60, world(2.0, 0.8))
    arcs = find_arcs(detections(true.position, rng), 2.5)
    frames = np.concatenate([arc.frames for arc in arcs])
    assert len(frames) == len(set(frames.tolist()))
    assert list(frames) == sorted(frames)


def test_a_detection_off_the_flight_is_left_out_of_the_fit():
    """It lies within the tolerance, but off by many times what the others are."""
    true = simulate([60, 100], [4.0, -12.0], 20, world(1.0, 0.8)).position
    seen = detections(true, np.random.default_rng(7), noise=0.05, wrong=0.0)
    seen.position[19, 0] += [0.0, 2.2]
    flights = fit_flights(seen, 2.5)
    assert flights.choice[19] == -1
    assert flights.gravity == pytest.approx(1.0, rel=0.005)


def test_restitution_at_a_floor_is_that_of_the_vertical_speed():
    """Friction takes speed along the floor, which is no matter of restitution."""
    time = np.arange(30.0)
    fall = np.stack([50 + 8 * time, 40 + time**2 / 2], 1)[:16]
    hit, after = fall[15], np.arange(1.0, 15.0)
    rise = np.stack([hit[0] + 4 * after, hit[1] - 12 * after + after**2 / 2], 1)
    flights = fit_flights(
        detections(np.concatenate([fall, rise]), np.random.default_rng(8), 0.05), 2.5
    )
    assert flights.hits[0].time == pytest.approx(15, abs=0.1)
    assert flights.restitution == pytest.approx(12 / 15, abs=0.01)
