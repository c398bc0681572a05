"""Small square cut-outs of maps, for what is zero or constant everywhere else."""

import torch
from torch import Tensor


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
    # A place that is not a number, as in a run that diverges, must still be a legal index.
    column = x.nan_to_num().clamp(0, width - 1)
    row = y.nan_to_num().clamp(0, height - 1)
    inside = (column == x)[..., None, :] & (row == y)[..., :, None]  # (..., n, n)
    index = (row[..., :, None] * width + column[..., None, :]).long()
    values = maps.flatten(-2).gather(-1, index.flatten(-2)).view(index.shape)
    return values, inside
