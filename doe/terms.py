"""Terms of a two-level model as bit masks: bit i stands for factor i, the mean is 0.

In standard order with the first factor fastest, the mask of a term is also its index in the
Walsh-Hadamard transform of the responses, and the row number of the run with just those factors
high. The product of two terms is the exclusive or of their masks.
"""

from __future__ import annotations

from collections.abc import Sequence

from doe.errors import DoeError, nearest

MEAN = 0


def term_name(mask: int, keys: Sequence[str]) -> str:
    """Name a term: ``AB`` when every key is one character, else ``lr:aug``; the mean is ``I``."""
    if mask == MEAN:
        return "I"
    separator = "" if all(len(key) == 1 for key in keys) else ":"
    return separator.join(key for i, key in enumerate(keys) if mask >> i & 1)


def parse_term(text: str, keys: Sequence[str]) -> int:
    """Read a term as `term_name` writes it, with factors in any order; colons are optional
    between one-character keys.

    Raises
    ------
    DoeError
        If a part is no factor key or stands twice.
    """
    text = text.strip()
    single = all(len(key) == 1 for key in keys)
    parts = list(text.replace(":", "")) if single else [part.strip() for part in text.split(":")]
    if not text:
        raise DoeError(f"a term is empty; expected a product of {', '.join(keys)}")
    mask = 0
    for part in parts:
        if part not in keys:
            raise DoeError(
                f"term {text!r} uses {part!r}, which is no factor{nearest(part, keys)}; "
                f"the factors are {', '.join(keys)}"
            )
        bit = 1 << list(keys).index(part)
        if mask & bit:
            raise DoeError(f"term {text!r} names factor {part!r} twice")
        mask |= bit
    return mask


def order(mask: int) -> int:
    """Number of factors in a term: 1 for a main effect, 2 for a two-factor interaction."""
    return mask.bit_count()


def terms_up_to(factors: int, highest: int | None = None) -> list[int]:
    """All terms except the mean in standard order, up to interactions of `highest` factors."""
    limit = factors if highest is None else highest
    return [mask for mask in range(1, 1 << factors) if mask.bit_count() <= limit]
