import numpy as np
import pytest
import torch

from pit_model.render import draw, noise_image


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
