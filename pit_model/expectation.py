"""From heatmaps to positions: the paper's four expectation operators and the hard argmax.

All take heatmaps (..., H, W) and return (..., 2) as (x, y) in heatmap pixels. Negative values are
cut to zero first. Weights that vanish outside a small neighbourhood are computed there alone.
"""

import torch
from torch import Tensor

EPSILON = 1e-6
"""Added to every mass, so that an empty heatmap gives (0, 0) and finite gradients."""
RADIUS = 3
"""Half the window of the coarse-to-fine operator, in heatmap pixels."""


def to_image(cell: Tensor, stride: int, coordinates: str) -> Tensor:
    """Return the position in the image of heatmap coordinates, in pixels.

    `paper`: ``a·c``, the corner of the a × a pixels that a cell covers; `aligned`: their middle,
    ``a·(c + ½) − ½``, where bilinear upsampling puts the cell.
    """
    return stride * cell if coordinates == "paper" else stride * (cell + 0.5) - 0.5


def to_map(position: Tensor, stride: int, coordinates: str) -> Tensor:
    """Return the heatmap coordinates of positions in the image; the inverse of `to_image`."""
    return position / stride if coordinates == "paper" else (position + 0.5) / stride - 0.5


def bilinear(heatmap: Tensor) -> Tensor:
    """Return the centroid of the whole map: ``x = Σ j·H / M``, ``y = Σ i·H / M``, ``M = Σ H + ε``.

    Both moments come from the sums over rows and columns, so that the map is read once or twice.
    """
    positive = heatmap.clamp_min(0)
    columns, rows = positive.sum(-2), positive.sum(-1)  # (..., W), (..., H)
    mass = columns.sum(-1) + EPSILON
    x = columns @ torch.arange(columns.shape[-1], dtype=heatmap.dtype, device=heatmap.device)
    y = rows @ torch.arange(rows.shape[-1], dtype=heatmap.dtype, device=heatmap.device)
    return torch.stack([x, y], -1) / mass[..., None]


def coarse_to_fine(heatmap: Tensor) -> Tensor:
    """Return the centroid within `RADIUS` pixels of the peak; the peak carries no gradient."""
    peak = hard_argmax(heatmap)
    around = torch.arange(-RADIUS, RADIUS + 1, dtype=heatmap.dtype, device=heatmap.device)
    grid = peak[..., None] + around  # (..., 2, 7)
    return _local_centroid(heatmap, grid, torch.ones_like(grid[..., :1, :]))


def biquadratic(heatmap: Tensor) -> Tensor:
    """Return the centroid under ``max(1 − ((j − x̄)² + (i − ȳ)²)/4, 0)`` about the bilinear one."""
    centre = bilinear(heatmap)
    grid = _support(centre)
    x, y = (grid - centre[..., None]).unbind(-2)  # (..., 4) each
    weight = (1 - (x[..., None, :] ** 2 + y[..., :, None] ** 2) / 4).clamp_min(0)
    return _local_centroid(heatmap, grid, weight)


def bicubic(heatmap: Tensor) -> Tensor:
    """Return the centroid under ``max(1 − |j − x̄|³/8, 0) · max(1 − |i − ȳ|³/8, 0)``, likewise."""
    centre = bilinear(heatmap)
    grid = _support(centre)
    x, y = (1 - (grid - centre[..., None]).abs() ** 3 / 8).clamp_min(0).unbind(-2)
    return _local_centroid(heatmap, grid, x[..., None, :] * y[..., :, None])


def hard_argmax(heatmap: Tensor) -> Tensor:
    """Return the position of the largest value: ``y = k // W``, ``x = k mod W``; no gradient."""
    width = heatmap.shape[-1]
    k = heatmap.detach().flatten(-2).argmax(-1)
    return torch.stack([k % width, k // width], -1).to(heatmap.dtype)


def _support(centre: Tensor) -> Tensor:
    """Pixels less than 2 away from a centre along each axis: (..., 2) to (..., 2, 4)."""
    near = torch.arange(-1, 3, dtype=centre.dtype, device=centre.device)
    return centre.detach().floor()[..., None] + near


def _local_centroid(heatmap: Tensor, grid: Tensor, weight: Tensor) -> Tensor:
    """Return the centroid of weight × heatmap over ``grid[..., 0, :] × grid[..., 1, :]``.

    Pixels outside the map count as zero. Shapes: (..., H, W), (..., 2, n), and a
    weight that broadcasts to (..., n, n).
    """
    values, inside = take(heatmap, grid)
    mass = weight * torch.where(inside, values.clamp_min(0), 0)  # (..., n, n)
    x, y = grid.unbind(-2)
    columns, rows = mass.sum(-2), mass.sum(-1)
    moments = torch.stack([(columns * x).sum(-1), (rows * y).sum(-1)], -1)
    return moments / (columns.sum(-1) + EPSILON)[..., None]


def grid_around(centre: Tensor, radius: int, size: int) -> Tensor:
    """Whole coordinates within a radius of a centre, along each axis: (..., 2) to (..., 2, n).

    A neighbourhood as wide as the map becomes the map itself, so that n never exceeds `size`.
    """
    if 2 * radius + 1 >= size:
        all_of_it = torch.arange(size, dtype=centre.dtype, device=centre.device)
        return all_of_it.expand(*centre.shape, size)
    near = torch.arange(-radius, radius + 1, dtype=centre.dtype, device=centre.device)
    return centre.detach().round()[..., None] + near


def take(maps: Tensor, grid: Tensor) -> tuple[Tensor, Tensor]:
    """Read maps (..., H, W) at ``grid[..., 1, :] × grid[..., 0, :]``, rows times columns.

    Returns the values and whether each place lies inside the map, both (..., n, n). Places outside
    repeat the nearest pixel, for the caller to weigh with zero.
    """
    height, width = maps.shape[-2:]
    x, y = grid.unbind(-2)  # (..., n) each
    # A coordinate that is NaN, as in a run that diverges, must still be a legal index.
    column = x.nan_to_num().clamp(0, width - 1)
    row = y.nan_to_num().clamp(0, height - 1)
    inside = (column == x)[..., None, :] & (row == y)[..., :, None]  # (..., n, n)
    index = (row[..., :, None] * width + column[..., None, :]).long()
    values = maps.flatten(-2).gather(-1, index.flatten(-2)).view(index.shape)
    return values, inside
