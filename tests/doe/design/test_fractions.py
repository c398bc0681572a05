"""Algebra of fractions against published designs (Montgomery, table 8.14; Chen, Sun and Wu)."""

from itertools import combinations

import pytest

from doe.design.fractions import (
    alias_chains,
    best_foldover,
    minimum_aberration,
    resolution,
    word_length_pattern,
)
from doe.errors import DoeError
from doe.terms import (
    defining_relation,
    format_generators,
    order,
    parse_blocks,
    parse_generators,
    term_name,
)


def written(chain, keys):
    """A chain as ``AB + CE − DF``."""
    text = "".join(f" {'−+'[t.sign > 0]} {term_name(t.mask, keys)}" for t in chain)
    return text.removeprefix(" + ")


def names(chains, keys):
    return [written(chain, keys) for chain in chains]


def test_half_fraction_of_six_has_resolution_six_and_aliases_three_factor_terms():
    g = parse_generators("F=ABCDE", "ABCDEF")
    assert resolution(g) == 6
    assert [term_name(w.mask, "ABCDEF") for w in defining_relation(g)] == ["ABCDEF"]
    chains = names(alias_chains(g, 6, 3), "ABCDEF")
    assert "ABC + DEF" in chains
    assert "AB" in chains
    assert sum(" + " in chain for chain in chains) == 10


def test_quarter_fraction_of_six_has_resolution_four_and_montgomerys_aliases():
    g = parse_generators("E=ABC, F=BCD", "ABCDEF")
    assert resolution(g) == 4
    words = {term_name(w.mask, "ABCDEF") for w in defining_relation(g)}
    assert words == {"ABCE", "BCDF", "ADEF"}
    chains = names(alias_chains(g, 6, 2), "ABCDEF")
    expected = ["AB + CE", "AC + BE", "BC + AE + DF", "AD + EF", "BD + CF", "CD + BF", "DE + AF"]
    assert [c for c in chains if " + " in c] == expected


def test_signs_of_a_negative_generator_go_into_the_chain():
    g = parse_generators("C=-AB", "ABC")
    assert names(alias_chains(g, 3, 2), "ABC") == ["A − BC", "B − AC", "C − AB"]


def test_generators_are_written_as_they_are_read():
    text = "E=ABC, F=-BCD"
    assert format_generators(parse_generators(text, "ABCDEF"), "ABCDEF") == text
    words = ("lr", "aug", "opt", "wd")
    assert format_generators(parse_generators("wd=lr:aug:opt", words), words) == "wd=lr:aug:opt"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("F=ABX", "not a factor"),
        ("X=ABC", "not a factor"),
        ("F", "no '='"),
        ("F=A", "copy"),
        ("AB=CD", "one factor"),
        ("F=ABC, F=BCD", "twice"),
        ("F=ABC, E=ABF", "another generator"),
        ("F=ABF", "another generator"),
    ],
)
def test_a_bad_generator_is_explained(text, said):
    with pytest.raises(DoeError, match=said):
        parse_generators(text, "ABCDEF")


# Word-length patterns (A3, A4, …) of minimum-aberration designs: Fries and Hunter (1980); Chen,
# Sun and Wu (1993), tables of 16, 32 and 64 runs.
PUBLISHED = {
    (5, 2): (2, 1, 0),
    (6, 2): (0, 3, 0, 0),
    (7, 4): (7, 7, 0, 0, 1),
    (7, 2): (0, 1, 2, 0, 0),
    (8, 4): (0, 14, 0, 0, 0, 1),
    (8, 3): (0, 3, 4, 0, 0, 0),
    (8, 2): (0, 0, 2, 1, 0, 0),
    (9, 4): (0, 6, 8, 0, 0, 1, 0),
    (9, 3): (0, 1, 4, 2, 0, 0, 0),
    (10, 5): (0, 10, 16, 0, 0, 5, 0, 0),
    (10, 4): (0, 2, 8, 4, 0, 1, 0, 0),
}


@pytest.mark.parametrize("size", PUBLISHED)
def test_minimum_aberration_patterns_are_the_published_ones(size):
    assert word_length_pattern(minimum_aberration(*size), size[0]) == PUBLISHED[size]


@pytest.mark.parametrize("size", [(5, 2), (6, 3), (6, 2), (7, 3), (7, 2), (8, 4)])
def test_no_choice_of_generators_beats_the_search(size):
    k, p = size
    basic = k - p
    columns = [m for m in range(1, 1 << basic) if order(m) > 1]
    patterns = []
    for choice in combinations(columns, p):
        words = [0]
        for i, column in enumerate(choice):
            words += [w ^ column ^ (1 << (basic + i)) for w in words]
        lengths = [order(w) for w in words[1:]]
        patterns.append(tuple(lengths.count(n) for n in range(3, k + 1)))
    assert min(patterns) == word_length_pattern(minimum_aberration(k, p), k)


def test_every_size_up_to_eleven_factors_and_128_runs_has_generators():
    for k in range(2, 12):
        for basic in range(1, 8):
            p = k - basic
            if 0 <= p <= 2**basic - basic - 1:
                assert len(minimum_aberration(k, p)) == p


@pytest.mark.parametrize(("k", "p"), [(12, 2), (9, 1), (8, 5), (4, 4)])
def test_a_fraction_that_cannot_be_is_refused(k, p):
    with pytest.raises(DoeError):
        minimum_aberration(k, p)


def test_foldover_of_a_half_is_its_other_half_and_of_resolution_three_gives_four():
    assert best_foldover(parse_generators("F=ABCDE", "ABCDEF"), 6) == (1 << 5,)
    keys = "ABCDEFG"
    g = parse_generators("D=AB, E=AC, F=BC, G=ABC", keys)
    flip = sum(best_foldover(g, 7))
    left = [w.mask for w in defining_relation(g) if order(w.mask & flip) % 2 == 0]
    assert min(order(w) for w in left) == 4


@pytest.mark.parametrize(
    ("text", "said"), [("A", "main effect"), ("ABC, ABC", "already"), ("ABCDEF", "already")]
)
def test_bad_block_terms_are_refused(text, said):
    with pytest.raises(DoeError, match=said):
        parse_blocks(text, "ABCDEF", parse_generators("F=ABCDE", "ABCDEF"))
