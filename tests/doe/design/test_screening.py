"""Plackett–Burman and definitive screening designs keep what they promise."""

from itertools import product

import msgspec
import numpy as np
import pytest

from doe.design.kinds import chosen_kind
from doe.design.kinds.screening import conference_matrix
from doe.design.runs import make_design
from doe.errors import DoeError
from doe.study.values import Factor, Responses, Study

SWITCHES = [Factor(key, (False, True)) for key in "NOPQ"]


def study(*factors, **changes):
    base = Study(
        name="s", backend="m:f", factors=factors, responses=Responses(metrics=("y",)), seeds=(1,)
    )
    design = {"kind": "screening", **changes.pop("design", {})}
    return msgspec.structs.replace(base, design=design, **changes)


def ranges(number):
    return [Factor(key, (0.0, 8.0)) for key in "ABCDEFGHJKLMNOPQ"[:number]]


def coded(asked):
    return np.array([run.coded for run in make_design(asked).runs], dtype=float)


@pytest.mark.parametrize(("factors", "runs"), [(3, 4), (6, 8), (11, 12), (14, 16), (16, 20)])
def test_plackett_burman_main_effects_are_orthogonal(factors, runs):
    X = coded(study(*ranges(factors)))
    assert len(X) == runs
    assert np.array_equal(X.T @ X, runs * np.eye(factors))
    assert not X.sum(axis=0).any()


def test_what_a_plackett_burman_design_confounds_is_said():
    assert "12 runs" in (told := chosen_kind(study(*ranges(9))).describe())
    assert "partially aliased with two-factor" in told
    assert "fully aliased" in chosen_kind(study(*ranges(7))).describe()


@pytest.mark.parametrize("columns", range(3, 17))
def test_conference_matrices(columns):
    C = conference_matrix(columns)
    order = len(C)
    assert order >= columns
    assert np.array_equal(C.T @ C, (order - 1) * np.eye(order))
    assert not np.diag(C).any()
    assert np.array_equal(np.abs(C), 1 - np.eye(order))


DEFINITIVE = {"method": "definitive"}


@pytest.mark.parametrize(("factors", "runs"), [(4, 9), (5, 13), (6, 13), (10, 21), (15, 33)])
def test_definitive_main_effects_are_clear_of_squares_and_interactions(factors, runs):
    X = coded(study(*ranges(factors), design=DEFINITIVE))
    assert X.shape == (runs, factors)
    assert np.count_nonzero(X.T @ X - np.diag(np.diag(X.T @ X))) == 0
    second = [X[:, i] * X[:, j] for i in range(factors) for j in range(i, factors)]
    assert not np.any(X.T @ np.column_stack(second)), "the mirror image cancels them"
    squares = np.column_stack([np.ones(runs), X, X**2])
    assert np.linalg.matrix_rank(squares) == 1 + 2 * factors


def test_words_of_two_levels_join_a_definitive_design():
    X = coded(study(*ranges(4), *SWITCHES[:2], design=DEFINITIVE))
    assert X.shape == (14, 6)
    assert set(X[:, 4:].ravel()) == {-1.0, 1.0}
    second = [X[:, i] * X[:, j] for i in range(6) for j in range(i, 6)]
    assert not np.any(X.T @ np.column_stack(second))
    correlation = np.corrcoef(X.T) - np.eye(6)
    assert np.abs(correlation).max() < 0.2
    numeric = np.column_stack([np.ones(14), X, X[:, :4] ** 2])
    assert np.linalg.matrix_rank(numeric) == 11


def test_signs_of_words_in_the_middle_have_the_largest_determinant():
    X = coded(study(*ranges(3), *SWITCHES[:3], design=DEFINITIVE))
    base = np.vstack([conference_matrix(6), np.zeros((1, 6))])
    zeros = [(row, i) for i in (3, 4, 5) for row in np.flatnonzero(base[:, i] == 0)]
    best = 0.0
    for signs in product((-1, 1), repeat=len(zeros)):
        for place, sign in zip(zeros, signs, strict=True):
            base[place] = sign
        best = max(best, np.linalg.det(base.T @ base))
    assert np.linalg.det(X.T @ X) == pytest.approx(2**6 * best)
    assert coded(study(*ranges(3), *[Factor(k, "uv") for k in "ghjklmno"], design=DEFINITIVE)).any()


def test_a_log_scale_has_its_middle_and_listed_levels_their_own():
    lr, depth = Factor("lr", (1e-4, 1e-2), scale="log"), Factor("depth", (2, 3, 9))
    asked = study(lr, depth, Factor("n", (10, 20)), design=DEFINITIVE)
    runs = make_design(asked).runs
    assert {run.levels["lr"] for run in runs} == {1e-4, 1e-3, 1e-2}
    assert {run.levels["depth"] for run in runs} == {2, 3, 9}
    assert {run.levels["n"] for run in runs} == {10, 15, 20}


def test_the_foldover_of_a_screening_design_exchanges_every_level():
    from doe.design.changes import augmented

    more = augmented(study(*ranges(7)), "foldover")
    runs = make_design(more).runs
    X = np.array([run.coded for run in runs])
    assert {run.block for run in runs[8:]} == {2}
    assert {tuple(row) for row in X[8:]} == {tuple(-row) for row in X[:8]}


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (study(Factor("a", (1, 2, 3)), *ranges(3)[1:]), "factors.a has 3 levels"),
        (study(*ranges(3), exclude=("A=0.0,B=8.0",)), "exclude and when: a screening design"),
        (study(*ranges(2), design=DEFINITIVE), "at least 3 factors; got 2"),
        (study(*ranges(3), Factor("w", tuple("xyz")), design=DEFINITIVE), "has 3 words as levels"),
        (
            study(*ranges(3), Factor("w", (1, 2), listed=True), design=DEFINITIVE),
            "has 2 numbers as levels and no middle",
        ),
        (study(*ranges(3), Factor("w", (1, 2)), design=DEFINITIVE), "no whole number lies between"),
        (study(*ranges(3), design={"method": "taguchi"}), "design.method = 'taguchi'"),
    ],
)
def test_what_cannot_be_screened_is_one_sentence(asked, said):
    with pytest.raises(DoeError, match=said):
        make_design(asked)
