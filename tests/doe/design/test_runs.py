import csv
import io
import json

import msgspec
import numpy as np
import pytest

from doe.design.changes import augmented
from doe.design.runs import design_csv, make_design, planned_rows, runs_of
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


@pytest.mark.parametrize("changes", [{}, {"fraction": "D=ABC", "blocks": "AB"}])
def test_a_planned_design_is_made_again_from_its_rows_without_the_matrix(changes, monkeypatch):
    asked = study(4, replicates=2, augment=(Augment(seeds=(9,)),), **changes)
    text = design_csv(make_design(asked))
    monkeypatch.setattr("doe.design.runs.standard_rows", None)
    assert design_csv(make_design(asked, planned_rows(text, asked))) == text


def test_rows_of_a_design_that_was_cut_off_are_not_trusted():
    asked = study(4, fraction="D=ABC")
    design = make_design(asked)
    lines = design_csv(design).splitlines(keepends=True)
    assert planned_rows("".join(lines), asked) == sorted(run.row for run in design.runs)
    assert planned_rows("".join(lines[:-1]), asked) == []
    assert planned_rows("no,such,columns\n1,2,3\n", asked) == []


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
    assert planned_rows(design_csv(make_design(left)), left) == sorted(r.row for r in runs)


def test_a_part_of_a_mixed_design_estimates_every_main_effect_and_the_parts_make_the_whole():
    third = study(2, factors=(LR, OPTIMIZERS, AUGMENT), fraction="1/2")
    runs = make_design(third).runs
    assert len(runs) == 9
    whole = augmented(third, "part")
    assert sorted(run.row for run in make_design(whole).runs) == list(range(18))
    assert max(run.block for run in make_design(whole).runs) == 2
    with pytest.raises(DoeError, match="all 2 parts"):
        augmented(whole, "part")


def test_a_part_that_cannot_tell_the_main_effects_apart_is_refused():
    small = study(2, factors=(Factor("B", (0, 1)), OPTIMIZERS, AUGMENT), fraction="1/3")
    with pytest.raises(DoeError, match=r'fraction = "1/3".*4 runs, 5 coefficients.*take 1/2'):
        make_design(small)


def test_centre_runs_have_every_factor_at_the_middle_of_its_scale():
    two = (Factor("lr", (0.001, 0.1), scale="log"), Factor("batch", (16, 64)))
    design = make_design(study(2, factors=two, centre=3, replicates=2, seeds=(1, 2)))
    centre = [run for run in design.runs if run.config == "centre"]
    assert len(design.runs) == 14
    assert len(centre) == len({run.run_id for run in centre}) == 6
    assert centre[0].levels == {"lr": 0.01, "batch": 40}
    assert centre[0].coded == (0, 0)
    more = make_design(augmented(study(2, factors=two, centre=3), "1"))
    assert sum(run.config == "centre" for run in more.runs) == 6
