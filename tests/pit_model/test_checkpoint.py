import logging
import os

import pytest
import torch

from pit_model import checkpoint
from pit_model.checkpoint import fingerprint, load, resume, save
from pit_model.config import Config
from pit_model.errors import PitError

MARK = fingerprint(Config(), seed=100)


def make_state():
    model = torch.nn.Linear(3, 2)
    optimiser = torch.optim.Adam(model.parameters())
    model(torch.ones(1, 3)).sum().backward()
    optimiser.step()
    return {
        "epoch": 4,
        "weights": model.state_dict(),
        "optimiser": optimiser.state_dict(),
        "history": [{"B56": 1.5}],
    }


def test_a_state_comes_back_bit_for_bit(tmp_path):
    path, state = tmp_path / "checkpoint", make_state()
    save(path, state, MARK)
    again = load(path, MARK)
    assert again["epoch"] == 4
    assert again["history"] == [{"B56": 1.5}]
    assert torch.equal(again["weights"]["weight"], state["weights"]["weight"])
    moments = again["optimiser"]["state"][0]["exp_avg_sq"]
    assert torch.equal(moments, state["optimiser"]["state"][0]["exp_avg_sq"])
    assert os.listdir(tmp_path) == ["checkpoint"]  # nothing is left beside it


def test_random_numbers_go_on_where_they_stopped(tmp_path):
    path = tmp_path / "checkpoint"
    torch.manual_seed(1)
    save(path, {}, MARK)
    wanted = torch.rand(3)
    torch.manual_seed(2)
    load(path, MARK)
    assert torch.equal(torch.rand(3), wanted)


@pytest.mark.parametrize("where", [5, 40, 400, -5])
def test_a_flipped_byte_is_found_and_the_file_ignored(tmp_path, caplog, where):
    path = tmp_path / "checkpoint"
    save(path, make_state(), MARK)
    data = bytearray(path.read_bytes())
    data[where] ^= 1
    path.write_bytes(data)
    with pytest.raises(PitError, match="damaged"):
        load(path, MARK)
    with caplog.at_level(logging.WARNING):
        assert resume(path, MARK) is None
    assert "starting from the beginning" in caplog.text


@pytest.mark.parametrize("content", [b"", b"x", b"y" * 100])
def test_a_short_or_foreign_file_is_ignored(tmp_path, content):
    path = tmp_path / "checkpoint"
    path.write_bytes(content)
    assert resume(path, MARK) is None


def test_a_checkpoint_of_another_run_is_ignored(tmp_path, caplog):
    path = tmp_path / "checkpoint"
    save(path, make_state(), MARK)
    for other in (fingerprint(Config(), 101), fingerprint(Config(A=False), 100)):
        with pytest.raises(PitError, match="belongs to another run"):
            load(path, other)
        assert resume(path, other) is None
    assert "another run" in caplog.text
    assert resume(path, MARK) is not None


def test_a_run_goes_on_behind_its_end_unless_its_step_sizes_decay():
    assert fingerprint(Config(epochs=3), 100) == fingerprint(Config(epochs=4), 100)
    assert fingerprint(Config(epochs=3, decay=0.5), 1) != fingerprint(
        Config(epochs=4, decay=0.5), 1
    )


def test_no_checkpoint_is_nothing_to_tell(tmp_path, caplog):
    assert resume(tmp_path / "checkpoint", MARK) is None
    assert caplog.text == ""


def test_a_write_that_fails_leaves_the_old_state(tmp_path, monkeypatch):
    path = tmp_path / "checkpoint"
    save(path, {"epoch": 1}, MARK)

    def full(_descriptor):
        raise OSError("no space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="no space"):
        save(path, {"epoch": 2}, MARK)
    monkeypatch.undo()
    assert load(path, MARK)["epoch"] == 1
    assert os.listdir(tmp_path) == ["checkpoint"]


def test_nothing_but_data_is_loaded(tmp_path):
    path = tmp_path / "checkpoint"
    save(path, {"model": torch.nn.Linear(1, 1)}, MARK)
    with pytest.raises(PitError, match="does not contain plain data"):
        load(path, MARK)


def test_a_run_on_the_cpu_leaves_cuda_alone(monkeypatch):
    def initialise():
        raise AssertionError("this would initialise every GPU")

    monkeypatch.setattr(torch.cuda, "get_rng_state_all", initialise)
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", initialise)
    state = checkpoint.random_state()
    assert state["cuda"] == []
    checkpoint.set_random_state(state)
