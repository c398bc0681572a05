"""Several goals: the front and its error rate, constraints, desirability, places without runs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from level_tables import factor, full, seen

from doe.analysis.analyze import fit_response
from doe.analysis.dataset import FactorColumn, Runs, runs_at
from doe.analysis.desirability import desirability_of, overall
from doe.analysis.fitted import FittedResponse
from doe.analysis.goals import Comparison, places
from doe.analysis.options import AnalysisOptions
from doe.analysis.trade_off import TradeOff, trade_off
from doe.errors import DoeError
from doe.goals import Constraint, Desire, parse_constraint, parse_desire
from doe.terms import parse_term


def fits(
    index: np.ndarray, columns: dict[str, np.ndarray], alpha: float = 0.05, **goals: str
) -> list[FittedResponse]:
    """Responses of a design of factors with as many levels as the index has."""
    factors = [
        factor(key, list(range(int(index[:, i].max()) + 1)))
        for i, key in enumerate("ABC"[: index.shape[1]])
    ]
    first = seen(factors, index, np.zeros(len(index)))
    return [
        fit_response(
            replace(first, y=y, response=name, goal=goals.get(name, "min")),
            AnalysisOptions(alpha=alpha),
        )
        for name, y in columns.items()
    ]


def four_configurations(noise: float, replicates: int = 4) -> TradeOff:
    """Costs of a 2²: 00 and 11 trade off, 01 is beaten by 00, and 10 is like 11."""
    index = full((2, 2), replicates)
    rng = np.random.default_rng(1)
    cell = index @ np.array([1, 2])
    loss = np.array([2.0, 1.0, 3.0, 1.0])[cell] + noise * rng.normal(size=len(cell))
    time = np.array([1.0, 5.0, 2.0, 5.0])[cell] + noise * rng.normal(size=len(cell))
    return trade_off(fits(index, {"loss": loss, "time": time}))


def test_the_front_is_told_from_what_is_dominated_and_from_ties() -> None:
    weighed = four_configurations(0.01)
    place = {point.config: point.place for point in weighed.pareto}
    assert place == {
        "A0B0": "front",
        "A1B0": "undecided",
        "A0B1": "dominated",
        "A1B1": "undecided",
    }
    beaten = next(point for point in weighed.pareto if point.place == "dominated")
    assert beaten.dominated_by == "A0B0"
    assert weighed.sentence.startswith(
        "Of 4 configurations 1 is shown to be on the Pareto front of loss and"
    )


def test_where_noise_hides_everything_nothing_is_called() -> None:
    assert {point.place for point in four_configurations(30.0).pareto} == {"undecided"}


def test_without_an_error_nothing_can_be_told() -> None:
    weighed = four_configurations(0.01, replicates=1)
    assert {point.place for point in weighed.pareto} == {"undecided"}
    assert weighed.sentence.startswith("Without an error estimate")


def test_equal_values_without_error_do_not_keep_another_from_dominating() -> None:
    index = full((2, 2), 3)
    size = np.array([10.0, 10.0, 20.0, 20.0])[index @ np.array([1, 2])]  # the same for every seed
    loss = index[:, 0] + 0.01 * np.random.default_rng(3).normal(size=len(index))
    weighed = trade_off(fits(index, {"loss": loss, "size": size}))
    place = {point.config: point.place for point in weighed.pareto}
    assert place == {
        "A0B0": "front",
        "A1B0": "dominated",
        "A0B1": "undecided",
        "A1B1": "dominated",
    }


def test_places_by_hand() -> None:
    first = np.array([[0.0, 1.0], [-1.0, 0.0]])
    nothing = np.zeros((2, 2), dtype=bool)

    def compared(p: float, sign: float = 1.0) -> Comparison:
        """The first is better with this p; with a sign of -1 the second."""
        better = np.array([[1.0, p], [1.0, 1.0]])
        return Comparison(better if sign > 0 else better.T, nothing, sign * first)

    both = [compared(0.001), compared(0.02)]
    assert places(both, 0.05) == (["front", "dominated"], [-1, 0])
    unsure = [compared(0.001), compared(0.03)]  # 0.05 / 2 for each of two configurations
    assert places(unsure, 0.05) == (["front", "undecided"], [-1, -1])
    traded = [compared(0.001), compared(0.012, -1.0)]  # 0.05 / 2 / 2 for each response
    assert places(traded, 0.05) == (["front", "front"], [-1, -1])
    less = [compared(0.001), compared(0.013, -1.0)]
    assert places(less, 0.05) == (["front", "undecided"], [-1, -1])


@pytest.mark.slow
@pytest.mark.parametrize("skewed", [False, True])
def test_a_configuration_of_the_front_is_rarely_called_dominated(skewed: bool) -> None:
    """All of eight configurations are on the true front, but in time they hardly differ."""
    index = full((2, 2, 2), 3)
    cell = index @ np.array([1, 2, 4])
    rng = np.random.default_rng(5)
    wrong = 0
    for _ in range(150):
        if skewed:
            noise = rng.exponential(size=(2, len(cell))) - 1.0
        else:
            noise = rng.normal(size=(2, len(cell)))
        loss, time = 10.0 * cell + noise[0], -1e-3 * cell + noise[1]
        weighed = trade_off(fits(index, {"loss": loss, "time": time}, alpha=0.2))
        wrong += any(point.place == "dominated" for point in weighed.pareto)
    assert 0 < wrong / 150 <= 0.2


# Constraints --------------------------------------------------------------------------------------


def limited(limit: float) -> TradeOff:
    index = full((2, 2), 4)
    cell = index @ np.array([1, 2])
    noise = 0.1 * np.random.default_rng(2).normal(size=(2, len(cell)))
    loss = np.array([4.0, 3.0, 2.0, 1.0])[cell] + noise[0]
    time = np.array([10.0, 20.0, 30.0, 40.0])[cell] + noise[1]
    both = fits(index, {"loss": loss, "time": time})
    return trade_off(both, [Constraint("time", True, limit)])


def test_the_best_within_a_limit() -> None:
    best = limited(35.0).within_limits[0]
    assert (best.response, best.config, best.keeps, best.ran) == ("loss", "A0B1", "yes", True)
    keeps = {point.config: point.keeps for point in limited(30.0).pareto}
    assert keeps == {"A0B0": "yes", "A1B0": "yes", "A0B1": "unclear", "A1B1": "no"}


def test_a_limit_that_nobody_keeps_leaves_no_configuration() -> None:
    weighed = limited(5.0)
    assert weighed.within_limits[0].config == ""
    assert {point.keeps for point in weighed.pareto} == {"no"}


def test_what_cannot_be_weighed_is_refused() -> None:
    both = fits(full((2, 2), 2), {"loss": np.arange(8.0), "time": np.arange(8.0)[::-1].copy()})
    with pytest.raises(DoeError, match="loss alone"):
        trade_off(both[:1])
    with pytest.raises(DoeError, match=r"'tim' was not analysed \(did you mean 'time'"):
        trade_off(both, [Constraint("tim", True, 1.0)])


# Desirability -------------------------------------------------------------------------------------


def test_desirability_rises_falls_or_has_its_target_between() -> None:
    y = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
    assert desirability_of(y, Desire(3.0, low=1.0)).tolist() == [0, 0, 0.5, 1, 1]
    assert desirability_of(y, Desire(1.0, high=3.0)).tolist() == [1, 1, 0.5, 0, 0]
    assert desirability_of(y, Desire(2.0, 0.0, 4.0)).tolist() == [0, 0.5, 1, 0.5, 0]


def test_the_overall_desirability_is_a_weighted_geometric_mean() -> None:
    single = np.array([[0.25, 1.0, 0.0], [1.0, 0.5, 1.0]])
    assert overall(single, np.array([1.0, 1.0])) == pytest.approx([0.5, np.sqrt(0.5), 0.0])
    assert overall(single, np.array([3.0, 1.0]))[0] == pytest.approx(0.25**0.75)


def surface(seed: int, noise: float, desires: dict[str, Desire]) -> TradeOff:
    """A face-centred design: accuracy is best at (0.5, -0.25), time rises with lr."""
    grid = np.array([(x, z) for x in (-1, 0, 1) for z in (-1, 0, 1)] + [(0, 0)] * 3, dtype=float)
    grid = np.concatenate([grid, grid])
    factors = tuple(FactorColumn(key, key, (0.0, 10.0), numeric=True) for key in ("lr", "wd"))
    values = {key: (5.0 + 5.0 * grid[:, i]).tolist() for i, key in enumerate(("lr", "wd"))}
    runs = Runs(factors, *runs_at(values, factors))
    rng = np.random.default_rng(seed)
    errors = noise * rng.normal(size=(2, len(grid)))
    accuracy = 90 - 8 * (grid[:, 0] - 0.5) ** 2 - 8 * (grid[:, 1] + 0.25) ** 2 + errors[0]
    time = 20 + 10 * grid[:, 0] + errors[1]
    terms = tuple(parse_term(term, ("lr", "wd")) for term in ("lr", "wd", "lr:wd", "lr^2", "wd^2"))
    first = seen(list(factors), np.zeros((len(grid), 2), dtype=np.int64), accuracy)
    base = replace(first, runs=runs, terms=terms)
    return trade_off(
        [
            fit_response(replace(base, y=accuracy, response="accuracy", goal="max")),
            fit_response(replace(base, y=time, response="time", goal="min")),
        ],
        desires=desires,
    )


DESIRES = {"accuracy": Desire(90.0, low=80.0), "time": Desire(10.0, high=40.0)}


def true_overall(x: float, z: float) -> float:
    accuracy, time = 90 - 8 * (x - 0.5) ** 2 - 8 * (z + 0.25) ** 2, 20 + 10 * x
    return float(np.sqrt(max(0.0, accuracy - 80) / 10 * min(1.0, (40 - time) / 30)))


def test_the_models_are_asked_between_the_runs() -> None:
    wanted = surface(0, 0.05, DESIRES).desirability
    assert wanted is not None
    assert wanted.model is not None
    x, z = (float(text) / 5 - 1 for text in wanted.model.config.split(" · "))
    grid = np.linspace(-1, 1, 201)
    best = max(true_overall(a, b) for a in grid for b in grid)
    assert true_overall(x, z) == pytest.approx(best, abs=0.01)
    assert wanted.model.overall > wanted.configs[0].overall


@pytest.mark.slow
def test_bootstrap_intervals_of_the_desirability_cover() -> None:
    """Of one configuration that nobody chose, in 60 studies: 95 % within four standard errors."""
    covered = 0
    for seed in range(60):
        wanted = surface(seed, 1.0, DESIRES).desirability
        assert wanted is not None
        middle = next(d for d in wanted.configs if d.config == "5.0 · 5.0")
        assert middle.ci_low is not None
        assert middle.ci_high is not None
        covered += middle.ci_low <= true_overall(0.0, 0.0) <= middle.ci_high
    assert covered / 60 >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / 60)


def test_weights_that_change_the_choice_are_named() -> None:
    wanted = limited_desire(1.0)
    assert wanted is not None
    assert {change.response for change in wanted.weights} == {"loss", "time"}
    assert any(not change.same for change in wanted.weights)
    assert "with some weight halved or doubled it is" in wanted.sentence


def limited_desire(weight: float):
    index = full((2, 2), 4)
    cell = index @ np.array([1, 2])
    noise = 0.01 * np.random.default_rng(2).normal(size=(2, len(cell)))
    loss = np.array([4.0, 3.0, 2.0, 1.0])[cell] + noise[0]
    time = np.array([10.0, 20.0, 30.0, 40.0])[cell] + noise[1]
    desires = {"loss": Desire(0.0, high=5.0, weight=weight), "time": Desire(0.0, high=50.0)}
    return trade_off(fits(index, {"loss": loss, "time": time}), (), desires).desirability


def test_where_everything_is_unacceptable_the_sentence_says_so() -> None:
    index = full((2, 2), 2)
    loss, time = np.arange(8.0) % 5, np.arange(8.0)[::-1].copy()
    desires = {"loss": Desire(-9.0, high=-8.0), "time": Desire(0.0, high=50.0)}
    wanted = trade_off(fits(index, {"loss": loss, "time": time}), (), desires).desirability
    assert wanted is not None
    assert wanted.sentence.startswith("Every configuration has a desirability of 0")


# As people write it -------------------------------------------------------------------------------


def test_constraints_and_desirabilities_are_read() -> None:
    assert parse_constraint("seconds<=60") == Constraint("seconds", True, 60.0)
    assert parse_constraint(" accuracy ≥ 0.9 ").text == "accuracy >= 0.9"
    assert parse_desire("accuracy=0.9..0.98:2") == ("accuracy", Desire(0.98, low=0.9, weight=2.0))
    assert parse_desire("seconds=60..10") == ("seconds", Desire(10.0, high=60.0))
    assert parse_desire("width=8..16..32")[1] == Desire(16.0, 8.0, 32.0)


@pytest.mark.parametrize(
    "text", ["seconds < 60", "seconds", "<= 60", "seconds <= soon", "s <= inf"]
)
def test_a_constraint_that_is_none_says_what_is_expected(text: str) -> None:
    with pytest.raises(DoeError, match="expected a response, <= or >=, and a number"):
        parse_constraint(text)


@pytest.mark.parametrize("text", ["seconds", "seconds=60", "seconds=60..", "seconds=60..10:x"])
def test_a_desirability_that_is_none_says_what_is_expected(text: str) -> None:
    with pytest.raises(DoeError, match="expected a response with the value"):
        parse_desire(text)
