import csv
import io
import json

import msgspec
import numpy as np
import pytest

from doe.design.changes import augmented
from doe.design.configurations import Configurations
from doe.design.runs import make_design, runs_of
from doe.design.table import design_csv, design_digest, read_design
from doe.errors import DoeError
from doe.store.requests import request_bytes
from doe.study.presets import preset_study
from doe.study.values import Augment, Factor, Responses, Study
from doe.terms import level_text, parse_generators, terms_up_to


def study(k=3, **changes):
    factors = tuple(Factor(key=key, levels=(-1, 1)) for key in "ABCDEFGHJK"[:k])
    base = Study(
        name="s",
        backend="m:f",
        factors=factors,
        responses=Responses(metrics=("y",)),
        seeds=(1, 2, 3, 4),
    )
    return msgspec.structs.replace(base, **changes)


def model_matrix(design, k):
    coded = np.array([run.coded for run in design.runs])
    products = [
        np.prod(coded[:, [i for i in range(k) if mask >> i & 1]], axis=1) for mask in terms_up_to(k)
    ]
    return np.column_stack([np.ones(len(coded)), *products])


def test_paper_design_is_256_runs_in_four_orthogonal_blocks_of_64():
    design = make_design(preset_study("paper"))
    X = model_matrix(design, 6)
    assert X.shape == (256, 64)
    assert np.array_equal(X.T @ X, 256 * np.eye(64))
    for block in range(1, 5):
        runs = [run for run in design.runs if run.block == block]
        assert sorted(run.row for run in runs) == list(range(64))
        assert {run.replicate for run in runs} == {block}
        assert {run.seed for run in runs} == {99 + block}
        assert [run.run_order for run in runs] == list(range(64 * block - 63, 64 * block + 1))


def test_rows_are_the_papers_row_numbers():
    runs = {run.row: run for run in make_design(preset_study("paper")).runs}
    assert runs[55].config == "A1B1C1D0E1F1"
    assert runs[4].config == "A0B0C1D0E0F0"
    assert runs[55].levels["D"] is False
    assert runs[55].levels["F"] is True
    assert runs[55].coded == (1, 1, 1, -1, 1, 1)


def test_order_is_random_within_blocks_differs_between_them_and_follows_the_seed():
    design = make_design(preset_study("paper"))
    orders = [[r.row for r in design.runs if r.block == b] for b in (1, 2)]
    assert orders[0] != sorted(orders[0])
    assert orders[0] != orders[1]
    other = make_design(msgspec.structs.replace(preset_study("paper"), order_seed=43))
    assert [r.row for r in other.runs[:64]] != orders[0]


def test_order_of_this_release_is_the_order_of_every_release():
    rows = [run.row for run in make_design(preset_study("paper")).runs[:8]]
    assert rows == [19, 13, 47, 38, 17, 18, 27, 2]


def test_random_order_has_no_preferred_place():
    """Position of row 0 among 16 over many seeds: chi-square on 15 df below its 0.1 % point."""
    counts = np.zeros(16)
    for seed in range(800):
        runs = make_design(study(4, order_seed=seed)).runs
        counts[next(i for i, run in enumerate(runs) if run.row == 0)] += 1
    assert ((counts - 50) ** 2 / 50).sum() < 37.7


def test_fraction_keeps_row_numbers_of_the_full_factorial():
    design = make_design(study(3, fraction="C=-AB"))
    assert sorted(run.row for run in design.runs) == [0b000, 0b011, 0b101, 0b110]
    for run in design.runs:
        assert run.coded[2] == -run.coded[0] * run.coded[1]


def test_block_confounds_the_interaction_and_nothing_else():
    design = make_design(study(3, blocks="ABC", replicates=2))
    assert design.blocks == 4
    for block in range(1, 5):
        coded = np.array([run.coded for run in design.runs if run.block == block])
        assert len(coded) == 4
        assert abs(coded.prod(axis=1).sum()) == 4
        assert not coded.sum(axis=0).any()


def test_blocks_of_a_mixed_design_confound_an_interaction_of_its_two_level_factors():
    factors = (Factor("n", (1, 2, 3)), Factor("a", (0, 1)), Factor("b", (0, 1)))
    design = make_design(study(3, factors=factors, blocks="ab"))
    assert {(run.block, run.levels["a"] == run.levels["b"]) for run in design.runs} == {
        *((1, False), (2, True))
    }


def test_replicates_are_added_after_everything_planned():
    base = study(3, replicates=2)
    more = msgspec.structs.replace(base, augment=(Augment(seeds=(9,)),))
    old, new = make_design(base), make_design(more)
    assert new.runs[: len(old.runs)] == old.runs
    added = new.runs[len(old.runs) :]
    assert {(r.replicate, r.block, r.seed) for r in added} == {(3, 3, 9)}
    assert sorted(r.row for r in added) == list(range(8))


def test_foldover_of_a_half_completes_the_factorial_in_new_blocks():
    base = study(4, fraction="D=ABC", replicates=2)
    more = msgspec.structs.replace(base, augment=(Augment(flip=("D",)),))
    old, new = make_design(base), make_design(more)
    assert new.runs[:16] == old.runs
    assert {run.block for run in new.runs[16:]} == {3, 4}
    assert len({run.run_id for run in new.runs}) == 32
    X = model_matrix(new, 4)
    assert np.array_equal(X.T @ X, 32 * np.eye(16))


def test_foldover_onto_itself_is_refused():
    more = study(4, fraction="D=ABC", augment=(Augment(flip=("A", "B", "C", "D")),))
    with pytest.raises(DoeError, match="repeats planned runs"):
        make_design(more)


def test_csv_has_levels_as_given_and_coded():
    factors = (Factor(key="lr", levels=(0.001, 0.01)), Factor(key="aug", levels=("off", "on")))
    words = study(2, factors=factors)
    rows = list(csv.DictReader(io.StringIO(design_csv(make_design(words)))))
    assert {(row["lr"], row["lr_coded"]) for row in rows} == {("0.001", "-1"), ("0.01", "1")}
    assert {row["aug"] for row in rows} == {"off", "on"}
    assert {row["config"] for row in rows if row["row"] == "3"} == {"lr=0.01,aug=on"}


def test_a_configuration_has_one_label_and_one_name_and_both_find_its_runs():
    asked = study(2, factors=(LR, OPTIMIZERS, AUGMENT), replicates=2)
    runs = make_design(asked).runs
    request = json.loads(request_bytes(asked, runs[0]))
    assert request["config"] == runs[0].name, "requests of runs that are done must stay the same"
    for run in runs:
        assert run.config == " · ".join(level_text(level) for level in run.levels.values())
        assert run.name == ",".join(f"{k}={level_text(v)}" for k, v in run.levels.items())
        assert runs_of(runs, run.config) == runs_of(runs, run.name)
        assert [same.row for same in runs_of(runs, run.name)] == [run.row] * 2
    letters = make_design(study(3)).runs
    assert all(run.config == run.name for run in letters)
    assert [run.row for run in runs_of(letters, "A1B0C1")] == [5]
    with pytest.raises(DoeError, match=r"is planned \(did you mean 'lr=0.1,optimizer=lion,"):
        runs_of(runs, "lr=0.1,optimizer=lion")


def test_sixteen_factors_are_planned_whole():
    factors = tuple(Factor(key=key, levels=(0, 1)) for key in "ABCDEFGHJKLMNOPQ")
    design = make_design(study(factors=factors))
    assert len({run.run_id for run in design.runs}) == 2**16


@pytest.mark.parametrize("fraction", ["", "D=ABC", "C=-AB, D=AB", "B=-AC, D=-AC"])
def test_the_matrix_has_the_columns_that_its_generators_define(fraction):
    design = make_design(study(4, fraction=fraction))
    assert len({run.row for run in design.runs}) == len(design.runs)
    for factor, interaction, sign in parse_generators(fraction, "ABCD"):
        for run in design.runs:
            product = np.prod([x for i, x in enumerate(run.coded) if interaction >> i & 1])
            assert run.coded[factor.bit_length() - 1] == sign * product


# Factors with levels ------------------------------------------------------------------------------


OPTIMIZERS = Factor("optimizer", ("sgd", "adam", "lion"))
LR = Factor("lr", (0.001, 0.01, 0.1), scale="log")
AUGMENT = Factor("augment", (False, True))


def test_a_mixed_factorial_has_every_combination_once_and_rows_in_mixed_radix():
    design = make_design(study(2, factors=(LR, OPTIMIZERS, AUGMENT), replicates=2, seeds=(1, 2)))
    assert len(design.runs) == 36
    assert len({(run.config, run.replicate) for run in design.runs}) == 36
    by_id = {run.run_id: run for run in design.runs}
    assert by_id["000-r1"].levels == {"lr": 0.001, "optimizer": "sgd", "augment": False}
    assert by_id["001-r1"].levels["lr"] == 0.01
    assert by_id["003-r1"].levels["optimizer"] == "adam"
    last = by_id["017-r2"]
    assert last.levels == {"lr": 0.1, "optimizer": "lion", "augment": True}
    assert last.coded == (1, 1, 1)
    assert by_id["004-r1"].coded == (0, 0, -1)
    assert last.config == "0.1 · lion · true"


def test_excluded_combinations_never_run():
    left = study(2, factors=(LR, OPTIMIZERS, AUGMENT), exclude=("optimizer=sgd, augment=on",))
    runs = make_design(left).runs
    assert len(runs) == 15
    assert not any(r.levels["optimizer"] == "sgd" and r.levels["augment"] for r in runs)


def test_a_part_of_a_mixed_design_estimates_every_main_effect_and_the_parts_make_the_whole():
    third = study(2, factors=(LR, OPTIMIZERS, AUGMENT), fraction="1/2")
    runs = make_design(third).runs
    assert len(runs) == 9
    whole = augmented(third, "part")
    assert sorted(run.row for run in make_design(whole).runs) == list(range(18))
    assert max(run.block for run in make_design(whole).runs) == 2
    with pytest.raises(DoeError, match="all 2 parts"):
        augmented(whole, "part")
    later = augmented(augmented(third, "1"), "part")
    assert later.augment[-1].part == 2, "the first part is planned already"


def test_a_part_that_cannot_tell_the_main_effects_apart_is_refused():
    small = study(2, factors=(Factor("B", (0, 1)), OPTIMIZERS, AUGMENT), fraction="1/3")
    with pytest.raises(DoeError, match=r'fraction = "1/3".*4 runs, 5 coefficients.*use 1/2'):
        make_design(small)


def test_centre_runs_have_every_factor_at_the_middle_of_its_scale():
    two = (Factor("lr", (0.001, 0.1), scale="log"), Factor("batch", (16, 64)))
    design = make_design(study(2, factors=two, centre=3, replicates=2, seeds=(1, 2)))
    centre = [run for run in design.runs if run.name == "centre"]
    assert len(design.runs) == 14
    assert len(centre) == len({run.run_id for run in centre}) == 6
    assert centre[0].levels == {"lr": 0.01, "batch": 40}
    assert centre[0].coded == (0, 0)
    more = make_design(augmented(study(2, factors=two, centre=3), "1"))
    assert sum(run.name == "centre" for run in more.runs) == 6


# A design is data --------------------------------------------------------------------------------

RANGE = Factor("lr", (0.25, 4.0), scale="log")
ALIKE = Factor("alike", ("1", 1))  # told apart by their codes alone


@pytest.mark.parametrize(
    "asked",
    [
        study(3, blocks="ABC", replicates=2, centre=3),
        study(4, fraction="D=ABC", augment=(Augment(flip=("D",)), Augment(seeds=(9,)))),
        study(2, factors=(LR, Factor("words", ("a,b", 'c"d', "é")), AUGMENT), replicates=2),
        study(2, factors=(Factor("lr", (0.1, 1e-5)), Factor("n", (1, 2, 7))), centre=2),
        study(2, factors=(ALIKE, AUGMENT)),
        study(2, replicates=2, seeds=(), streams={"init": (1, 2), "data": (7, 7)}),
    ],
)
def test_a_design_is_read_back_as_it_was_written(asked):
    design = make_design(asked)
    again = read_design(design_csv(design), asked)
    assert again == design
    for read, made in zip(again.runs, design.runs, strict=True):
        assert request_bytes(asked, read) == request_bytes(asked, made)


def test_a_configuration_between_the_levels_has_its_levels_for_a_name_and_the_next_number():
    factors = (RANGE, Factor("n", (10, 30)))
    named = Configurations(factors)
    assert [named.number(levels) for levels in [(0.25, 10), (4.0, 30), (2.0, 10), (1.0, 20)]] == [
        *(0, 3, 4, 5)
    ]
    assert named.number((2.0, 10)) == 4
    between = named.at((2.0, 10))
    assert between.label == "2.0 · 10"
    assert between.name == "lr=2.0,n=10"
    assert between.coded == (0.5, -1)
    assert named.at((1.0, 20)).name == "centre"
    assert named.at((1.0, 20)).label == "1.0 · 20", "as the analysis names it"
    later = Configurations(factors, {(2.0, 10): 4, (0.25, 10): 0})
    assert later.number((1.0, 10)) == 5
    letters = Configurations((Factor("A", (0.0, 1.0)), Factor("B", (0.0, 1.0))))
    assert letters.at((0.25, 1.0)).label == "A=0.25,B=1.0"
    with pytest.raises(DoeError, match="'adagrad' is not a level of optimizer; expected sgd, adam"):
        Configurations((OPTIMIZERS,)).at(("adagrad",))


@pytest.mark.parametrize("scale", ["linear", "log"])
def test_positions_and_levels_are_each_others_inverse(scale):
    factor = Factor("x", (0.25, 4.0), scale=scale)
    assert [factor.level_at(p) for p in (-1, 0, 1)] == [0.25, factor.centre, 4.0]
    for position in (-1.2, -0.3, 0.8):
        assert factor.position(factor.level_at(position)) == pytest.approx(position, abs=1e-3)
    assert Factor("n", (16, 64), scale="log").level_at(0.5) == 45
    assert Factor("t", (1000.0, 1001.0)).level_at(0.414) == 1000.707
    assert Factor("t", (3e-9, 1e-9)).level_at(0.5) == pytest.approx(1.5e-9)


def test_the_digest_covers_the_design_and_what_decides_it_and_no_words():
    asked = study(3)
    text = design_csv(make_design(asked))
    renamed = msgspec.structs.replace(asked.factors[0], name="other", description="words")
    same = study(3, factors=(renamed, *asked.factors[1:]), description="words")
    assert design_digest(same, text) == design_digest(asked, text)
    others = [study(3, order_seed=0), study(3, replicates=2), study(3, centre=1)]
    digests = {
        design_digest(s, t)
        for s, t in [(asked, text), (asked, text + "x"), *((o, text) for o in others)]
    }
    assert len(digests) == 5
