import csv
import os
from math import isfinite

import pytest
import torch

from pit_model import backend
from pit_model.backend import find_device
from pit_model.config import Config
from pit_model.errors import PitError
from pit_model.metrics import metric_names

from .conftest import TINY, Asked

NAMES = metric_names((4, 8, 16))


def test_a_request_becomes_fifteen_metrics_and_what_goes_with_them(trained):
    _, answer = trained
    assert set(NAMES) <= set(answer)
    for name in NAMES:
        assert isfinite(answer[name])
        assert answer[f"{name}_epoch"] in (0, 1)
        assert isfinite(answer[f"{name}_final"])
    assert answer["train_seconds"] > 0
    assert answer["diverged"] == 0


def test_progress_is_reported_after_each_epoch(trained):
    asked, _ = trained
    assert [(step, total) for step, total, _ in asked.reports] == [(1, 2), (2, 2)]
    assert {"loss", *NAMES} <= set(asked.reports[0][2])


def test_the_table_of_epochs_is_in_the_run_directory(trained):
    asked, _ = trained
    with (asked.run_dir / "epochs.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["0", "1"]
    speed = {"train_windows_per_s", "eval_windows_per_s", "peak_rss_mb"}
    assert {"loss", "ae", *NAMES, *speed} <= set(rows[0])


def test_levels_settings_seed_and_threads_reach_the_trainer(tmp_path, monkeypatch):
    heard = {}

    def train(config, seed, device, run_dir, report):
        threads = torch.get_num_threads()
        heard.update(config=config, seed=seed, device=device, run_dir=run_dir, threads=threads)
        return {"B4": 1.0}

    monkeypatch.setattr(backend, "train", train)
    levels = {"A": False, "B": True, "C": False, "D": True, "E": False, "F": True}
    answer = backend.run(Asked(tmp_path, factors=levels, threads=3, seed=12))
    assert heard["config"] == Config.from_settings(TINY, levels)
    assert heard["config"].label == "A0B1C0D1E0F1"
    assert (heard["seed"], heard["threads"], heard["run_dir"]) == (12, 3, tmp_path)
    assert answer["B4"] == 1.0
    assert answer["P16"] != answer["P16"]  # a metric without a choice is there, and not a number


def test_the_name_of_several_settings_is_none_itself(tmp_path, monkeypatch):
    heard = []
    monkeypatch.setattr(backend, "train", lambda config, *_: heard.append(config) or {})
    settings = {**TINY, "physics": "exact", "decay": 0.5}
    backend.run(Asked(tmp_path, settings=settings, factors={"setting": "better", "F": True}))
    assert heard == [Config.from_settings(settings, {"F": True})]
    with pytest.raises(PitError, match="unknown setting 'settings'"):
        backend.run(Asked(tmp_path, settings=settings, factors={"settings": "better"}))


def test_the_same_request_in_a_finished_directory_gives_the_same_numbers(trained):
    asked, answer = trained
    again = backend.run(Asked(asked.run_dir, resumed=True))
    assert again == answer


def test_a_device_that_is_not_there_is_named():
    assert find_device("cpu") == torch.device("cpu")
    with pytest.raises(PitError, match="device 'cuda:9' was not found; this machine has cpu"):
        find_device("cuda:9")
    with pytest.raises(PitError, match="'gpu' was not found"):
        find_device("gpu")


@pytest.mark.parametrize(
    ("name", "found"), [("cuda", "cuda:0"), ("xpu", "xpu:0"), ("xpu:1", "xpu:1"), ("mps", "mps")]
)
def test_devices_of_three_makers_have_names(name, found, monkeypatch):
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.xpu, "device_count", lambda: 2)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert find_device(name) == torch.device(found)
    with pytest.raises(PitError, match="cpu, cuda:0, xpu:0, xpu:1, mps"):
        find_device("xpu:2")


def test_what_is_compiled_is_shared_by_the_runs_of_a_study(tmp_path, monkeypatch):
    monkeypatch.setattr(backend, "train", lambda *_: {"B4": 1.0})
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", "unset it again at the end")
    monkeypatch.delenv("TORCHINDUCTOR_CACHE_DIR")
    run_dir = tmp_path / "000-r1"
    run_dir.mkdir()
    backend.run(Asked(run_dir))
    assert "TORCHINDUCTOR_CACHE_DIR" not in os.environ
    backend.run(Asked(run_dir, settings={**TINY, "compile": True}))
    assert os.environ["TORCHINDUCTOR_CACHE_DIR"] == str(tmp_path / ".compiled")


def test_a_bad_setting_ends_before_anything_is_written(tmp_path):
    with pytest.raises(PitError, match="did you mean 'epochs'"):
        backend.run(Asked(tmp_path, settings={**TINY, "epoch": 3}))
    assert list(tmp_path.iterdir()) == []


def test_streams_of_seeds_reach_the_weights_and_the_data(tmp_path, monkeypatch):
    heard = {}

    def train(config, seed, device, run_dir, report):
        heard.update(data_seed=config.data_seed, seed=seed)
        return {}

    monkeypatch.setattr(backend, "train", train)
    backend.run(Asked(tmp_path, seed=1, seeds={"data": 5, "init": 3}))
    assert heard == {"data_seed": 5, "seed": 3}
    with pytest.raises(PitError, match=r"'dta' is unknown.*did you mean 'data'"):
        backend.run(Asked(tmp_path, seeds={"init": 1, "dta": 2}))
    both = Asked(tmp_path, settings={**TINY, "data_seed": 9}, seeds={"init": 1, "data": 2})
    with pytest.raises(PitError, match="stream data is 2 and the setting data_seed 9; remove"):
        backend.run(both)
