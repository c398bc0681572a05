from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import torch

from pit_model import dataset
from pit_model.config import Config
from pit_model.dataset import (
    Chunks,
    draw,
    epoch_chunks,
    evaluation_batches,
    make_split,
    noise_image,
    training_batches,
    windows,
)


def small(**more):
    counts = {"train_sequences": 7, "val_sequences": 3, "test_sequences": 4}
    return Config.from_settings({"preset": "demo", **counts, "frames": 13, **more})


@pytest.mark.parametrize("noise", ["static", "per_frame"])
@pytest.mark.parametrize("F", [False, True])
@pytest.mark.parametrize("antialias", [False, True])
def test_a_lazy_batch_equals_the_frame_drawn_directly(noise, F, antialias):
    config = small(F=F, noise=noise, antialias=antialias)
    split = make_split(config, "train")
    seen = 0
    for chunks in epoch_chunks(config, len(split), seed=0, epoch=0):
        batch = split.batch(chunks)
        for k, (video, start) in enumerate(zip(chunks.videos, chunks.starts, strict=True)):
            for step in range(chunks.length):
                t = start + step
                key = split.noise_keys[video] + (t if noise == "per_frame" else 0)
                ground = noise_image(key, config.image_size, config.sigma)
                frame = draw(ground[None], split.position[video, t][None], 2.0, antialias)[0]
                assert torch.equal(batch.frames[k, step], frame)
                assert torch.equal(batch.position[k, step], split.position[video, t])
                assert torch.equal(batch.velocity[k, step], split.velocity[video, t])
                assert torch.equal(batch.bounce[k, step], split.bounce[video, t])
                seen += 1
    assert seen > 7 * 13


@pytest.mark.parametrize(("frames", "chunk"), [(13, 4), (13, 1), (13, 100), (3, 5), (40, 19)])
def test_an_epoch_covers_each_window_once(frames, chunk):
    config = small(frames=frames, chunk_windows=chunk, batch_windows=20)
    seen = Counter()
    for chunks in epoch_chunks(config, 7, seed=3, epoch=2):
        assert len(chunks.videos) * (chunks.length - 2) <= 20
        for video, start in zip(chunks.videos, chunks.starts, strict=True):
            seen.update((video, start + w) for w in range(chunks.length - 2))
    assert seen == Counter((v, w) for v in range(7) for w in range(frames - 2))


def test_chunks_of_one_window_are_the_plain_way():
    batches = epoch_chunks(small(chunk_windows=1, batch_windows=8), 7, seed=0, epoch=0)
    assert {chunks.length for chunks in batches} == {3}
    assert max(len(set(chunks.videos)) for chunks in batches) > 1


def test_lengths_differ_by_one_at_most_and_the_cuts_move():
    config = small(frames=40, chunk_windows=12, batch_windows=24)
    cuts = set()
    for epoch in range(5):
        batches = epoch_chunks(config, 7, seed=0, epoch=epoch)
        assert {chunks.length for chunks in batches} == {11, 12}  # 38 windows are 10, 10, 9, 9
        cuts |= {start for chunks in batches for start in chunks.starts}
    assert {9, 10, 18, 19, 20} <= cuts


def test_the_order_follows_seed_and_epoch_alone():
    config = small()
    assert epoch_chunks(config, 7, 5, 1) == epoch_chunks(config, 7, 5, 1)
    assert epoch_chunks(config, 7, 5, 1) != epoch_chunks(config, 7, 5, 2)
    assert epoch_chunks(config, 7, 5, 1) != epoch_chunks(config, 7, 6, 1)
    state = torch.get_rng_state()
    split = make_split(small(F=True), "train")
    list(training_batches(split, 0, 0))
    assert torch.equal(torch.get_rng_state(), state)  # data leave the generator of weights alone


def test_evaluation_reads_whole_videos_in_order():
    config = small(eval_videos=3)
    split = make_split(config, "test")
    batches = list(evaluation_batches(split))
    assert [len(batch.frames) for batch in batches] == [3, 1]
    assert torch.equal(torch.cat([batch.position for batch in batches]), split.position)


def test_only_a_noisy_static_split_keeps_images():
    assert make_split(small(F=False), "val").noise is None
    assert make_split(small(F=True, noise="per_frame"), "val").noise is None
    noise = make_split(small(F=True), "val").noise
    assert noise.shape == (3, 32, 32)


def test_noise_per_frame_changes_from_frame_to_frame():
    split = make_split(small(F=True, noise="per_frame", antialias=True), "val")
    frames = split.batch(Chunks((0,), (0,), 2)).frames[0]
    assert (frames[0] != frames[1]).double().mean() > 0.4


def test_data_follow_from_their_seed():
    first = make_split(small(), "train").position
    assert torch.equal(first, make_split(small(), "train").position)
    assert not torch.equal(first, make_split(small(data_seed=43), "train").position)


def test_windows_are_in_order_chunk_by_chunk():
    x = torch.arange(10).view(2, 5)
    assert windows(x).tolist() == [[0, 1, 2], [1, 2, 3], [2, 3, 4], [5, 6, 7], [6, 7, 8], [7, 8, 9]]
    assert windows(torch.zeros(2, 5, 4, 3)).shape == (6, 3, 4, 3)


def test_noise_of_every_frame_is_drawn_on_the_device(monkeypatch):
    """So that it need not be sent there; torch's device `meta` stands for a GPU."""
    devices = []

    def noise(key, size, sigma, device="cpu"):
        devices.append(str(device))
        return torch.zeros(size, size, device=device)

    monkeypatch.setattr(dataset, "noise_image", noise)
    split = make_split(small(F=True, noise="per_frame"), "train")
    on_device = replace(split, position=split.position.to("meta"))
    assert on_device._background(Chunks((0,), (0,), 5)).shape == (5, 32, 32)
    assert devices == ["meta"] * 5


def drawn_directly(background, x, y, radius, antialias):
    """The same disc over the whole grid, pixel by pixel, in NumPy."""
    frame = background.numpy().copy()
    x, y = np.float32(x), np.float32(y)
    for i in range(len(frame)):
        for j in range(len(frame)):
            squared = (np.float32(j) - x) ** 2 + (np.float32(i) - y) ** 2
            if antialias:
                coverage = np.clip(np.float32(radius + 0.5) - np.sqrt(squared), 0, 1)
            else:
                coverage = np.float32(squared <= radius**2)
            frame[i, j] += coverage * (1 - frame[i, j])
    return frame


@pytest.mark.parametrize("antialias", [False, True])
@pytest.mark.parametrize("radius", [2.0, 0.4, 3.5])
def test_a_frame_is_the_disc_over_the_background_exactly(radius, antialias):
    size = 24
    edge = [(radius, radius), (size - radius, size - radius), (0.0, 0.0), (11.5, size - 1.0)]
    rng = np.random.default_rng(0)
    places = np.array(edge + list(rng.uniform(radius, size - radius, (6, 2))), dtype=np.float32)
    background = torch.stack([noise_image(k, size, 1.0) for k in range(len(places))])
    frames = draw(background, torch.from_numpy(places), radius, antialias)
    for frame, ground, (x, y) in zip(frames, background, places, strict=True):
        wanted = drawn_directly(ground, x, y, radius, antialias)
        if antialias:  # the two square roots may differ in their last bit
            np.testing.assert_allclose(frame.numpy(), wanted, atol=1e-6)
        else:
            np.testing.assert_array_equal(frame.numpy(), wanted)


def test_x_is_the_column_and_a_pixel_lies_at_its_index():
    frame = draw(torch.zeros(1, 16, 16), torch.tensor([[10.0, 4.0]]), 2.0)[0]
    assert frame.sum() == 13  # the pixels within 2 of a pixel centre
    rows, columns = torch.nonzero(frame, as_tuple=True)
    assert (columns.double().mean(), rows.double().mean()) == (10.0, 4.0)


def test_the_background_is_left_alone():
    background = torch.zeros(2, 16, 16)
    draw(background, torch.full((2, 2), 8.0), 2.0)
    assert background.sum() == 0


def test_noise_is_clipped_and_follows_its_key():
    image = noise_image(7, 64, 1.0)
    assert image.min() == 0
    assert image.max() == 1
    assert (image == 0).double().mean() == pytest.approx(0.5, abs=0.03)
    assert (image == 1).double().mean() == pytest.approx(0.159, abs=0.03)
    assert torch.equal(image, noise_image(7, 64, 1.0))
    assert not torch.equal(image, noise_image(8, 64, 1.0))
