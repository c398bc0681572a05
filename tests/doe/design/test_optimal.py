"""Optimal designs against designs that are known to be optimal, and what they must respect."""

from itertools import product

import msgspec
import numpy as np
import pytest

from doe.design.kinds import chosen_kind
from doe.design.model import d_efficiency, model_matrix, named_terms
from doe.design.runs import make_design
from doe.errors import DoeError
from doe.study.values import Factor, Responses, Study

X, Y, Z = (Factor(key, (-1.0, 1.0)) for key in "xyz")
LR = Factor("lr", (1e-4, 1e-1), scale="log")
BATCH = Factor("batch", (16, 64))
DEPTH = Factor("depth", (2, 4, 8))
WIDTH = Factor("width", (32, 64), listed=True)
OPTIMIZER = Factor("optimizer", ("sgd", "adam", "lion"))


def study(*factors, exclude=(), **design):
    base = Study(
        name="s", backend="m:f", factors=factors, responses=Responses(metrics=("y",)), seeds=(1,)
    )
    return msgspec.structs.replace(base, exclude=exclude, design={"kind": "optimal", **design})


def matrix(asked):
    chosen = chosen_kind(asked)
    points = [point.levels for point in chosen.points()]
    return model_matrix(asked.factors, points, chosen.terms())


def test_a_two_level_factorial_is_found_again():
    found = matrix(study(X, Y, Z, runs=8, model="interactions"))
    assert d_efficiency(found) == pytest.approx(100.0)


@pytest.mark.parametrize("runs", [6, 9])
def test_quadratic_designs_of_two_factors_are_those_of_box_and_draper(runs):
    """Box and Draper 1971: six points with δ = (4 − √13) / 3, and nine, the 3² factorial."""
    d = (4 - 13**0.5) / 3
    six = [(-1, -1), (1, -1), (-1, 1), (-d, -d), (1, 3 * d), (3 * d, 1)]
    known = {6: six, 9: list(product((-1, 0, 1), repeat=2))}[runs]
    best = d_efficiency(model_matrix((X, Y), known, named_terms((X, Y), "quadratic")))
    found = d_efficiency(matrix(study(X, Y, runs=runs, model="quadratic")))
    assert best * 0.9995 < found < best * 1.0005


def test_words_of_three_levels_are_balanced_where_they_can_be():
    asked = study(OPTIMIZER, DEPTH, X, runs=12, model="linear")
    levels = [run.levels["optimizer"] for run in make_design(asked).runs]
    assert sorted(map(levels.count, ("sgd", "adam", "lion"))) == [4, 4, 4]
    assert d_efficiency(matrix(asked)) == pytest.approx(100.0)


def test_the_mean_prediction_variance_is_smaller_where_it_is_asked_for():
    grid = list(product(np.linspace(-1, 1, 11), repeat=2))
    at = model_matrix((X, Y), grid, named_terms((X, Y), "quadratic"))

    def variance(criterion):
        found = matrix(study(X, Y, runs=10, model="quadratic", criterion=criterion))
        return np.trace(np.linalg.inv(found.T @ found) @ at.T @ at) / len(at)

    assert variance("I") < 0.95 * variance("D")


def test_levels_are_those_that_can_run():
    asked = study(LR, BATCH, DEPTH, WIDTH, OPTIMIZER, runs=30, starts=8)
    design = make_design(asked)
    assert len(design.runs) == 30
    for run in design.runs:
        assert 1e-4 <= run.levels["lr"] <= 1e-1
        assert isinstance(run.levels["batch"], int)
        assert run.levels["depth"] in (2, 4, 8)
        assert run.levels["width"] in (32, 64)
    assert len({run.run_id for run in design.runs}) == 30
    assert {run.levels["lr"] for run in design.runs} > {1e-4, 1e-1}, "a square needs a third value"
    assert make_design(asked) == design, "the same study has the same design"
    other = msgspec.structs.replace(asked, order_seed=7)
    assert make_design(other) != design


def test_what_is_excluded_or_beyond_a_constraint_never_runs_and_what_is_forced_does():
    asked = study(
        *(BATCH, DEPTH, OPTIMIZER),
        exclude=("optimizer=sgd, depth=8", "optimizer=lion, batch=64"),
        runs=24,
        starts=8,
        constraints=["batch + 4*depth <= 80", "-2*depth >= -16"],
        include=["batch=33, depth=4, optimizer=adam"] * 2,
    )
    levels = [tuple(run.levels.values()) for run in make_design(asked).runs]
    assert levels.count((33, 4, "adam")) >= 2
    for batch, depth, optimizer in levels:
        assert batch + 4 * depth <= 80
        assert (optimizer, depth) != ("sgd", 8)
        assert (optimizer, batch) != ("lion", 64)
    assert max(batch + 4 * depth for batch, depth, _ in levels) >= 76, "it goes to the border"
    assert "2 cannot be estimated within the allowed region" not in chosen_kind(asked).describe()


def test_an_interaction_without_one_of_its_cells_keeps_what_can_be_estimated():
    asked = study(OPTIMIZER, DEPTH, WIDTH, exclude=("optimizer=sgd, width=64",), runs=20)
    told = chosen_kind(asked).describe()
    assert "11 coefficients; 0" not in told
    assert len(make_design(asked).runs) == 20


def test_blocks_share_the_runs_and_are_estimated_too():
    asked = study(X, Y, Z, runs=14, blocks=2, model="interactions")
    design = make_design(asked)
    assert [sum(run.block == block for run in design.runs) for block in (1, 2)] == [7, 7]
    signs = np.array([[1.0, 2.0 * run.block - 3.0, *run.coded] for run in design.runs])
    assert np.linalg.matrix_rank(signs) == 5
    shares = np.abs(signs.T @ signs - np.diag(np.diag(signs.T @ signs))).max()
    assert shares <= 2.0, "blocks and factors are nearly orthogonal"


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (study(X, Y), "design.runs = 0: expected the number of runs per replicate"),
        (study(X, Y, runs=10**6), "design.runs = 1000000: expected the number .* to 10000"),
        (study(X, Y, runs=9, blocks=10), "design.blocks = 10: expected 1 to 9 blocks"),
        (study(X, Y, runs=5, model="quadratic"), "design.runs = 5: the model has 6 coefficients"),
        (study(X, Y, runs=6, blocks=2), "the model with its blocks has 7 coefficients"),
        (study(X, Y, runs=9, model="cubic"), "design.model: model 'cubic': expected linear, inter"),
        (study(X, Y, runs=9, model=["x", "w"]), "design.model: term 'w' uses 'w'"),
        (study(X, WIDTH, runs=9, model=["width^2"]), "expected the square of a number with more"),
        (study(X, Y, runs=9, constraints=["x + y <= -3"]), "no configuration satisfies"),
        (study(X, Y, runs=9, constraints=["x + y"]), "expected a sum of factors, <= or >=, and"),
        (study(X, Y, runs=9, constraints=["x + w <= 1"]), "'w' is not a numeric factor"),
        (
            study(X, OPTIMIZER, runs=9, constraints=["optimizer <= 1"]),
            "'optimizer' is not a numeric",
        ),
        (study(X, Y, runs=9, constraints=["x <= much"]), "'much' is not a number"),
        (study(X, Y, runs=9, include=["x=0"]), "no level of y"),
        (study(X, Y, runs=9, include=["x=0,y=3"]), "y=3: expected a number from -1 to 1"),
        (study(X, Y, runs=9, include=["x=1,y=1"], constraints=["x+y<=1"]), "is forbidden by"),
        (study(X, Y, runs=9, criterion="A"), 'design.criterion = \'A\': expected "D" or "I"'),
        (study(X, Y, runs="many"), "design.runs = 'many': expected a whole number"),
        (study(X, Y, runs=9, run=3), r"design.run: not a setting of optimal \(did you mean 'runs'"),
    ],
)
def test_what_cannot_be_asked_for_is_one_sentence(asked, said):
    with pytest.raises(DoeError, match=said) as refused:
        make_design(asked)
    assert "\n" not in str(refused.value)
