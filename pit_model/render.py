"""Positions to frames: a bright disc over a background.

Pixel (row i, column j) has its centre at x = j, y = i, so that the index of a pixel is its
coordinate: the paper reads coordinates off a heatmap in this way (k mod W, k // W).
"""

from math import ceil

import torch
from torch import Tensor


def noise_image(key: int, size: int, sigma: float, device: torch.device | str = "cpu") -> Tensor:
    """Background of standard deviation `sigma`, clipped to [0, 1]; the key decides it: (S, S).

    Each kind of device has random numbers of its own: drawn on the CPU it is the same whatever
    device trains, drawn on a GPU it need not be sent there.
    """
    generator = torch.Generator(device).manual_seed(key)
    noise = torch.randn(size, size, generator=generator, device=device)
    return noise.mul_(sigma).clamp_(0.0, 1.0)


def draw(background: Tensor, position: Tensor, radius: float, antialias: bool = False) -> Tensor:
    """Draw a ball of intensity 1 on each background.

    A pixel is ball if its centre lies within the radius of the position; with `antialias` it is
    blended by its coverage, ``min(max(r + 1/2 − distance, 0), 1)``. Only the few pixels around the
    position are computed.

    Parameters
    ----------
    background
        (N, S, S), in [0, 1].
    position
        (N, 2), x and y in pixels.

    Returns
    -------
    (N, S, S), a new tensor.
    """
    n, size, _ = background.shape
    reach = ceil(radius + 1)
    around = torch.arange(-reach, reach + 1, device=position.device)
    cells = position.round().long()[:, :, None] + around  # (N, 2, R): columns, rows
    off = cells - position[:, :, None]  # (N, 2, R)
    squared = off[:, 0, None, :] ** 2 + off[:, 1, :, None] ** 2  # (N, R, R): row, column
    if antialias:
        coverage = (radius + 0.5 - squared.sqrt()).clamp(0.0, 1.0)
    else:
        coverage = (squared <= radius**2).to(background.dtype)
    on_image = ((cells >= 0) & (cells < size)).to(background.dtype)
    coverage = coverage * on_image[:, 0, None, :] * on_image[:, 1, :, None]
    inside = cells.clamp(0, size - 1)
    index = (inside[:, 1, :, None] * size + inside[:, 0, None, :]).flatten(1)  # (N, R·R)
    frames = background.clone(memory_format=torch.contiguous_format).flatten(1)
    below = frames.gather(1, index)
    value = below + coverage.flatten(1) * (1.0 - below)
    # Pixels beyond the border are folded onto it with coverage 0, and the maximum drops them.
    return frames.scatter_reduce_(1, index, value, "amax").view(n, size, size)
