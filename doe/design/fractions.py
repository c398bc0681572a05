"""Algebra of regular two-level fractions: words, defining relation, resolution, alias chains."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, reduce
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

from doe.errors import DoeError
from doe.study.values import Study
from doe.terms import (
    MEAN,
    Generator,
    SignedTerm,
    by_order,
    defining_relation,
    format_generators,
    fraction_parts,
    order,
    parse_generators,
    terms_up_to,
)

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

SEARCHED_FACTORS = 11
SEARCHED_BASIC = 7
"""`minimum_aberration` searches up to 2^7 = 128 runs of up to 11 factors."""

ROMAN = ("0", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII", "XIII")


def resolution(generators: Sequence[Generator]) -> int | None:
    """Return the length of the shortest word; None for a full factorial, where nothing is
    aliased."""
    return min((order(w.mask) for w in defining_relation(generators)), default=None)


def roman(number: int) -> str:
    """Write a resolution in Roman numerals."""
    return ROMAN[number] if number < len(ROMAN) else str(number)


def word_length_pattern(generators: Sequence[Generator], factors: int) -> tuple[int, ...]:
    """Return the number of words of length 3, 4, …, `factors`."""
    lengths = [order(w.mask) for w in defining_relation(generators)]
    return tuple(lengths.count(length) for length in range(3, factors + 1))


def alias_chains(
    generators: Sequence[Generator], factors: int, highest: int
) -> tuple[tuple[SignedTerm, ...], ...]:
    """Return sets of terms of up to `highest` factors that are aliased with each other.

    Each chain starts with its lowest-order term and stands once; a term alone in its chain is
    clear of all others up to that order. Terms aliased with the mean are left out.
    """
    words = (SignedTerm(MEAN, 1), *defining_relation(generators))
    constant = {word.mask for word in words}
    chains: list[tuple[SignedTerm, ...]] = []
    chained: set[int] = set()
    for mask in sorted(terms_up_to(factors, highest), key=by_order):
        if mask in chained or mask in constant:
            continue
        chain = [
            SignedTerm(mask ^ w.mask, w.sign) for w in words if order(mask ^ w.mask) <= highest
        ]
        chain.sort(key=lambda t: by_order(t.mask))
        chained.update(t.mask for t in chain)
        chains.append(tuple(SignedTerm(t.mask, t.sign * chain[0].sign) for t in chain))
    return tuple(chains)


@cache
def minimum_aberration(factors: int, generated: int) -> tuple[Generator, ...]:
    """Return the generators of the 2^(k−p) fraction with the smallest word-length pattern.

    The pattern is compared from the shortest words on (Fries and Hunter, 1980). The search is
    complete up to renaming of the basic factors: the longest generator may be taken to use the
    first basic ones.
    """
    import numpy as np

    basic = factors - generated
    if not (generated >= 0 and factors <= SEARCHED_FACTORS and 1 <= basic <= SEARCHED_BASIC):
        raise DoeError(
            f"no minimum-aberration fraction for 2^({factors}-{generated}): expected at most "
            f"{SEARCHED_FACTORS} factors and 2 to {2**SEARCHED_BASIC} runs; give the generators "
            "instead"
        )
    if generated > 2**basic - basic - 1:
        raise DoeError(
            f"2^({factors}-{generated}) has {2**basic} runs, too few for {factors} factors; "
            f"at most {2**basic - 1} main effects can be estimated: use a larger part"
        )
    if generated == 0:
        return ()
    columns = sorted((m for m in range(1, 1 << basic) if order(m) >= 2), key=order, reverse=True)
    best_key: int | None = None
    best: tuple[int, ...] = ()
    for length in range(basic, 1, -1):
        first = (1 << length) - 1
        rest = [m for m in columns if order(m) <= length and m != first]
        count = comb(len(rest), generated - 1)
        flat = np.fromiter(
            (m for choice in combinations(rest, generated - 1) for m in choice),
            dtype=np.uint8,
            count=count * (generated - 1),
        ).reshape(count, generated - 1)
        if count == 0:
            continue
        keys = _pattern_keys(np.column_stack([np.full(count, first, np.uint8), flat]), basic)
        winner = int(np.argmin(keys))
        if best_key is None or int(keys[winner]) < best_key:
            best_key = int(keys[winner])
            best = (first, *(int(m) for m in flat[winner]))
    return tuple(Generator(1 << (basic + i), mask, 1) for i, mask in enumerate(sorted(best)))


def _pattern_keys(choices: NDArray[np.uint8], basic: int) -> NDArray[np.uint64]:
    """Return the word-length patterns of many sets of generators, each packed into a sortable
    integer."""
    import numpy as np

    generated = choices.shape[1]
    bits = generated  # a pattern entry is at most 2^p − 1
    keys = np.zeros(len(choices), np.uint64)
    weight = np.array([m.bit_count() for m in range(1 << basic)], np.uint8)
    for size in range(1, generated + 1):
        for members in combinations(range(generated), size):
            mask = reduce(np.bitwise_xor, (choices[:, i] for i in members))
            length = weight[mask] + size
            # Words of length 3 weigh most; those too long to matter fall off the low end.
            shift = 64 - bits * (length.astype(np.int64) - 2)
            unit = np.uint64(1) << np.maximum(shift, 0).astype(np.uint64)
            keys += np.where(shift >= 0, unit, np.uint64(0))
    return keys


def best_foldover(generators: Sequence[Generator], factors: int) -> tuple[int, ...]:
    """Return the generated factors whose exchange leaves the least aliasing in both parts together.

    Exchanging a generated factor reverses its generator's sign, and only words with an even
    number of reversed generators stay in the defining relation of the combined design. Of the
    2^p − 1 choices the one whose remaining words have the smallest pattern wins, fewest
    exchanged factors first.
    """
    if not generators:
        raise DoeError("a full factorial has no other part to add; augment it with replicates")
    flips = [
        choice
        for size in range(1, len(generators) + 1)
        for choice in combinations([g.factor for g in generators], size)
    ]

    def pattern(flip: tuple[int, ...]) -> tuple[int, ...]:
        mask = sum(flip)
        left = [w.mask for w in defining_relation(generators) if order(w.mask & mask) % 2 == 0]
        return tuple(sum(order(w) == length for w in left) for length in range(1, factors + 1))

    return min(flips, key=pattern)


def confounded_terms(study: Study) -> frozenset[int]:
    """Return the terms that are confounded with blocks within a replicate."""
    span = {0}
    for word in study.block_words:
        span |= {word ^ other for other in span}
    relation = {0, *(word.mask for word in defining_relation(study.generators))}
    return frozenset(a ^ b for a in span - {0} for b in relation)


def fraction_of(study: Study, text: str) -> str:
    """Return the fraction of a study: generators if every factor has two levels, else "1/N"."""
    if study.two_level:
        return fraction_generators(text, study.keys)
    parts = fraction_parts(text)
    if not parts:
        wide = next(factor for factor in study.factors if len(factor.levels) != 2)
        raise DoeError(
            f"fraction {text!r}: {wide.key} has {len(wide.levels)} levels; expected a part of all "
            "combinations, such as 1/2 or 1/3"
        )
    return "" if parts == 1 else f"1/{parts}"


def fraction_generators(text: str, keys: tuple[str, ...]) -> str:
    """Return generators as given, or the minimum-aberration ones for a fraction such as 1/4."""
    if not text.startswith("1/"):
        return format_generators(parse_generators(text, keys), keys)
    parts = fraction_parts(text)
    if not parts or parts & (parts - 1):
        raise DoeError(f"fraction {text!r}: expected 1/2, 1/4, 1/8, … or generators like F=ABCDE")
    return format_generators(minimum_aberration(len(keys), parts.bit_length() - 1), keys)
