import shutil

import pytest
import torch

from pit_model.config import Config
from pit_model.errors import PitError
from pit_model.metrics import metric_names
from pit_model.rundir import RUN, evaluate_run, read_metrics, read_run, read_trained, write_run

from .conftest import TINY

CPU = torch.device("cpu")


def test_settings_and_seed_come_back(tmp_path):
    config = Config.from_settings(TINY, {"A": False})
    write_run(tmp_path, config, 9)
    assert read_run(tmp_path) == (config, 9)
    assert [path.name for path in tmp_path.iterdir()] == [RUN]


def test_evaluation_gives_the_numbers_of_the_run_again(trained):
    asked, answer = trained
    values = evaluate_run(read_trained(asked.run_dir), "test", CPU)
    assert values == {name: answer[name] for name in metric_names((4, 8, 16))}


def test_validation_gives_the_smallest_values_of_the_history(trained):
    run = read_trained(trained[0].run_dir)
    values = evaluate_run(run, "val", CPU)
    for name, value in values.items():
        assert value == min(epoch[name] for epoch in run.history)


def test_the_answer_of_the_backend_is_kept(trained, tmp_path):
    asked, answer = trained
    assert read_metrics(asked.run_dir) == answer
    with pytest.raises(PitError, match="is not finished"):
        read_metrics(tmp_path)


def test_what_is_missing_or_damaged_is_named(tmp_path, trained):
    with pytest.raises(PitError, match="is not a run"):
        read_run(tmp_path)
    (tmp_path / RUN).write_text("{")
    with pytest.raises(PitError, match="is damaged"):
        read_run(tmp_path)
    config, seed = read_run(trained[0].run_dir)
    write_run(tmp_path, config, seed)
    with pytest.raises(PitError, match="has finished no epoch"):
        read_trained(tmp_path)


def test_a_checkpoint_of_another_architecture_is_refused(tmp_path, trained):
    shutil.copytree(trained[0].run_dir, tmp_path, dirs_exist_ok=True)
    config, seed = read_run(tmp_path)
    write_run(tmp_path, Config(**{**config.as_dict(), "fuse_relu": "residual"}), seed)
    with pytest.raises(PitError, match="belongs to another run"):
        read_trained(tmp_path)
