import numpy as np
import pytest
import torch
from PIL import Image

from pit_model import video
from pit_model.config import Config
from pit_model.dataset import Chunks, make_split
from pit_model.errors import PitError
from pit_model.video import check_format, read_clip, write_sequences, write_video

from .conftest import TINY


def test_sequences_are_written_as_data_and_film(tmp_path):
    config = Config.from_settings(TINY, {"F": True})
    paths = write_sequences(config, "test", tmp_path / "videos", "gif")
    assert [path.name for path in paths] == ["test-000.npz", "test-001.npz"]
    split = make_split(config, "test")
    batch = split.batch(Chunks((1,), (0,), 8))
    with np.load(paths[1]) as data:
        np.testing.assert_array_equal(data["position"], split.position[1])
        np.testing.assert_array_equal(data["velocity"], split.velocity[1])
        np.testing.assert_array_equal(data["bounce"], split.bounce[1])
        error = torch.from_numpy(data["frames"]) / 255 - batch.frames[0]
        assert error.abs().max() <= 0.5 / 255 + 1e-6
    with Image.open(paths[1].with_suffix(".gif")) as film:
        assert film.n_frames == 8
        assert film.size == (224, 224)  # 16 pixels, enlarged 14 times
        assert film.info["loop"] == 0


def test_the_film_shows_the_frames(tmp_path):
    frames = np.zeros((2, 224, 224), np.uint8)
    frames[0, 10, 20] = frames[1, 30, 40] = 255
    write_video(tmp_path / "film.gif", frames)
    with Image.open(tmp_path / "film.gif") as film:
        for t in range(2):
            film.seek(t)
            np.testing.assert_array_equal(np.asarray(film.convert("L")), frames[t])


def test_an_unknown_format_is_refused():
    with pytest.raises(PitError, match="'avi' is unknown; expected one of gif, mp4"):
        check_format("avi")


def test_mp4_without_its_package_is_refused_with_the_way_out(monkeypatch):
    monkeypatch.setattr(video, "find_spec", lambda name: None)
    with pytest.raises(
        PitError, match=r"mp4 needs PyAV: pip install 'pit-doe\[video\]'; or use gif"
    ):
        check_format("mp4")


def test_mp4_shows_the_frames(tmp_path):
    frames = np.zeros((3, 224, 225), np.uint8)
    frames[1, 40:60, 100:130] = 255
    write_video(tmp_path / "film.mp4", frames)
    clip = read_clip(tmp_path / "film.mp4", None, 448)
    assert clip.frames.shape == (3, 224, 224)  # sides are cut to even numbers
    assert clip.fps == pytest.approx(12.5)
    error = clip.frames.int() - torch.from_numpy(frames[:, :, :224]).int()
    assert error.abs().float().mean() < 2
