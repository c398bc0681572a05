"""Which epoch each metric chooses on the validation set; plain floats, nothing else."""

from collections.abc import Mapping, Sequence
from math import isfinite


def choose_epochs(history: Sequence[Mapping[str, float]]) -> dict[str, int]:
    """Choose for each metric the epoch with the smallest value.

    Ties go to the earliest epoch, and a value that is not finite is never chosen; a metric without
    any finite value has no entry.

    Parameters
    ----------
    history
        One mapping of metric to validation value per epoch, from epoch 0 on.
    """
    chosen: dict[str, int] = {}
    for epoch, values in enumerate(history):
        for name, value in values.items():
            if isfinite(value) and (name not in chosen or value < history[chosen[name]][name]):
                chosen[name] = epoch
    return chosen


def epochs_to_keep(chosen: Mapping[str, int]) -> tuple[int, ...]:
    """Return the distinct chosen epochs in order: those whose weights are still needed."""
    return tuple(sorted(set(chosen.values())))
