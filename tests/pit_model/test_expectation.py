import pytest
import torch

from pit_model.expectation import (
    EPSILON,
    bicubic,
    bilinear,
    biquadratic,
    coarse_to_fine,
    hard_argmax,
)

SOFT = [bilinear, coarse_to_fine, biquadratic, bicubic]


def one_pixel(x, y, height=12, width=16):
    heatmap = torch.zeros(height, width, dtype=torch.float64)
    heatmap[y, x] = 1.0
    return heatmap


@pytest.mark.parametrize("operator", [*SOFT, hard_argmax])
@pytest.mark.parametrize(("x", "y"), [(5, 7), (0, 0), (15, 0), (0, 11), (15, 11), (15, 4)])
def test_a_single_pixel_is_found_anywhere(operator, x, y):
    assert operator(one_pixel(x, y)).tolist() == pytest.approx([x, y], abs=20 * EPSILON)


def test_bilinear_is_the_centroid_of_everything():
    heatmap = one_pixel(2, 3) * 3 + one_pixel(10, 11)
    assert bilinear(heatmap).tolist() == pytest.approx([4, 5], abs=1e-4)


def test_negative_values_count_as_zero():
    heatmap = one_pixel(2, 3) - 5 * one_pixel(10, 11)
    for operator in SOFT:
        assert operator(heatmap).tolist() == pytest.approx([2, 3], abs=1e-4)


def test_coarse_to_fine_sees_three_pixels_and_no_further():
    near = one_pixel(6, 5) + 0.5 * one_pixel(9, 5)  # (6 + 4.5) / 1.5
    assert coarse_to_fine(near).tolist() == pytest.approx([7, 5], abs=1e-4)
    far = one_pixel(6, 5) + 0.5 * one_pixel(10, 5)
    assert coarse_to_fine(far).tolist() == pytest.approx([6, 5], abs=1e-4)


def test_coarse_to_fine_is_clipped_at_the_border():
    heatmap = one_pixel(0, 0) + 0.5 * one_pixel(1, 0)
    assert coarse_to_fine(heatmap).tolist() == pytest.approx([1 / 3, 0], abs=1e-4)


def test_biquadratic_weights_by_hand():
    heatmap = 2 * one_pixel(5, 5) + one_pixel(6, 5) + one_pixel(7, 5)  # x̄ = 23/4
    w = [1 - (j - 5.75) ** 2 / 4 for j in (5, 6, 7)]
    expected = (2 * w[0] * 5 + w[1] * 6 + w[2] * 7) / (2 * w[0] + w[1] + w[2])
    assert biquadratic(heatmap).tolist() == pytest.approx([expected, 5], abs=1e-4)


def test_biquadratic_falls_off_with_the_distance_and_bicubic_with_each_axis():
    heatmap = one_pixel(5, 5) + one_pixel(6, 6) * 3  # centroid (5.75, 5.75)
    near, far = 0.25**2 * 2, 0.75**2 * 2
    w = [1 - far / 4, 3 * (1 - near / 4)]
    expected = (5 * w[0] + 6 * w[1]) / sum(w)
    assert biquadratic(heatmap).tolist() == pytest.approx([expected] * 2, abs=1e-4)
    w = [(1 - 0.75**3 / 8) ** 2, 3 * (1 - 0.25**3 / 8) ** 2]
    expected = (5 * w[0] + 6 * w[1]) / sum(w)
    assert bicubic(heatmap).tolist() == pytest.approx([expected] * 2, abs=1e-4)


@pytest.mark.parametrize("operator", [biquadratic, bicubic])
def test_pixels_two_or_more_away_have_no_weight(operator):
    heatmap = one_pixel(4, 5) + one_pixel(6, 5) * 2 + one_pixel(8, 5)  # x̄ = 6
    assert operator(heatmap).tolist() == pytest.approx([6, 5], abs=1e-4)
    lopsided = one_pixel(3, 5) + one_pixel(6, 5) * 8  # x̄ = 5.67: pixel 3 is out of reach
    assert operator(lopsided).tolist() == pytest.approx([6, 5], abs=1e-4)


@pytest.mark.parametrize("operator", [biquadratic, bicubic])
def test_local_weights_equal_the_equations_over_the_whole_map(operator):
    heatmap = torch.rand(3, 9, 11, dtype=torch.float64, generator=torch.manual_seed(0)) ** 4
    centre = bilinear(heatmap)
    dx = torch.arange(11.0)[None, None, :] - centre[:, 0, None, None]
    dy = torch.arange(9.0)[None, :, None] - centre[:, 1, None, None]
    if operator is biquadratic:
        weight = (1 - (dx**2 + dy**2) / 4).clamp_min(0)
    else:
        weight = (1 - dx.abs() ** 3 / 8).clamp_min(0) * (1 - dy.abs() ** 3 / 8).clamp_min(0)
    mass = weight * heatmap
    total = mass.sum((1, 2)) + EPSILON
    x = (mass * torch.arange(11.0)).sum((1, 2)) / total
    y = (mass * torch.arange(9.0)[:, None]).sum((1, 2)) / total
    assert torch.allclose(operator(heatmap), torch.stack([x, y], -1))


@pytest.mark.parametrize("operator", SOFT)
def test_gradients(operator):
    heatmap = torch.rand(2, 3, 6, 7, dtype=torch.float64, generator=torch.manual_seed(1)) + 0.1
    assert torch.autograd.gradcheck(operator, heatmap.requires_grad_())


def test_the_coarse_peak_carries_no_gradient():
    heatmap = torch.zeros(16, 16, dtype=torch.float64)
    heatmap[4, 4], heatmap[12, 12] = 1.0, 0.5
    heatmap.requires_grad_()
    coarse_to_fine(heatmap).sum().backward()
    assert heatmap.grad[12, 12] == 0
    assert heatmap.grad[4, 5] != 0
    assert not hard_argmax(heatmap).requires_grad


@pytest.mark.parametrize("operator", SOFT)
@pytest.mark.parametrize("value", [0.0, 0.5, 1e-30])
def test_flat_heatmaps_give_finite_values_and_gradients(operator, value):
    heatmap = torch.full((2, 8, 8), value, requires_grad=True)
    position = operator(heatmap)
    position.sum().backward()
    assert position.isfinite().all()
    assert heatmap.grad.isfinite().all()


@pytest.mark.parametrize("operator", [*SOFT, hard_argmax])
def test_batches_are_rows_by_themselves(operator):
    heatmap = torch.rand(4, 3, 8, 8, generator=torch.manual_seed(2))
    assert operator(heatmap).shape == (4, 3, 2)
    assert torch.allclose(operator(heatmap)[2, 1], operator(heatmap[2, 1]))


@pytest.mark.parametrize("operator", SOFT)
def test_a_heatmap_of_nans_gives_nans_and_no_error(operator):
    assert operator(torch.full((2, 8, 8), torch.nan)).isnan().all()
