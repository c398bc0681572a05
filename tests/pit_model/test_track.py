"""The tracker with the weights that come along: simulated clips of unknown worlds, a real one."""

import csv
import json
import struct
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter
from typer.testing import CliRunner

from pit_model.adapt import adapt, trust
from pit_model.arcs import Detections
from pit_model.cli import app
from pit_model.config import Units
from pit_model.errors import PitError
from pit_model.regime import Regime
from pit_model.simulate import simulate
from pit_model.track import Tracker, read_peaks
from pit_model.track_files import sentences, summary, write_csv, write_track
from pit_model.video import clip_of, read_clip, write_mp4

CLIPS = Path(__file__).parents[3] / "shared" / "clips"
"""A real clip that is not ours to ship."""
BLANK = 6
"""Frames before the ball appears."""
SIZE = 192
FPS = 50.0


def film(gravity, restitution, dark=False, frames=49, radius=3.5):
    """A ball over a texture with a bar, with camera noise: 8-bit frames and the true flight."""
    rng = np.random.default_rng(7)
    room = Units(SIZE, 1.0, gravity, 9.0, radius, radius, SIZE - radius, restitution)
    flight = simulate([25, 35], [3.3, -1.0], frames, room)
    grain = gaussian_filter(rng.normal(size=(SIZE, SIZE)), 3)
    scene = np.repeat((70 + 12 * grain / grain.std())[None], BLANK + frames, axis=0)
    scene[:, :, 120:126] += 60
    y, x = np.mgrid[:SIZE, :SIZE]
    for frame, place in zip(scene[BLANK:], flight.position, strict=True):
        cover = (radius + 0.5 - np.hypot(x - place[0], y - place[1])).clip(0, 1)
        frame += 110 * cover
    seen = (255 - scene if dark else scene) + 5 * rng.normal(size=scene.shape)
    return seen.clip(0, 255).astype(np.uint8), flight


@pytest.fixture(scope="module")
def tracker():
    torch.set_num_threads(1)
    return Tracker.load()


@pytest.fixture(scope="module")
def bounced(tracker):
    """A clip of unknown restitution and scale, 300 px to the metre, at g = 9.81."""
    gravity = 9.81 * 300 / FPS**2
    frames, flight = film(gravity, 0.8)
    return frames, flight, tracker.track(frames, FPS, width=SIZE, dark=False, subtract=True, g=9.81)


def test_scale_restitution_and_hits_of_an_unknown_world(bounced):
    _, flight, track = bounced
    assert track.scale == pytest.approx(300, rel=0.01)
    assert track.flights.restitution == pytest.approx(0.8, abs=0.02)
    hits = [hit.time - BLANK for hit in track.flights.hits]
    assert [int(np.ceil(time)) for time in hits] == list(np.flatnonzero(flight.bounce))
    found = np.isfinite(track.position[BLANK:, 0])
    assert found.mean() > 0.9
    miss = (track.position[BLANK:] - flight.position)[found]
    assert np.abs(miss - miss.mean(0)).mean() < 0.3
    assert np.abs(miss.mean(0)).max() < 0.6


def test_nothing_is_claimed_for_frames_without_a_ball(bounced):
    _, _, track = bounced
    assert (track.flights.arc[:BLANK] == -1).all()
    assert np.isnan(track.position[:BLANK]).all()
    assert np.isnan(track.flights.position[:BLANK]).all()


def test_gravity_of_a_dark_ball_whose_regime_is_found_by_trial(tracker):
    frames, flight = film(1.5, 0.7, dark=True, frames=30)
    track = tracker.track(frames, FPS, width=112, scale=100.0)
    assert track.regime.dark
    assert track.g == pytest.approx(1.5 * FPS**2 / 100, rel=0.01)
    assert track.flights.restitution == pytest.approx(0.7, abs=0.03)
    known = track.flights.arc[BLANK:] >= 0
    assert np.abs(track.flights.position[BLANK:] - flight.position)[known].mean() < 0.6


def test_a_film_without_a_ball_holds_no_flight(tracker):
    frames, _ = film(1.0, 0.8)
    track = tracker.track(np.repeat(frames[:BLANK], 2, axis=0), width=96, dark=False)
    assert track.flights.arcs == 0
    assert np.isnan(track.position).all()
    assert track.scale is None
    assert track.g is None


def test_files_say_what_the_track_says(bounced, tmp_path):
    frames, _, track = bounced
    write_mp4(tmp_path / "ball.mp4", frames, FPS)
    paths = write_track(track, tmp_path / "ball.mp4", tmp_path / "out")
    assert [path.name for path in paths] == [
        f"track.{ending}" for ending in ("csv", "json", "png", "mp4", "trk")
    ]
    with paths[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(frames)
    assert ",".join(rows[0]) == "frame,time,x,y,confidence,arc,x_fit,y_fit,vx,vy"
    assert rows[0]["x"] == rows[0]["arc"] == rows[0]["x_fit"] == rows[0]["vy"] == ""
    seen = int(np.flatnonzero(track.flights.choice >= 0)[0])
    assert float(rows[seen]["x"]) == pytest.approx(track.position[seen, 0], abs=1e-3)
    assert float(rows[seen]["time"]) == pytest.approx(seen / FPS)
    assert float(rows[seen]["vy"]) == pytest.approx(FPS * track.flights.velocity[seen, 1], abs=0.01)
    said = json.loads(paths[1].read_text())
    assert said["g"] == 9.81
    assert said["g_error"] is None  # it was given
    assert 0 < said["scale_error"] < 0.01 * said["scale"]
    assert said["scale"] == pytest.approx(track.scale)
    assert said["e"] == pytest.approx(track.flights.restitution)
    frames_of_hits = [hit.time for hit in track.flights.hits]
    assert [hit["frame"] for hit in said["hits"]] == pytest.approx(frames_of_hits)
    assert said["hits"][0]["time"] == pytest.approx(track.flights.hits[0].time / FPS)
    film_of_it = read_clip(paths[3], None, 448)
    assert film_of_it.frames.shape == frames.shape
    x, y = track.position[seen].round().astype(int)
    change = (film_of_it.frames[seen].int() - torch.from_numpy(frames[seen]).int()).abs().float()
    assert change[y - 8 : y + 9, x - 8 : x + 9].mean() > 2 * change.mean()  # a circle is drawn
    assert change[y - 1 : y + 2, x - 1 : x + 2].mean() < 20  # about the ball, not over it
    panel = ElementTree.parse(paths[4])
    assert panel.find(".//property[@name='path']").text == "../ball.mp4"
    masses = panel.findall(".//object[@class]/property[@name='framedata']")
    marks = masses[-1].findall("property")
    assert len(marks) == said["frames_with_ball"]
    assert marks[0].get("name") == f"[{seen}]"
    assert float(marks[0].find(".//property[@name='x']").text) == track.position[seen, 0] + 0.5


def test_a_hit_between_frames_that_come_unevenly_has_their_number(bounced):
    """Five seconds without a frame at a hit: it is a little later than the frame before them."""
    _, _, track = bounced
    first = track.flights.hits[0].time
    time = track.clip.time.copy()
    time[int(first) + 1 :] += 5.0
    hit = summary(track._replace(clip=track.clip._replace(time=time)))["hits"][0]
    assert hit["time"] == pytest.approx(first / FPS)
    assert hit["frame"] == pytest.approx(int(first) + (first % 1) / FPS / (5 + 1 / FPS))


def test_a_summary_without_flight_has_no_numbers(tracker, tmp_path):
    frames, _ = film(1.0, 0.8)
    track = tracker.track(frames[:BLANK], width=SIZE, dark=False, subtract=True)
    said = summary(track)
    assert said["g"] is said["e"] is said["scale"] is said["g_px"] is None
    assert said["hits"] == []
    assert "NaN" not in json.dumps(said)
    write_csv(track, tmp_path / "track.csv")
    assert (tmp_path / "track.csv").read_text().splitlines()[1].endswith(",,,,,")


def test_adapting_confirms_as_many_frames_with_less_scatter(tracker, bounced, monkeypatch):
    for name, value in {"STEPS": 60, "ROUNDS": 1, "CROP": 48}.items():
        monkeypatch.setattr(f"pit_model.adapt.{name}", value)
    _, _, track = bounced
    steps = []
    before = {name: p.clone() for name, p in tracker.network.state_dict().items()}
    done = adapt(tracker, track, g=9.81, progress=lambda *step: steps.append(step))
    assert done.note.startswith("adapted:")
    assert steps[-1] == ("adapting", 60, 60)
    assert done.tracker is not tracker
    assert (done.track.flights.choice >= 0).sum() >= (track.flights.choice >= 0).sum()
    for name, p in tracker.network.state_dict().items():
        assert torch.equal(p, before[name])


def test_adapting_is_refused_where_arcs_confirm_little(tracker, bounced):
    _, _, track = bounced
    few = np.where(np.arange(len(track.flights.choice)) % 3 == 0, track.flights.choice, -1)
    doubtful = track._replace(flights=track.flights._replace(choice=few))
    assert trust(doubtful) < 0.5
    done = adapt(tracker, doubtful)
    assert done.tracker is tracker
    assert done.note.startswith("not adapted: arcs confirm")


def test_the_highest_peaks_are_read_in_order():
    maps = torch.zeros(1, 40, 60)
    maps[0, 10, 20], maps[0, 10, 21] = 0.8, 0.4
    maps[0, 30, 50] = 0.6
    position, height = read_peaks(maps)
    places = torch.tensor([[20 + 1 / 3, 10.0], [50.0, 30.0]])
    torch.testing.assert_close(position[0, :2], places, atol=1e-3, rtol=0)
    torch.testing.assert_close(height[0], torch.tensor([0.8, 0.6, 0.0]))


def test_frames_are_taken_in_any_form():
    grey = np.arange(4 * 16 * 24, dtype=np.uint8).reshape(4, 16, 24)
    for frames in (grey, grey / 255, np.repeat(grey[..., None], 3, axis=3)):
        clip = clip_of(frames, 10.0)
        assert clip.size == (24, 16)
        assert (clip.frames.int() - torch.from_numpy(grey).int()).abs().max() <= 1
    with pytest.raises(PitError, match=r"shape \(4, 16\); expected \(T, H, W\) or"):
        clip_of(grey[:, :, 0])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 1.0, "g": 9.8}, "scale and g are both given"),
        ({"frames": 2}, "the clip has 2 frames; expected 3 or more"),
    ],
)
def test_what_cannot_be_tracked_is_refused(tracker, options, message):
    frames = np.zeros((options.pop("frames", 8), 32, 32), np.uint8)
    with pytest.raises(PitError, match=message):
        tracker.track(frames, **options)


def test_weights_that_are_none_are_refused(tmp_path):
    with pytest.raises(
        PitError, match="does not exist; expected a file of weights or the directory"
    ):
        Tracker.load(tmp_path / "none.pt")
    (tmp_path / "text.pt").write_text("no weights")
    with pytest.raises(PitError, match="contains no weights"):
        Tracker.load(tmp_path / "text.pt")


@pytest.mark.parametrize(("count", "said"), [(1, "1 frame"), (2, "2 frames")])
def test_a_film_that_is_too_short_is_refused(tmp_path, count, said):
    write_mp4(tmp_path / "short.mp4", np.zeros((count, 32, 32), np.uint8), FPS)
    with pytest.raises(PitError, match=f"short.mp4 has {said}; expected 3 or more"):
        read_clip(tmp_path / "short.mp4", None, 448)


def test_a_measured_scale_is_said_with_its_error(bounced):
    _, _, track = bounced
    *_, scale, restitution = sentences(track)
    assert scale.startswith(f"scale = {track.scale:.1f} ± ")
    assert scale.endswith(" px/m at g = 9.810 m/s²")
    assert restitution == f"restitution e = {track.flights.restitution:.3f}"


def test_a_film_that_is_none_is_refused(tmp_path):
    (tmp_path / "text.mp4").write_text("no film")
    with pytest.raises(PitError, match="cannot be read as a video"):
        read_clip(tmp_path / "text.mp4", None, 448)


def test_a_film_that_is_turned_is_read_upright(tmp_path):
    """Telephones write frames on their side and a matrix into the track header."""
    frames = np.zeros((4, 64, 96), np.uint8)
    frames[:, 8:24, 64:90] = 255
    path = tmp_path / "film.mp4"
    write_mp4(path, frames, FPS)
    data = path.read_bytes()
    matrix = data.index(b"tkhd") + 4 + 40
    turned = struct.pack(">9i", 0, 1 << 16, 0, -1 << 16, 0, 0, 0, 0, 1 << 30)  # 90° clockwise
    path.write_bytes(data[:matrix] + turned + data[matrix + 36 :])
    clip = read_clip(path, None, 448)
    assert clip.size == (64, 96)
    upright = np.rot90(frames[0], -1)
    assert np.abs(clip.frames[0].numpy().astype(int) - upright).mean() < 3


def spoiled(clip):
    """The clip with camera noise and three wide lights and shadows that wander."""
    rng = np.random.default_rng(0)
    frames = clip.frames.numpy().astype(float)
    y, x = np.mgrid[: frames.shape[1], : frames.shape[2]]
    for t, frame in enumerate(frames):
        for k, light in enumerate((70, -14, 70)):
            along = (x - 120 - 170 * k - (14 if k % 2 else -14) * t) / 90
            frame += light * np.exp(-(along**2) - ((y - 140 - 110 * k - 6 * t) / 60) ** 2)
        frame += 20 * rng.normal(size=frame.shape)
    return clip._replace(frames=torch.from_numpy(frames.clip(0, 255).round().astype(np.uint8)))


def marks():
    """Frames and positions that a person marked in the real clip."""
    with (CLIPS / "ball-toss.csv").open(newline="") as file:
        rows = [[float(cell) for cell in row.values()] for row in csv.DictReader(file)]
    frame, x, y = np.array(rows).T
    return frame.astype(int), np.stack([x, y], 1)


@pytest.mark.skipif(not CLIPS.exists(), reason="the real clip is not here")
@pytest.mark.parametrize(
    ("spoil", "regime"),
    [(lambda clip: clip, {}), (spoiled, {"width": 448, "dark": False, "subtract": True})],
    ids=["as it is", "noise and shadows"],
)
def test_a_real_ball(tracker, spoil, regime):
    frames, places = marks()
    clip = spoil(read_clip(CLIPS / "ball-toss.mp4", None, 448))
    track = tracker.track(clip, scale=398.7, **regime)
    miss = track.position[frames] - places
    assert np.isfinite(miss).all()
    assert np.abs(miss - miss.mean(0)).mean() < 0.4
    assert 0.99 * 10.2 < track.g < 1.01 * 10.3


@pytest.mark.parametrize(
    ("side", "widths"), [(640, [224, 448, 112]), (160, [160, 112]), (64, [64])]
)
def test_a_clip_narrower_than_the_widths_to_try_is_tried_as_it_is(
    tracker, monkeypatch, side, widths
):
    tried = []

    def nothing(clip, regime, part):
        tried.append(regime.width)
        return Detections(np.arange(9.0), np.full((9, 1, 2), np.nan), np.zeros((9, 1)))

    monkeypatch.setattr(tracker, "detect", nothing)
    tracker.choose_regime(clip_of(np.zeros((9, 32, side), np.uint8)), None, False, None)
    assert tried == [width for width in widths for _ in (True, False)]


def test_detections_below_doubt_are_none(tracker):
    frames = np.zeros((8, 64, 64), np.uint8)
    found = tracker.detect(clip_of(frames), tracker.track(frames, width=64).regime, range(8))
    assert isinstance(found, Detections)
    assert np.isnan(found.position[found.confidence < 0.1]).all()


def test_a_long_clip_is_read_in_parts(tracker, monkeypatch):
    frames, _ = film(1.5, 0.7, frames=12)
    clip = clip_of(frames[:, ::2, ::2])
    regime = Regime(96, False, True)
    at_once = tracker.detect(clip, regime, range(2, 17))
    monkeypatch.setattr("pit_model.track.BATCH", 96 * 96 * 6)
    in_parts = tracker.detect(clip, regime, range(2, 17))
    np.testing.assert_allclose(in_parts.confidence, at_once.confidence, atol=1e-5)
    np.testing.assert_allclose(in_parts.position[:, 0], at_once.position[:, 0], atol=1e-3)
    np.testing.assert_array_equal(in_parts.time, np.arange(2, 17))


def test_the_command_says_and_writes_what_it_found(tmp_path):
    frames, _ = film(1.5, 0.7, frames=26)
    write_mp4(tmp_path / "ball.mp4", frames, FPS)
    words = ["track", str(tmp_path / "ball.mp4"), "--bright", "--median", "--width", "96"]
    words += ["--scale", "100", "--threads", "1", "--out", str(tmp_path / "out")]
    result = CliRunner(env={"COLUMNS": "80"}).invoke(app, words)
    assert result.exit_code == 0, result.output
    said = json.loads((tmp_path / "out" / "track.json").read_text())
    assert said["fps"] == pytest.approx(FPS)
    assert f"{said['frames_with_ball']} of 32 frames show the ball in flight" in result.output
    assert f"g = {said['g']:.3f} ± {said['g_error']:.3f} m/s² at 100.0 px/m" in result.output
    assert f"restitution e = {said['e']:.3f}" in result.output
    assert max(map(len, result.output.splitlines())) <= 80


def test_weights_of_a_run_become_a_file(trained, tmp_path):
    asked, _ = trained
    result = CliRunner().invoke(
        app, ["weights", str(asked.run_dir), "--out", str(tmp_path / "w.pt")]
    )
    assert result.exit_code == 0, result.output
    of_file, of_run = Tracker.load(tmp_path / "w.pt"), Tracker.load(asked.run_dir)
    assert of_file.config == of_run.config
    for a, b in zip(of_file.network.parameters(), of_run.network.parameters(), strict=True):
        assert torch.equal(a, b)
