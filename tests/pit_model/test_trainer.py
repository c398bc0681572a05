import csv
import functools
import multiprocessing
import os
import random
import shutil
import signal
import time

import pytest
import torch

from pit_model import checkpoint, dataset, trainer
from pit_model.config import Config, parse_label
from pit_model.errors import PitError
from pit_model.losses import PARTS
from pit_model.metrics import choose_epochs, metric_names
from pit_model.runtime import arithmetic, peak_gpu_mb

from .conftest import TINY

SETTINGS = {**TINY, "epochs": 3, "batch_windows": 6, "chunk_windows": 3}
TIMES = {"train_seconds"}


def config_of(**more):
    return Config.from_settings({**SETTINGS, **more}, {"F": 1, "D": 1})


def quiet(step, total, **values):
    pass


def numbers(result):
    """A result without what a clock decides."""
    return {name: value for name, value in result.items() if name not in TIMES}


def stable_rows(run_dir):
    with (run_dir / trainer.EPOCHS).open(newline="") as file:
        return [
            {k: v for k, v in row.items() if not k.endswith("_per_s") and k != "peak_rss_mb"}
            for row in csv.DictReader(file)
        ]


def saved_state(run_dir):
    return checkpoint.load(run_dir / trainer.CHECKPOINT, checkpoint.fingerprint(config_of(), 5))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """An uninterrupted run: its directory and its numbers."""
    run_dir = tmp_path_factory.mktemp("whole")
    return run_dir, trainer.train(config_of(), 5, "cpu", run_dir, quiet)


def test_the_result_holds_the_protocol(whole):
    run_dir, result = whole
    names = metric_names((4, 8, 16))
    history = saved_state(run_dir)["history"]
    chosen = choose_epochs(history)
    for name in names:
        assert result[f"{name}_epoch"] == chosen[name]
        if chosen[name] == 2:
            assert result[name] == result[f"{name}_final"]
    assert result["diverged"] == 0
    assert result["diverged_epoch"] == -1
    assert set(result) == {
        *names,
        *(f"{name}_epoch" for name in names),
        *(f"{name}_final" for name in names),
        "train_seconds",
        "diverged",
        "diverged_epoch",
        "diverged_step",
    }


def test_the_table_of_epochs(whole):
    run_dir, _ = whole
    with (run_dir / trainer.EPOCHS).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == [0, 1, 2]
    assert all(float(row[name]) >= 0 for row in rows for name in metric_names((4, 8, 16)))
    assert all(float(row[name]) > 0 for row in rows for name in PARTS)
    assert all(float(row["train_windows_per_s"]) > 0 for row in rows)
    assert all(float(row["eval_windows_per_s"]) > 0 for row in rows)
    assert all(float(row["peak_rss_mb"]) > 50 for row in rows)


def test_a_loss_that_is_off_leaves_its_column_empty(tmp_path):
    config = Config.from_settings({**SETTINGS, "epochs": 1}, {"C": 0, "D": 0, "E": 0, "A": 0})
    trainer.train(config, 0, "cpu", tmp_path, quiet)
    row = stable_rows(tmp_path)[0]
    assert [row[part] for part in PARTS[1:]] == [""] * 4
    assert float(row["ae"]) == float(row["loss"]) > 0


def test_the_same_request_gives_the_same_numbers(whole, tmp_path):
    run_dir, result = whole
    again = trainer.train(config_of(), 5, "cpu", tmp_path, quiet)
    assert numbers(again) == numbers(result)
    assert stable_rows(tmp_path) == stable_rows(run_dir)


def test_a_finished_run_goes_on_with_more_epochs_and_does_not_shrink(whole, tmp_path):
    run_dir, result = whole
    trainer.train(config_of(epochs=1), 5, "cpu", tmp_path, quiet)
    steps = []
    longer = trainer.train(
        config_of(), 5, "cpu", tmp_path, lambda step, total, **values: steps.append(step)
    )
    assert steps == [2, 3]  # the first epoch was not trained again
    assert numbers(longer) == numbers(result)
    assert stable_rows(tmp_path) == stable_rows(run_dir)
    with pytest.raises(PitError, match="epochs = 2, but the run has finished 3"):
        trainer.train(config_of(epochs=2), 5, "cpu", tmp_path, quiet)
    assert len(stable_rows(tmp_path)) == 3


def test_seeds_of_weights_and_order_are_not_the_data(whole, tmp_path):
    other = trainer.train(config_of(), 6, "cpu", tmp_path, quiet)
    assert numbers(other) != numbers(whole[1])


def test_first_weights_leave_the_global_random_numbers_alone():
    before = torch.get_rng_state()
    trainer.new_run(config_of(), 3, torch.device("cpu"))
    assert torch.equal(torch.get_rng_state(), before)


def test_first_heatmaps_are_set_once(tmp_path, monkeypatch):
    """By the first batch of a run that begins, not by one that goes on."""
    seen = []
    monkeypatch.setattr(
        trainer.init, "set_first_heatmaps", lambda _, frames, __: seen.append(frames)
    )
    config = config_of(epochs=1)
    trainer.train(config, 5, "cpu", tmp_path, quiet)
    trainer.train(config, 5, "cpu", tmp_path, quiet)
    assert len(seen) == 1
    split = dataset.make_split(config, "train")
    first = next(dataset.training_batches(split, 5, 0)).frames
    assert torch.equal(seen[0], first)


def test_the_decoder_has_a_step_size_of_its_own():
    """The first step of Adam moves each weight by its step size along the sign of the gradient."""
    config = config_of(learning_rate=1e-3, decoder_learning_rate=4e-3)
    network = trainer.new_run(config, 5, torch.device("cpu")).network
    optimizer = trainer.make_optimizer(network, config)
    before = {name: p.detach().clone() for name, p in network.named_parameters()}
    for parameter in network.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    for name, parameter in network.named_parameters():
        expected = 4e-3 if name.startswith("decoder.") else 1e-3
        moved = before[name] - parameter.detach()
        assert torch.allclose(moved, torch.tensor(expected), rtol=1e-2), name


def test_the_decay_ends_with_the_last_step():
    config = config_of(decay=0.5)
    split = dataset.make_split(config, "train")
    steps = config.epochs * sum(1 for _ in dataset.training_batches(split, 5, 0))
    optimizer = trainer.new_run(config, 5, torch.device("cpu")).optimizer
    assert optimizer.decay == (steps - round(steps / 2), steps)


@pytest.mark.slow
@pytest.mark.parametrize("label", ["A1B1C1D0E0F1", "A1B1C1D1E1F1"])
def test_encoders_live_under_noise_in_the_shortest_preset(label, tmp_path):
    """A heatmap that has sunk below its floor is flat, and its argmax the corner."""
    settings = {"preset": "demo", "test_sequences": 1}
    config = Config.from_settings(settings, parse_label(label))
    history = []
    trainer.train(config, 903, "cpu", tmp_path, lambda *_, **values: history.append(values))
    assert history[-1]["H8"] < 2
    assert history[-1]["H32"] < 2


@pytest.mark.parametrize("longest", [0.0, 0.5])
def test_long_gradients_are_shortened_before_a_step(longest, monkeypatch):
    """All parts of the network together."""
    config = config_of(gradient_norm=longest, epochs=1)
    split = dataset.make_split(config, "train")
    run = trainer.new_run(config, 5, torch.device("cpu"))
    norms, take_step = [], run.optimizer.step

    def step():
        norms.append(torch.cat([p.grad.flatten() for p in run.network.parameters()]).norm().item())
        take_step()

    monkeypatch.setattr(run.optimizer, "step", step)
    trainer.train_epoch(run, run.network, split, 5, 0)
    if longest:
        assert norms == pytest.approx([longest] * len(norms), rel=1e-4)
    else:
        assert min(norms) > 0.5


def test_the_test_set_is_touched_last(tmp_path):
    """Its maker raises until every epoch has been reported, and it is made once."""
    done, asked = [], []

    def report(step, total, **values):
        done.append(step)

    def guarded(config, name, device):
        asked.append(name)
        if name == "test" and len(done) < config.epochs:
            raise AssertionError("the test set was touched before the end of training")
        return dataset.make_split(config, name, device)

    trainer.train(config_of(), 5, "cpu", tmp_path, report, guarded)
    assert done == [1, 2, 3]
    assert asked.count("test") == 1
    assert asked[-1] == "test"


def test_test_values_come_from_the_kept_weights(whole, tmp_path):
    """Each metric's test value is that of a run that ends with the epoch it chose."""
    run_dir, result = whole
    state = saved_state(run_dir)
    config = config_of()
    split = dataset.make_split(config, "test")
    for epoch in sorted({int(result[f"{m}_epoch"]) for m in metric_names(config.scales)}):
        run = trainer.new_run(config, 5, torch.device("cpu"))
        train_split = dataset.make_split(config, "train")
        first = next(dataset.training_batches(train_split, 5, 0))
        trainer.init.set_first_heatmaps(run.network, first.frames, config)
        for e in range(epoch + 1):
            trainer.train_epoch(run, run.network, train_split, 5, e)
        values = trainer.evaluate(run.network, run.network, split)
        for name in metric_names(config.scales):
            if result[f"{name}_epoch"] == epoch:
                assert values[name] == result[name]
    assert {*choose_epochs(state["history"]).values(), 2} == set(state["kept"])


class KilledError(Exception):
    pass


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_run_stopped_after_an_epoch_goes_on_bit_for_bit(whole, tmp_path, after):
    def stop(step, total, **values):
        if step == after:
            raise KilledError

    with pytest.raises(KilledError):
        trainer.train(config_of(), 5, "cpu", tmp_path, stop)
    steps = []
    result = trainer.train(
        config_of(), 5, "cpu", tmp_path, lambda step, total, **_: steps.append(step)
    )
    assert steps == list(range(after + 1, 4))
    assert numbers(result) == numbers(whole[1])
    assert stable_rows(tmp_path) == stable_rows(whole[0])


def test_a_kill_between_checkpoint_and_table_loses_no_row(whole, tmp_path):
    """The table is written anew from the checkpoint, even if nothing is left to train."""
    run_dir = tmp_path / "run"
    shutil.copytree(whole[0], run_dir)
    (run_dir / trainer.EPOCHS).unlink()
    result = trainer.train(config_of(), 5, "cpu", run_dir, quiet)
    assert numbers(result) == numbers(whole[1])
    assert stable_rows(run_dir) == stable_rows(whole[0])


def _train_in_child(run_dir, queue):
    torch.set_num_threads(1)
    queue.put(trainer.train(config_of(epochs=8), 5, "cpu", run_dir, quiet))


@pytest.mark.slow
def test_a_run_killed_six_times_ends_with_the_same_numbers(tmp_path):
    """SIGKILL at random moments of the first epoch, and after each further checkpoint."""
    context = multiprocessing.get_context("fork")
    rng = random.Random(1)
    reference = trainer.train(config_of(epochs=8), 5, "cpu", _made(tmp_path / "whole"), quiet)
    run_dir = _made(tmp_path / "killed")
    saved = run_dir / trainer.CHECKPOINT
    for kill in range(7):
        before = saved.exists() and saved.stat().st_mtime_ns
        queue = context.Queue()
        child = context.Process(target=_train_in_child, args=(run_dir, queue))
        child.start()
        if kill == 6:
            result = queue.get(timeout=120)
        else:
            while (
                kill
                and child.is_alive()
                and before == (saved.exists() and saved.stat().st_mtime_ns)
            ):
                time.sleep(0.005)
            time.sleep(rng.uniform(0.0, 0.1))
            os.kill(child.pid, signal.SIGKILL)
        child.join()
    assert numbers(result) == numbers(reference)
    assert stable_rows(run_dir) == stable_rows(tmp_path / "whole")


def _made(path):
    path.mkdir()
    return path


@pytest.mark.parametrize("damage", ["cut", "foreign"])
def test_a_useless_checkpoint_is_ignored_with_a_line(whole, tmp_path, caplog, damage):
    path = tmp_path / trainer.CHECKPOINT
    if damage == "cut":
        path.write_bytes((whole[0] / trainer.CHECKPOINT).read_bytes()[:-100])
    else:
        trainer.train(config_of(epochs=1), 9, "cpu", tmp_path, quiet)
    result = trainer.train(config_of(), 5, "cpu", tmp_path, quiet)
    assert numbers(result) == numbers(whole[1])
    assert "starting from the beginning" in caplog.text


def poison(monkeypatch, epoch, step):
    """Make the loss of one step infinite."""
    honest = trainer.total_loss
    calls = {"step": -1, "epoch": -1}

    def total_loss(prediction, truth, config, at):
        calls["step"] = calls["step"] + 1 if calls["epoch"] == at else 0
        calls["epoch"] = at
        losses = honest(prediction, truth, config, at)
        if (at, calls["step"]) == (epoch, step):
            return losses._replace(total=losses.total * torch.inf)
        return losses

    monkeypatch.setattr(trainer, "total_loss", total_loss)


def test_divergence_keeps_the_epochs_before_it(whole, tmp_path, monkeypatch):
    poison(monkeypatch, epoch=2, step=1)
    result = trainer.train(config_of(), 5, "cpu", tmp_path, quiet)
    assert (result["diverged"], result["diverged_epoch"], result["diverged_step"]) == (1, 2, 1)
    assert len(stable_rows(tmp_path)) == 2
    assert stable_rows(tmp_path) == stable_rows(whole[0])[:2]
    chosen = {result[f"{name}_epoch"] for name in metric_names((4, 8, 16))}
    assert chosen <= {0, 1}
    again = trainer.train(config_of(), 5, "cpu", tmp_path, quiet)
    assert again == result


def test_a_broken_gradient_in_the_last_step_is_divergence_too(tmp_path, monkeypatch):
    run = trainer.new_run(config_of(), 5, torch.device("cpu"))
    split = dataset.make_split(config_of(), "train")
    last = len(dataset.epoch_chunks(config_of(), 3, 5, 0)) - 1
    honest, calls = run.optimizer.step, []

    def step():
        calls.append(0)
        if len(calls) == last + 1:
            run.network.fuse.bias.grad[0] = torch.nan
        return honest()

    monkeypatch.setattr(run.optimizer, "step", step)
    _, bad = trainer.train_epoch(run, run.network, split, 5, 0)
    assert bad == last + 1


def test_nothing_finite_at_all_is_a_failure_with_its_reason(tmp_path, monkeypatch):
    poison(monkeypatch, epoch=0, step=0)
    with pytest.raises(PitError, match="not finite in epoch 0, step 0"):
        trainer.train(config_of(), 5, "cpu", tmp_path, quiet)


def test_progress_is_reported_after_each_epoch(tmp_path):
    heard = []
    trainer.train(
        config_of(epochs=2),
        5,
        "cpu",
        tmp_path,
        lambda *place, **values: heard.append((place, values)),
    )
    assert [place for place, _ in heard] == [(1, 2), (2, 2)]
    assert {"loss", *metric_names((4, 8, 16))} == set(heard[0][1])


def test_nothing_is_read_back_within_an_epoch(monkeypatch):
    """No `.item()`, `float` or `bool` of a tensor before the last step has been taken."""
    run = trainer.new_run(config_of(), 5, torch.device("cpu"))
    split = dataset.make_split(config_of(), "train")
    steps = len(dataset.epoch_chunks(config_of(), 3, 5, 0))
    taken, early = [], []
    honest = run.optimizer.step
    monkeypatch.setattr(run.optimizer, "step", lambda: (taken.append(0), honest())[1])
    for name in ("item", "tolist", "__bool__", "__float__", "__int__"):
        original = getattr(torch.Tensor, name)

        def watched(tensor, *args, name=name, original=original):
            if len(taken) < steps:
                early.append(name)
            return original(tensor, *args)

        monkeypatch.setattr(torch.Tensor, name, watched)
    trainer.train_epoch(run, run.network, split, 5, 0)
    assert len(taken) == steps
    assert early == []


def test_bfloat16_is_for_the_encoder_alone(tmp_path):
    config = config_of(bf16=True)
    low = trainer.new_run(config, 5, torch.device("cpu")).network
    full = trainer.new_run(config_of(), 5, torch.device("cpu")).network
    frames = dataset.make_split(config, "train").batch(dataset.Chunks((0,), (0,), 4)).frames
    encoded = []
    low.encoder.register_forward_hook(lambda *said: encoded.append(said[-1]))
    rough, exact = low(frames, True), full(frames, True)
    assert encoded[0].dtype == torch.bfloat16
    assert encoded[0].is_contiguous(memory_format=torch.channels_last)
    for a, b in zip((*rough.heatmaps, rough.image), (*exact.heatmaps, exact.image), strict=True):
        assert a.dtype == torch.float32
        assert not torch.equal(a, b)
        assert torch.allclose(a, b, atol=0.1)
    result = trainer.train(config_of(bf16=True, epochs=1), 5, "cpu", tmp_path, quiet)
    assert result["diverged"] == 0


def test_the_network_can_be_compiled(monkeypatch):
    """Traced whole, without the code generator that needs a C++ compiler and a minute."""
    traced = functools.partial(torch.compile, backend="eager", fullgraph=True)
    monkeypatch.setattr(torch, "compile", traced)
    config = config_of(compile=True)
    run = trainer.new_run(config, 5, torch.device("cpu"))
    frames = torch.rand(2, 4, 16, 16)
    forward = trainer.make_forward(run.network.eval(), config)
    with torch.no_grad():
        a, b = forward(frames, True), run.network(frames, True)
    for x, y in zip((*a.heatmaps, a.image), (*b.heatmaps, b.image), strict=True):
        assert torch.allclose(x, y, atol=1e-4)


def test_tf32_is_set_for_the_run_and_put_back():
    """By the newer of torch's two ways: after it the older one can no longer be read."""

    def precisions():
        return [b.fp32_precision for b in (torch.backends.cuda.matmul, torch.backends.cudnn.conv)]

    before = precisions()
    with arithmetic(config_of(tf32=True)):
        assert precisions() == ["tf32", "tf32"]
        with arithmetic(config_of(tf32=False)):
            assert precisions() == ["ieee", "ieee"]
        assert precisions() == ["tf32", "tf32"]
    assert precisions() == before


def test_the_memory_of_a_gpu_is_noted_beside_that_of_the_process(tmp_path, monkeypatch):
    monkeypatch.setattr(torch.cuda, "max_memory_reserved", lambda device: 3 * 2**20)
    assert peak_gpu_mb(torch.device("cuda:0")) == {"peak_gpu_mb": 3.0}
    assert peak_gpu_mb(torch.device("cpu")) == {}
    rows = [{"epoch": 0, "peak_gpu_mb": 3.0}]
    trainer.write_rows(tmp_path / "epochs.csv", rows, config_of())
    assert (tmp_path / "epochs.csv").read_text().splitlines()[0].endswith(",peak_gpu_mb")
