"""Where variation comes from: components against lme4 and textbooks, error rates by simulation."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from factorial_tables import two_level_runs
from level_tables import full, words
from scipy import stats

from benchmarks.streams import beaten, size, told
from doe.analysis.analyze import analyze
from doe.analysis.confirm import noncentrality, wins
from doe.analysis.dataset import Dataset, FreshRuns, Runs
from doe.analysis.estimators.robust import Robust
from doe.analysis.options import AnalysisOptions
from doe.analysis.streams import Seeding, decompose, seed_error, stream_variances, variation
from doe.errors import DoeError

KNOWN = json.loads((Path(__file__).parent / "r" / "streams.json").read_text())


def one_row(case, *names):
    y = np.array(case["y"], dtype=float)[None]
    return y, decompose(names, np.array([case[name] for name in names]))


def test_crossed_components_are_those_of_the_penicillin_samples():
    y, split = one_row(KNOWN["penicillin"], "plate", "sample")
    variances, _ = stream_variances(y, split)
    answer = KNOWN["penicillin"]["variances"]
    assert split.streams == ("sample", "plate", "rest")
    expected = [answer["sample"], answer["plate"], answer["Residual"]]
    assert variances == pytest.approx(expected, rel=1e-5)
    assert expected == pytest.approx([3.731, 0.717, 0.302], abs=1e-3)  # as printed by Bates (2010)


def test_nested_components_are_those_of_the_dyestuff():
    case = KNOWN["dyestuff"] | {"preparation": list(range(30))}
    y, split = one_row(case, "batch", "preparation")
    variances, _ = stream_variances(y, split)
    assert split.streams == ("batch", "preparation")
    assert variances == pytest.approx([1764.05, 2451.25], rel=1e-6)  # Davies (1947)
    assert variances == pytest.approx(list(case["variances"].values()), rel=1e-4)


def test_components_of_an_incomplete_crossing_are_those_of_lme4():
    y, split = one_row(KNOWN["incomplete"], "plate", "sample")
    answer = KNOWN["incomplete"]["variances"]
    expected = [answer["sample"], answer["plate"], answer["Residual"]]
    assert stream_variances(y, split)[0] == pytest.approx(expected, rel=1e-5)
    assert split.variances(split.squares(y) / split.df)[0] > 1.05 * expected[0]  # by ANOVA


def test_part_of_the_pairs_of_seeds_has_the_components_and_the_error_of_lme4():
    case = KNOWN["part"]
    v, data = case["variances"], study_of(case)
    shares = {c.stream: c for c in analyze(data).variation.components}
    for stream in ("init", "data"):
        whole = v[stream] + v[f"cell:{stream}"]
        assert shares[stream].variance == pytest.approx(whole, rel=1e-4)
        assert shares[stream].variance_low <= whole <= shares[stream].variance_high
    assert shares["rest"].variance == pytest.approx(v["init:data"] + v["Residual"], rel=1e-4)
    own = seed_error(data.y, data.runs.cells, data.runs.seeding)
    sharing = [sum(n * n for n in seeds) / 9 for seeds in ((3, 3, 3), (2, 2, 3, 2), (1,) * 9)]
    parts = v["cell:init"], v["cell:data"], v["Residual"]
    assert own.ms == pytest.approx(np.dot(sharing, parts), rel=1e-4)
    assert own.single == pytest.approx(sum(parts), rel=1e-4)


def study_of(case, **more):
    """A 2^3 with 12 replicates: 3 seeds of init crossed with 4 of data."""
    cell, init, data = (np.array(case[name]) for name in ("cell", "init", "data"))
    replicate = (init - 1) * 4 + data - 1
    seeding = Seeding(("init", "data"), replicate, np.stack([init, data]))
    runs = two_level_runs(cell, 3, np.unique(replicate, return_inverse=True)[1])
    runs = replace(runs, block_name="replicate", seeding=seeding)
    return Dataset(runs, "y", np.array(case["y"]), **({"goal": "min"} | more))


def test_a_study_has_the_components_and_the_standard_error_of_lme4():
    case = KNOWN["study"]
    analysis = analyze(study_of(case))
    v = case["variances"]
    shares = {c.stream: c for c in analysis.variation.components}
    assert list(shares) == ["init", "data", "rest"]
    for stream in ("init", "data"):
        whole = v[stream] + v[f"cell:{stream}"]
        assert shares[stream].variance == pytest.approx(whole, rel=1e-4)
        assert shares[stream].common == pytest.approx(v[stream], rel=1e-4)
    assert shares["rest"].variance == pytest.approx(v["init:data"] + v["Residual"], rel=1e-4)
    assert sum(c.share for c in shares.values()) == pytest.approx(1.0)
    a = next(e for e in analysis.effects if e.term == "A")
    assert a.effect == pytest.approx(case["effect"], rel=1e-9)
    assert a.se == pytest.approx(case["se"], rel=1e-4)
    assert analysis.anova.error == "variation over seeds"


def test_without_shared_seeds_the_error_is_the_pure_error():
    rng = np.random.default_rng(0)
    y, cells = rng.normal(size=32), np.tile(np.arange(8), 4)
    replicate = np.repeat(np.arange(4), 8)
    own = seed_error(y, cells, Seeding(("seed",), replicate, replicate[None]))
    table = y.reshape(4, 8).T
    left = table - table.mean(axis=0) - table.mean(axis=1)[:, None] + table.mean()
    assert own.ms == pytest.approx((left**2).sum() / 21)
    assert own.single == pytest.approx(own.ms)
    assert own.df == pytest.approx(21)


def test_the_same_answer_in_any_order_and_unit():
    case = KNOWN["study"]
    base = analyze(study_of(case)).variation
    order = np.random.default_rng(1).permutation(len(case["y"]))
    mixed = {k: np.array(case[k])[order].tolist() for k in ("y", "cell", "init", "data")}
    other = analyze(study_of(mixed)).variation
    for one, two in zip(base.components, other.components, strict=True):
        assert two.variance == pytest.approx(one.variance)
        assert two.share_low == pytest.approx(one.share_low, rel=1e-6)
    tiny = study_of({**case, "y": [1e-150 * value for value in case["y"]]})
    small = analyze(tiny).variation
    assert small.components[0].variance == pytest.approx(1e-300 * base.components[0].variance)
    assert small.components[0].share == pytest.approx(base.components[0].share)


def test_configurations_with_a_lost_run_are_left_out_of_the_shares():
    case = KNOWN["study"]
    y = list(case["y"])
    y[0] = float("nan")
    analysis = analyze(study_of({**case, "y": y}))
    assert analysis.variation.configurations == 7
    full = np.array(case["y"])
    keep = np.array(case["cell"]) != case["cell"][0]
    init, data = np.array(case["init"])[keep], np.array(case["data"])[keep]
    seeding = Seeding(("init", "data"), (init - 1) * 4 + data - 1, np.stack([init, data]))
    alone = variation(full[keep], np.array(case["cell"])[keep], seeding, 0.05, 42)
    for one, two in zip(analysis.variation.components, alone.components, strict=True):
        assert one.variance == pytest.approx(two.variance)


def test_runs_that_cannot_yet_tell_streams_apart_say_so():
    case = KNOWN["study"]
    first = [i for i in range(96) if (case["init"][i], case["data"][i]) in ((1, 1), (1, 2))]
    part = {k: [case[k][i] for i in first] for k in ("y", "cell", "init", "data")}
    analysis = analyze(study_of(part))
    assert analysis.variation is None
    assert any("share seeds" in warning for warning in analysis.warnings)
    assert not any("share seeds" in warning for warning in analyze(study_of(case)).warnings)


def test_methods_that_take_replicates_as_independent_are_left_out():
    observed = study_of(KNOWN["study"])
    analysis = analyze(observed, AnalysisOptions(robust=True))
    assert analysis.estimates["robust"] is None
    assert any("robust methods are left out" in warning for warning in analysis.warnings)
    with pytest.raises(DoeError, match="share seeds"):
        analyze(observed, AnalysisOptions(random_blocks=True))
    chosen = analyze(observed, AnalysisOptions(terms=("A", "B"), robust=True))
    assert chosen.get(Robust) is None
    assert any("robust methods are left out" in warning for warning in chosen.warnings)


def test_a_chosen_model_is_tested_against_the_variation_over_seeds():
    observed = study_of(KNOWN["study"])
    whole = analyze(observed)
    terms = tuple(effect.term for effect in whole.effects)
    chosen = analyze(observed, AnalysisOptions(terms=terms))
    assert chosen.anova.error == "variation over seeds"
    assert {e.term: e.p for e in chosen.effects} == pytest.approx(
        {e.term: e.p for e in whole.effects}
    )
    assert chosen.variation == whole.variation
    few = analyze(observed, AnalysisOptions(terms=("A",)))
    (a,) = few.effects
    assert a.se == pytest.approx(KNOWN["study"]["se"], rel=1e-4)
    lack = next(row for row in few.anova.rows if row.source == "Lack of fit")
    assert lack.f == pytest.approx(lack.ms / few.sigma**2)


def test_factors_with_levels_have_streams_too():
    rng = np.random.default_rng(0)
    a, b, replicate = np.indices((3, 2, 4)).reshape(3, -1)
    seeds = np.array([[0, 1, 0, 1], [0, 1, 1, 0]])
    size = 0
    for _ in range(60):
        own = rng.normal(size=(2, 6, 2))
        y = rng.normal(size=24) + sum(own[s, 2 * a + b, seeds[s, replicate]] for s in (0, 1))
        y += rng.normal(size=(2, 2))[0][seeds[0, replicate]]
        seeding = Seeding(("init", "data"), replicate, seeds[:, replicate])
        index = np.column_stack([a, b])
        runs = Runs(words((3, 2)), index, block=replicate, seeding=seeding)
        analysis = analyze(Dataset(runs, "y", y, goal="max"))
        size += sum(test.p < 0.05 for test in analysis.tests)
    assert analysis.anova.error == "variation over seeds"
    assert [c.stream for c in analysis.variation.components] == ["init", "data", "rest"]
    assert size / 180 < 0.09  # against pure error it is 0.16


# Which configuration beats another --------------------------------------------------------------


@pytest.mark.parametrize(("t", "df"), [(4.0, 3), (-3.0, 14), (0.1, 7), (8.0, 189), (20.0, 5.5)])
@pytest.mark.parametrize("alpha", [0.05, 1e-5])
def test_the_interval_of_a_noncentrality_inverts_its_distribution(t, df, alpha):
    low, high = noncentrality(t, df, alpha)
    assert stats.nct.sf(t, df, low) == pytest.approx(alpha / 2, rel=1e-4)
    assert stats.nct.cdf(t, df, high) == pytest.approx(alpha / 2, rel=1e-4)


def plain(y, goal, **more):
    observed = study_of(KNOWN["study"], goal=goal)
    runs = replace(observed.runs, seeding=None)
    return replace(observed, runs=runs, y=y, **more)


def test_better_is_what_the_goal_says():
    y = np.array(KNOWN["study"]["y"])
    asked = AnalysisOptions(beats=(("A1B1C1", "A0B0C0"),))
    (least,) = analyze(plain(y, "min"), asked).beats
    (most,) = analyze(plain(y, "max"), asked).beats
    assert least.probability == pytest.approx(1 - most.probability)
    assert (least.low, least.high) == pytest.approx((1 - most.high, 1 - most.low))
    assert most.probability > 0.9  # the cells rise with their number
    assert analyze(plain(y, "min")).beats == ()


def test_the_probability_is_that_of_the_standardised_difference():
    rng = np.random.default_rng(3)
    case = KNOWN["study"]
    y = rng.normal(size=96) + 1.0 * (np.array(case["cell"]) == 7)
    analysis = analyze(plain(y, "max"), AnalysisOptions(beats=(("A1B1C1", "A0B0C0"),)))
    (answer,) = analysis.beats
    cells = np.array(case["cell"])
    difference = y[cells == 7].mean() - y[cells == 0].mean()
    assert answer.probability == pytest.approx(
        stats.norm.cdf(difference / np.sqrt(2) / analysis.sigma)
    )
    assert answer.seeds == 12


def test_configurations_of_any_levels_are_compared():
    rng = np.random.default_rng(9)
    index = full((3, 2), 6)
    runs = Runs(words((3, 2)), index, block=np.repeat(np.arange(6), 6))
    y = rng.normal(size=36) + 1.5 * (index[:, 0] == 2)
    data = Dataset(runs, "y", y, goal="max")
    pairs = (("best", "baseline"), ("A2B0", "A0B0"))
    best, answer = analyze(data, AnalysisOptions(beats=pairs)).beats
    assert best.against == "A0B0"
    cells = runs.cells
    analysis = analyze(data)
    difference = y[cells == 2].mean() - y[cells == 0].mean()
    assert answer.probability == pytest.approx(
        stats.norm.cdf(difference / np.sqrt(2) / analysis.sigma)
    )
    assert answer.low < answer.probability < answer.high


def test_names_that_are_none_and_goals_that_nobody_gave_are_refused():
    y = np.array(KNOWN["study"]["y"])
    for pair, said in (
        (("A1B1C1", "A0B0C9"), "not a configuration with runs"),
        (("A1B1C1", "A1B1C1"), "compared with itself"),
    ):
        with pytest.raises(DoeError, match=said):
            analyze(plain(y, "min"), AnalysisOptions(beats=(pair,)))
    with pytest.raises(DoeError, match="give a goal"):
        analyze(plain(y, None), AnalysisOptions(beats=(("best", "baseline"),)))


def test_chosen_pairs_are_wider_and_fresh_runs_take_their_place():
    y = np.array(KNOWN["study"]["y"])
    asked = AnalysisOptions(beats=(("best", "runner-up"), ("A0B0C0", "A1B0C0")))
    chosen, named = analyze(plain(y, "min"), asked).beats
    assert (chosen.config, chosen.against) == (named.config, named.against)
    assert chosen.probability == named.probability
    assert chosen.low < named.low
    assert chosen.high > named.high
    values = np.array([[1.0, 1.2, 0.9, 1.1], [2.0, 2.3, 1.7, 2.2], [3.0, 3.1, 3.2, 2.8]])
    fresh = FreshRuns(("A1B0C0", "A0B0C0", "A1B1C1"), values)
    (confirmed,) = analyze(
        plain(y, "min", fresh=fresh), AnalysisOptions(beats=(("best", "runner-up"),))
    ).beats
    assert confirmed.fresh
    assert (confirmed.config, confirmed.against, confirmed.seeds) == ("A1B0C0", "A0B0C0", 4)
    d = values[1] - values[0]
    low, high = noncentrality(d.mean() / d.std(ddof=1) * 2, 3, 0.05)
    assert (confirmed.low, confirmed.high) == pytest.approx(
        (stats.norm.cdf(low / 2), stats.norm.cdf(high / 2))
    )


def test_the_share_of_seeds_won_has_the_interval_of_clopper_and_pearson():
    assert wins(4.0, 4, 0.05) == pytest.approx((1.0, 0.025**0.25, 1.0))
    assert wins(0.0, 4, 0.05) == pytest.approx((0.0, 0.0, 1.0 - 0.025**0.25))
    exact = stats.binomtest(7, 9).proportion_ci(method="exact")
    assert wins(7.0, 9, 0.05) == pytest.approx((7 / 9, exact.low, exact.high))


def shaped(errors, effect=2.0):
    """Twelve runs of each of eight configurations, A better by `effect`."""
    return errors + effect * (np.array(KNOWN["study"]["cell"]) & 1)


def test_errors_that_are_not_normal_leave_the_seeds_that_were_won():
    skewed = shaped(np.exp(2.0 * np.random.default_rng(4).normal(size=96)))
    asked = AnalysisOptions(beats=(("A1B0C0", "A0B0C0"),))
    (answer,) = analyze(plain(skewed, "max"), asked).beats
    cells = np.array(KNOWN["study"]["cell"])
    won = float((skewed[cells == 1] > skewed[cells == 0]).sum())
    assert answer.basis == "seeds won"
    assert (answer.probability, answer.low, answer.high) == pytest.approx(wins(won, 12, 0.05))
    (shared,) = analyze(study_of({**KNOWN["study"], "y": skewed}, goal="max"), asked).beats
    assert shared.low < answer.low  # 12 replicates of 3 seeds tell no more than 3 of their own
    (even,) = analyze(plain(shaped(np.random.default_rng(4).normal(size=96)), "max"), asked).beats
    assert even.basis == "all runs"


def test_an_unequal_spread_leaves_the_differences_of_the_two():
    cells = np.array(KNOWN["study"]["cell"])
    errors = np.random.default_rng(0).normal(size=96) * 2.0 ** ((cells & 2) - 1)
    y = shaped(errors, 0.3)
    (answer,) = analyze(plain(y, "max"), AnalysisOptions(beats=(("A1B0C0", "A0B0C0"),))).beats
    d = y[cells == 1] - y[cells == 0]
    assert answer.basis == "own runs"
    assert answer.probability == pytest.approx(stats.norm.cdf(d.mean() / d.std(ddof=1)))


def test_without_blocks_runs_pair_up_in_their_order():
    cells = np.array(KNOWN["study"]["cell"])
    observed = plain(shaped(np.exp(2.0 * np.random.default_rng(4).normal(size=96))), "max")
    observed = replace(observed, runs=replace(observed.runs, block=None))
    (answer,) = analyze(observed, AnalysisOptions(beats=(("A1B0C0", "A0B0C0"),))).beats
    assert answer.seeds == 12
    assert answer.probability == (observed.y[cells == 1] > observed.y[cells == 0]).mean()


def test_the_other_scale_is_tested_against_the_variation_over_seeds_too():
    case = KNOWN["study"]
    y = np.exp(np.array(case["y"]) / 10.0).tolist()
    both = analyze(study_of({**case, "y": y})).scales
    log = analyze(study_of({**case, "y": y}), AnalysisOptions(transform="log"))
    expected = {e.term: e.p_holm for e in log.effects}
    assert {row.term: row.log_p_holm for row in both.terms} == pytest.approx(expected)


# Error rates, in short: `make calibrate` has the tables ------------------------------------------


@pytest.mark.slow
def test_tests_hold_their_size_where_replicates_share_seeds():
    assert size("2 x 2", 3, "normal", 400) < 0.08
    assert size("2 x 2", 3, "normal", 400, pure=True) > 0.12


@pytest.mark.slow
def test_intervals_of_shares_and_of_winning_cover():
    assert min(told("3 x 3", 3, "normal", 60)) > 0.88
    assert min(told("2 x 2 x 2", 3, "normal", 60)) > 0.92
    assert min(beaten("2 x 2", 3, "normal", 60)) > 0.88
