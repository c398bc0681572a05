"""Several streams of seeds: the combinations in the replicates, and what they can estimate.

The analysis takes one stream after the other, the one with the fewest seeds first: each must change
where those before it do not, and something must be left. A stream with a seed of its own in every
replicate represents all that the others do not explain.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from math import prod

from doe.errors import AddProblem, counted, short

Streams = Mapping[str, tuple[int, ...]]


def replicate_streams(streams: Streams, replicates: int | None, add: AddProblem) -> Streams:
    """Return the seed of every stream in each replicate: as listed, or all combinations of the
    lists.

    All combinations begin with replicates that differ in every stream, so that the first ones tell
    effects from seeds.
    """
    lengths = [len(seeds) for seeds in streams.values()]
    if replicates is not None and all(length == replicates for length in lengths):
        return streams
    combinations = prod(lengths)
    if replicates is not None and replicates != combinations:
        got = " and ".join(f"{len(seeds)} of {name}" for name, seeds in streams.items())
        add(
            f"seeds: got {got} for {counted(replicates, 'replicate')}; expected {replicates} of "
            f"each, or replicates = {combinations} for all combinations"
        )
        return {name: ((*seeds, 0) * replicates)[:replicates] for name, seeds in streams.items()}
    places = sorted(
        product(*map(range, lengths)),
        key=lambda at: (*((i - at[0]) % n for i, n in zip(at, lengths, strict=True)), at[0]),
    )
    return {
        name: tuple(seeds[at[i]] for at in places)
        for i, (name, seeds) in enumerate(streams.items())
    }


def check_streams(streams: Streams, add: AddProblem) -> None:
    """Refuse replicates that cannot estimate the share of some stream, and name the first."""
    order = sorted(streams, key=lambda name: len(set(streams[name])))
    columns: list[list[int]] = []
    known = 1  # The mean.
    for i, name in enumerate(order):
        seeds = streams[name]
        if len(set(seeds)) < 2:
            add(
                f"seeds.{name}: got {short(seeds)}; estimating its share needs two or more "
                "different seeds"
            )
            return
        columns += [[int(seed == value) for seed in seeds] for value in dict.fromkeys(seeds)]
        if (rank := _rank(columns)) == known:
            add(
                f"seeds.{name}: its share is confounded with that of {', '.join(order[:i])}, "
                "which changes with it; cross them, as in init = [1, 1, 2, 2] and data = [1, 2, "
                "1, 2]"
            )
            return
        known = rank
    replicates = len(streams[order[-1]])
    if known == replicates > len(set(streams[order[-1]])):
        add(
            f"seeds: {counted(replicates, 'replicate')} cannot separate {', '.join(streams)} from "
            "the residual; add replicates, or give one stream a different seed in each"
        )


PRIME = 2**61 - 1


def _rank(columns: Sequence[Sequence[int]]) -> int:
    """Return the rank of columns of whole numbers, by elimination modulo a large prime."""
    rows = [list(column) for column in columns]
    rank = 0
    for i in range(len(rows[0])):
        pivot = next((row for row in rows if row[i]), None)
        if pivot is None:
            continue
        rows.remove(pivot)
        rank += 1
        inverse = pow(pivot[i], -1, PRIME)
        for row in rows:
            if factor := row[i] * inverse % PRIME:
                row[:] = [(a - factor * b) % PRIME for a, b in zip(row, pivot, strict=True)]
    return rank
