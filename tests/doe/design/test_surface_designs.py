"""Central composite and Box–Behnken designs, beside those of pydoe and what is known of them."""

import importlib
from itertools import combinations
from math import sqrt

import msgspec
import numpy as np
import pytest

from doe.design.fractions import minimum_aberration, resolution
from doe.design.kinds import chosen_kind
from doe.design.kinds.surface import GENERATED
from doe.design.model import model_matrix
from doe.design.runs import make_design
from doe.errors import DoeError
from doe.study.values import Factor, Responses, Study

OPTIMIZER = Factor("optimizer", ("sgd", "adam", "lion"))


def study(*factors, centre=0, exclude=(), **design):
    base = Study(
        name="s", backend="m:f", factors=factors, responses=Responses(metrics=("y",)), seeds=(1,)
    )
    design = {"kind": "surface", **design}
    return msgspec.structs.replace(base, design=design, centre=centre, exclude=exclude)


def ranges(number):
    return [Factor(key, (-1.0, 1.0)) for key in "abcdefghjklm"[:number]]


def positions(asked):
    return np.array([point.levels for point in chosen_kind(asked).points()])


def rows(matrix):
    return sorted(map(tuple, np.round(np.asarray(matrix), 3).tolist()))


@pytest.mark.parametrize("factors", [2, 3, 4])
def test_central_composite_designs_are_those_of_pydoe(factors):
    pydoe = importlib.import_module("pydoe")
    face = pydoe.ccdesign(factors, center=(0, 4), face="ccf")
    assert rows(positions(study(*ranges(factors)))) == rows(face)
    inscribed = pydoe.ccdesign(factors, center=(0, 4), alpha="r", face="cci")
    asked = study(*ranges(factors), alpha="rotatable", inscribe=True)
    assert rows(positions(asked)) == rows(inscribed)


def test_one_replicate_repeats_its_centre_and_several_replicates_repeat_everything():
    single = study(*ranges(2))
    assert [r.name for r in make_design(single).runs].count("centre") == 4
    both = msgspec.structs.replace(single, replicates=2, seeds=(1, 2))
    assert [r.name for r in make_design(both).runs].count("centre") == 2


@pytest.mark.parametrize("factors", [3, 4, 5])
def test_box_behnken_designs_are_those_of_pydoe(factors):
    known = importlib.import_module("pydoe").bbdesign(factors, center=3)
    assert rows(positions(study(*ranges(factors), method="box-behnken"))) == rows(known)


@pytest.mark.parametrize(("factors", "runs"), [(6, 48), (7, 56)])
def test_box_behnken_designs_of_six_and_seven_are_those_of_the_paper(factors, runs):
    X = positions(study(*ranges(factors), centre=1, method="box-behnken"))
    assert len(X) == runs + 1
    assert set(np.count_nonzero(X, axis=1)) == {0, 3}
    assert len(set(np.count_nonzero(X, axis=0))) == 1
    terms = chosen_kind(study(*ranges(factors))).terms()
    matrix = model_matrix(ranges(factors), [tuple(x) for x in X], terms)
    assert np.linalg.matrix_rank(matrix) == matrix.shape[1]


def test_the_cube_is_the_smallest_fraction_of_resolution_five():
    for factors, generated in GENERATED.items():
        assert (resolution(minimum_aberration(factors, generated)) or 9) >= 5
        if factors - generated > 4 and factors < 9:
            assert (resolution(minimum_aberration(factors, generated + 1)) or 9) < 5


def test_the_variance_of_a_rotatable_design_depends_on_the_distance_alone():
    asked = study(*ranges(3), alpha="rotatable", inscribe=True)
    terms = chosen_kind(asked).terms()
    X = model_matrix(ranges(3), [tuple(x) for x in positions(asked)], terms)
    directions = np.random.default_rng(1).normal(size=(20, 3))
    directions *= 0.5 / np.linalg.norm(directions, axis=1)[:, None]
    at = model_matrix(ranges(3), [tuple(x) for x in directions], terms)
    variance = np.einsum("ij,jk,ik->i", at, np.linalg.inv(X.T @ X), at)
    assert np.ptp(variance) < 2e-3 * variance.mean()


@pytest.mark.parametrize(
    "asked",
    [
        study(*ranges(2), centre=6, alpha="orthogonal", inscribe=True, blocks=2),
        study(*ranges(3), centre=6, alpha="orthogonal", inscribe=True, blocks=2),
        study(*ranges(4), method="box-behnken", blocks=3),
        study(*ranges(5), method="box-behnken", blocks=2),
    ],
)
def test_blocks_are_orthogonal_to_the_second_order_model(asked):
    points = chosen_kind(asked).points()
    matrix = model_matrix(asked.factors, [p.levels for p in points], chosen_kind(asked).terms())
    means = [
        matrix[[p.block == block for p in points]].mean(axis=0)
        for block in range(asked.design["blocks"])
    ]
    for one, other in combinations(means, 2):
        assert np.allclose(one, other, atol=1e-3)


def test_chemreact_is_the_design_of_two_orthogonal_blocks():
    """Box's data as in rsm: cube and axial runs in two blocks with three centre runs each, α √2."""
    asked = study(*ranges(2), centre=6, alpha="orthogonal", inscribe=True, blocks=2)
    X = positions(asked)
    assert X[4:8].max() == 1.0
    assert X[0].max() == pytest.approx(-1 / sqrt(2), abs=1e-3)
    assert [sum(run.block == b for run in make_design(asked).runs) for b in (1, 2)] == [7, 7]


def test_the_surface_stands_at_each_combination_of_words():
    lr, batch = Factor("lr", (1e-4, 1e-2), scale="log"), Factor("batch", (16, 64))
    design = make_design(study(lr, batch, OPTIMIZER, method="central-composite"))
    assert len(design.runs) == 3 * 12
    centre = [run for run in design.runs if run.levels["lr"] == 1e-3 and run.levels["batch"] == 40]
    assert sorted(run.levels["optimizer"] for run in centre) == ["adam"] * 4 + ["lion"] * 4 + [
        *["sgd"] * 4
    ]
    assert len({run.run_id for run in design.runs}) == 36
    assert centre[0].name.startswith("lr=0.001,batch=40,optimizer=")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (study(*ranges(3), alpha="rotatable"), r"±1.682 leave the range of the factors; set insc"),
        (study(*ranges(3), alpha=0.0), "design.alpha = 0.0: expected a number above 0, up to 100"),
        (study(*ranges(3), alpha="far"), "design.alpha = 'far'"),
        (study(*ranges(3), blocks=2), 'set alpha = "orthogonal"'),
        (study(*ranges(3), blocks=3), "design.blocks = 3: expected 1, or 2"),
        (study(ranges(1)[0], OPTIMIZER), "at least two factors with a range of numbers"),
        (study(*ranges(2), method="box-behnken"), "needs 3 to 7 ranges of numbers; got 2"),
        (study(*ranges(3), method="box-behnken", blocks=2), "has 1 orthogonal blocks"),
        (study(*ranges(2), Factor("n", (1, 2))), "no whole number lies between 1 and 2"),
        (study(*ranges(2), exclude=("a=-1.0",)), "exclude and when: a surface design"),
        (study(*ranges(12)), "needs 2 to 11 ranges of numbers; got 12"),
    ],
)
def test_what_is_no_surface_is_one_sentence(asked, said):
    with pytest.raises(DoeError, match=said):
        make_design(asked)
