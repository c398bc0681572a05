"""Portions after which a study is looked at."""

from collections import Counter

import numpy as np
import pytest
from msgspec import structs

from doe.design.runs import make_design, portion, portions_per_replicate, split_words
from doe.study.values import Factor, Responses, Stopping, Study
from doe.terms import terms_up_to


def study(factors, **changes):
    return Study(
        name="parts",
        backend="tiny_backends:noop",
        factors=tuple(Factor(key=key, levels=(0, 1)) for key in "ABCDEFGH"[:factors]),
        responses=Responses(metrics=("y",)),
        replicates=2,
        seeds=(1, 2),
        stopping=Stopping(2, **changes),
    )


@pytest.mark.parametrize(("factors", "parts"), [(2, 1), (3, 2), (5, 2), (6, 4), (8, 4)])
def test_parts_of_a_replicate_are_alike_for_main_effects_and_pairs(factors, parts):
    """Every such term, and every pair of main effects, has as many runs high as low in a part."""
    planned = study(factors)
    assert portions_per_replicate(planned) == parts
    runs = make_design(planned).runs
    numbers = np.array([portion(planned, run) for run in runs])
    signs = np.array([run.coded for run in runs])
    assert Counter(numbers.tolist()) == dict.fromkeys(
        range(1, 2 * parts + 1), (1 << factors) // parts
    )
    for number in range(1, 2 * parts + 1) if parts > 1 else ():
        inside = signs[numbers == number]
        for term in terms_up_to(factors, 2):
            own = [i for i in range(factors) if term >> i & 1]
            assert inside[:, own].prod(axis=1).sum() == 0
    assert all(
        (number - 1) // parts + 1 == run.replicate
        for number, run in zip(numbers, runs, strict=True)
    )


def test_what_is_asked_about_splits_no_replicate():
    assert portions_per_replicate(study(6, terms=("A", "ABCD"))) == 2
    assert portions_per_replicate(study(6, terms=("ABCD", "ABCDEF"))) == 1
    assert portions_per_replicate(study(3, terms=("ABC",))) == 1
    assert portions_per_replicate(structs.replace(study(6), fraction="F=ABCDE")) == 1
    assert portions_per_replicate(study(6, rule=1)) == 1


def test_quarters_lose_no_interaction_of_three_factors():
    for factors in range(6, 12):
        first, second = split_words(factors)
        assert min(word.bit_count() for word in (first, second, first ^ second)) >= 4
