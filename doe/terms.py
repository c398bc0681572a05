"""Terms, generators and blocks of a model, and configurations, as users write them.

A term is a product of powers of factors, kept as one integer: bit i says that factor i is in it,
bit ``SQUARE + i`` that it is there squared; the mean is 0. So a term contains another where it has
all of its bits, and of two-level factors the product of two terms is the exclusive or of theirs. In
standard order with the first factor fastest, such a term is also its index in the Walsh-Hadamard
transform of the responses, and the row number of the run with just those factors high.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import combinations, product
from typing import NamedTuple

from doe.errors import DoeError, nearest

MEAN = 0
SQUARE = 64
"""Bits from here on mark the squared factors of a term."""
FACTORS = (1 << SQUARE) - 1
"""Bits of a term that name its factors."""


def squared(factor: int) -> int:
    """Return the square of a factor, by its number."""
    return 1 << factor | 1 << SQUARE + factor


def is_squared(term: int, factor: int) -> bool:
    """Return whether a factor of a term is squared in it."""
    return bool(term >> SQUARE + factor & 1)


def term_name(term: int, keys: Sequence[str]) -> str:
    """Name a term: ``AB`` when every key is one character, else ``lr:aug``; the mean is ``I``.

    A square is written ``A^2``.
    """
    if term == MEAN:
        return "I"
    separator = "" if single_letters(keys) else ":"
    return separator.join(keys[i] + "^2" * is_squared(term, i) for i in factors_in(term))


def parse_term(text: str, keys: Sequence[str]) -> int:
    """Read a term as `term_name` writes it, with factors in any order; colons are optional
    between one-character keys.

    Raises
    ------
    DoeError
        If a part is not a factor key or is repeated, or a power is not 2.
    """
    text = text.strip()
    single = single_letters(keys)
    split = re.findall(r"[^:](?:\^[^:\s]*?\d+)?", text) if single else text.split(":")
    parts = [part.strip() for part in split]
    if not text:
        raise DoeError(f"a term is empty; expected a product of {', '.join(keys)}")
    term = 0
    for part in parts:
        key, _, power = part.partition("^")
        if key not in keys:
            raise DoeError(
                f"term {text!r} uses {key!r}, which is not a factor{nearest(key, keys)}; "
                f"the factors are {', '.join(keys)}"
            )
        if power not in ("", "1", "2"):
            raise DoeError(f"term {text!r} has the power {power!r}; expected a square, {key}^2")
        factor = list(keys).index(key)
        if term >> factor & 1:
            raise DoeError(f"term {text!r} names factor {key!r} twice")
        term |= squared(factor) if power == "2" else 1 << factor
    return term


def level_text(level: object) -> str:
    """Write a level as in the study file, text without its quotes."""
    return str(level).lower() if isinstance(level, bool) else str(level)


def level_in_words(level: str) -> str:
    """Write a level for a sentence: long numbers to five figures."""
    try:
        return level if len(level) <= LONGEST_LEVEL else f"{float(level):.5g}"
    except ValueError:
        return level


def factor_label(key: str, name: str) -> str:
    """Label a factor with its name and its key in brackets, or by one of them if they are alike."""
    alike = name.lower().replace(" ", "_") in ("", key.lower())
    return name or key if alike else f"{name} ({key})"


LevelOf = tuple[int, str] | None
"""Number and text of a factor's level; None if the factor is left open."""
BETWEEN = " · "
"""Separator between the levels of a configuration, and between the names above them."""
LONGEST_LEVEL = 8
"""Numbers of up to this many characters are not shortened among levels."""
OPEN = "any"
"""Placeholder for the level of a factor that is left open."""


def single_letters(keys: Sequence[str]) -> bool:
    """Return whether every key is one character, so that terms and configurations have no
    separators."""
    return all(len(key) == 1 for key in keys)


def config_label(keys: Sequence[str], levels: Sequence[LevelOf]) -> str:
    """Label a configuration: ``A1B0C1`` for one-letter keys, else ``0.01 · adam · off``.

    The levels are in the order of the keys, which a header names (`config_header`).
    """
    if all(level is None for level in levels):
        return "any configuration"
    if single_letters(keys):
        return config_name(keys, levels)
    return BETWEEN.join(OPEN if level is None else level[1] for level in levels)


def config_in_words(keys: Sequence[str], label: str) -> str:
    """Name a configuration in a sentence: ``A1B0C1``, else ``lr = 0.01, aug = on``.

    `label` is that of `config_label`; factors that it leaves open are left out.
    """
    levels = label.split(BETWEEN)
    if single_letters(keys) or len(levels) != len(keys):
        return label
    pairs = zip(keys, levels, strict=True)
    return ", ".join(f"{key} = {level_in_words(level)}" for key, level in pairs if level != OPEN)


def config_header(keys: Sequence[str], title: str = "Configuration") -> str:
    """Return the header above configurations: the names of the factors in the order of their
    levels."""
    return title if single_letters(keys) else BETWEEN.join(keys)


def config_name(keys: Sequence[str], levels: Sequence[LevelOf]) -> str:
    """Name a configuration for files and options: ``A1B0C1``, else ``lr=0.01,aug=on``."""
    single = single_letters(keys)
    fixed = [(key, *level) for key, level in zip(keys, levels, strict=True) if level is not None]
    parts = (f"{key}{number}" if single else f"{key}={text}" for key, number, text in fixed)
    return ("" if single else ",").join(parts)


def order(term: int) -> int:
    """Count the factors of a term: 1 for a main effect, 2 for a two-factor interaction."""
    return (term & FACTORS).bit_count()


def factors_in(term: int) -> list[int]:
    """Return the numbers of the factors of a term."""
    mask = term & FACTORS
    return [i for i in range(mask.bit_length()) if mask >> i & 1]


def by_order(term: int) -> tuple[int, int]:
    """Sort key for terms by rising degree, and by standard order within a degree."""
    return term.bit_count(), term


def contains(term: int, other: int) -> bool:
    """Return whether a term contains another: all of its factors, each to at least the same
    power."""
    return term != other and term & other == other


def parts_of(term: int) -> list[int]:
    """Return the terms that a term contains: all products of lower powers of its factors."""
    powers = [
        (0, 1 << i, squared(i)) if is_squared(term, i) else (0, 1 << i) for i in factors_in(term)
    ]
    products = (sum(choice) for choice in product(*powers))
    return sorted(part for part in products if part not in (MEAN, term))


def terms_up_to(factors: int, highest: int | None = None) -> list[int]:
    """Return all products of factors in standard order, up to interactions of `highest` factors."""
    limit = factors if highest is None else highest
    return [mask for mask in range(1, 1 << factors) if mask.bit_count() <= limit]


def terms_of_order(factors: int, highest: int) -> list[int]:
    """Return all products of exactly `highest` factors, in standard order."""
    chosen = combinations(range(factors), highest)
    return sorted(sum(1 << i for i in factors) for factors in chosen)


def model_order(highest: int | None, factors: int) -> int:
    """Return the highest order of interactions in a model: the one given, or that of all factors.

    Raises
    ------
    DoeError
        If there is none of that order.
    """
    if highest is not None and not 1 <= highest <= factors:
        raise DoeError(
            f"a model of order {highest} does not fit {factors} factors; expected 1 to {factors}"
        )
    return factors if highest is None else highest


# Generators, blocks and the words that they make -----------------------------------------------


class Generator(NamedTuple):
    """A factor set equal to plus or minus an interaction of basic factors."""

    factor: int
    """Mask of the generated factor, a single bit."""
    interaction: int
    sign: int

    @property
    def word(self) -> int:
        """The word of the defining relation: generated factor times interaction."""
        return self.factor | self.interaction


class SignedTerm(NamedTuple):
    """A term with its sign in an alias chain or the defining relation."""

    mask: int
    sign: int


def fraction_parts(text: str) -> int:
    """Return N for a fraction written as 1/N; 0 for any other text, such as generators."""
    part = re.fullmatch(r"1/([1-9][0-9]{0,5})", text.replace(" ", ""))
    return int(part[1]) if part else 0


def parse_generators(text: str, keys: Sequence[str]) -> tuple[Generator, ...]:
    """Read generators such as ``E=ABC, F=-BCD``; an empty text is the full factorial.

    Raises
    ------
    DoeError
        If a side names no factor, a factor is generated twice, an interaction uses a generated
        factor or has fewer than two factors.
    """
    generators: list[Generator] = []
    for part in filter(None, re.split(r"[,;\s]+", re.sub(r"\s*=\s*", "=", text))):
        left, equals, right = part.partition("=")
        if not equals:
            raise DoeError(f"generator {part!r} has no '='; expected a form like F=ABCDE")
        sign = -1 if right.startswith("-") else 1
        factor = parse_term(left, keys)
        if order(factor) != 1:
            raise DoeError(f"generator {part!r} must define one factor, got {left!r}")
        interaction = parse_term(right.lstrip("+-"), keys)
        if order(interaction) < 2:
            raise DoeError(
                f"generator {part!r} makes {left} a copy of one factor; "
                "expected an interaction of at least two"
            )
        generators.append(Generator(factor, interaction, sign))
    _check_generators(generators, keys)
    return tuple(generators)


def _check_generators(generators: Sequence[Generator], keys: Sequence[str]) -> None:
    generated = 0
    for generator in generators:
        if generated & generator.factor:
            raise DoeError(f"factor {term_name(generator.factor, keys)} is generated twice")
        generated |= generator.factor
    for generator in generators:
        if clash := generator.interaction & generated:
            name = term_name(clash, keys)
            raise DoeError(
                f"the generator of {term_name(generator.factor, keys)} uses {name}, which another "
                "generator defines; a factor is either basic or generated"
            )


def parse_blocks(
    text: str, keys: Sequence[str], generators: Sequence[Generator]
) -> tuple[int, ...]:
    """Read the interactions confounded with blocks, such as ``ABC, CDE``.

    q of them split each replicate into 2^q blocks; all their products are confounded too.

    Raises
    ------
    DoeError
        If one is not an interaction, or follows from the others or from the defining relation.
    """
    constant = {MEAN, *(word.mask for word in defining_relation(generators))}
    words: list[int] = []
    for part in filter(None, re.split(r"[,;\s]+", text)):
        word = parse_term(part, keys)
        if order(word) < 2:
            raise DoeError(f"{part} is a main effect; confound blocks with an interaction")
        if word in constant:
            raise DoeError(f"{part} is already fixed by the other blocks or by the fraction")
        constant |= {word ^ other for other in constant}
        words.append(word)
    return tuple(words)


def format_generators(generators: Iterable[Generator], keys: Sequence[str]) -> str:
    """Write generators as `parse_generators` reads them."""
    return ", ".join(
        f"{term_name(g.factor, keys)}={'-' if g.sign < 0 else ''}{term_name(g.interaction, keys)}"
        for g in generators
    )


def defining_relation(generators: Sequence[Generator]) -> tuple[SignedTerm, ...]:
    """Return all 2^p − 1 words that equal the mean: products of the generators' words."""
    words = [SignedTerm(MEAN, 1)]
    for generator in generators:
        words += [SignedTerm(w.mask ^ generator.word, w.sign * generator.sign) for w in words]
    return tuple(sorted(words[1:], key=lambda w: by_order(w.mask)))
