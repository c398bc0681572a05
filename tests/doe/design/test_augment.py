"""Points added to a design, and factors that matter beside a level of another alone."""

import msgspec
import numpy as np
import pytest

from doe.design.changes import augmented
from doe.design.efficiency import design_efficiency
from doe.design.kinds import chosen_kind
from doe.design.model import block_columns, d_efficiency, model_matrix
from doe.design.runs import make_design
from doe.errors import DoeError, SpecError
from doe.store.plan import augment_plan, load_plan, write_plan
from doe.study.file import dump_study, parse_study
from doe.study.values import Factor, Responses, Study

LR, WD = Factor("lr", (1e-4, 1e-2), scale="log"), Factor("wd", (0.0, 0.5))
OPTIMIZER = Factor("optimizer", ("sgd", "adam"))


def study(*factors, **changes):
    base = Study(
        name="s", backend="m:f", factors=factors, responses=Responses(metrics=("y",)), seeds=(1, 2)
    )
    return msgspec.structs.replace(base, **changes)


def matrix(asked, design):
    points = [run.level_values for run in design.runs]
    columns = model_matrix(asked.factors, points, chosen_kind(asked).terms())
    return np.column_stack([columns, block_columns([run.block for run in design.runs])])


def test_axial_points_make_a_surface_of_a_factorial():
    asked = augmented(study(LR, WD, centre=3, replicates=2), "axial")
    design = make_design(asked)
    added = design.runs[14:]
    assert len(added) == 2 * (4 + 3)
    assert {(run.replicate, run.block) for run in added} == {(1, 3), (2, 4)}
    assert all(run.seed == run.replicate for run in added if run.name != "centre")
    assert {run.level_values for run in added if run.name != "centre"} == {
        *((1e-4, 0.25), (1e-2, 0.25), (1e-3, 0.0), (1e-3, 0.5))
    }
    assert sorted(r.run_id for r in added if r.block == 3 and r.name == "centre") == [
        *("centre4-r1", "centre5-r1", "centre6-r1")
    ]
    assert len({run.run_id for run in design.runs}) == 28
    assert design.runs[:14] == make_design(study(LR, WD, centre=3, replicates=2)).runs
    assert d_efficiency(matrix(asked, design)) > 0
    assert design_efficiency(asked, design).words == "main effects, interactions, squares"


@pytest.mark.parametrize("design", [{"kind": "surface"}, {"kind": "optimal", "runs": 20}])
def test_no_run_has_the_levels_and_the_seed_of_another(design):
    asked = study(LR, WD, OPTIMIZER, design=design, seeds=(1,))
    asked = augmented(augmented(augmented(asked, "2"), "optimal", 9, "interactions"), "1")
    runs = make_design(asked).runs
    assert len({(run.level_values, run.seed) for run in runs}) == len(runs)
    assert len({run.level_values for run in runs if run.replicate == 1}) < len(runs) / 4
    firsts = {run.seed for run in runs if "x" not in run.run_id and run.name != "centre"}
    assert firsts == {1, 2, 3, 4}


def test_axial_points_stand_at_each_level_of_words():
    added = make_design(augmented(study(LR, WD, OPTIMIZER), "axial")).runs[8:]
    assert len(added) == 2 * (4 + 2)
    assert len(make_design(augmented(study(LR, WD, replicates=2), "axial")).runs[8:]) == 2 * (4 + 1)
    assert {run.levels["optimizer"] for run in added} == {"sgd", "adam"}


def test_an_optimal_augmentation_uses_what_has_been_run(tmp_path):
    base = study(LR, WD, Factor("m", (0.0, 1.0)), fraction="m=lr:wd")
    plan, _ = write_plan(base, tmp_path)
    more = augment_plan(tmp_path, "optimal", runs=9)
    assert load_plan(tmp_path) == more
    assert more.design.runs[:4] == plan.design.runs
    assert {run.block for run in more.design.runs[4:]} == {2}
    whole = matrix(more.study, more.design)
    assert whole.shape == (13, 11)
    assert d_efficiency(whole) > 30
    assert np.linalg.matrix_rank(whole[4:]) < 11, "alone, the added runs could not"
    assert parse_study(dump_study(more.study).encode()) == more.study


@pytest.mark.parametrize(
    ("kind", "options", "said"),
    [
        ("axial", {"runs": 3}, "apply to an optimal augmentation only"),
        ("optimal", {}, "needs the number of runs to add"),
        (
            "around",
            {},
            "expected a number of replicates to add, foldover, part, axial, optimal or ascent",
        ),
    ],
)
def test_an_augmentation_that_cannot_be_is_one_sentence(kind, options, said):
    with pytest.raises(DoeError, match=said):
        augmented(study(LR, WD), kind, **options)


def test_axial_points_need_ranges():
    with pytest.raises(DoeError, match="at least two factors with a range"):
        make_design(augmented(study(LR, OPTIMIZER), "axial"))
    with pytest.raises(DoeError, match=r"design.runs = 1: the model with its blocks has 7 coeff"):
        make_design(augmented(study(LR, WD), "optimal", runs=1))


# Conditions --------------------------------------------------------------------------------------

KERNEL = Factor("kernel", ("linear", "rbf", "poly"))
GAMMA = Factor("gamma", (0.01, 1.0), scale="log", when="kernel=rbf")
DEGREE = Factor("degree", (2, 3, 4), when="kernel=poly")


def test_a_factor_varies_beside_the_level_that_it_needs_alone():
    runs = make_design(study(KERNEL, GAMMA, DEGREE, OPTIMIZER)).runs
    assert len(runs) == 2 * (1 + 2 + 3)
    for run in runs:
        kernel, gamma, degree, _ = run.level_values
        assert kernel == "rbf" or gamma == 0.01
        assert kernel == "poly" or degree == 2


def test_an_optimal_design_nests_ranges():
    design = {"kind": "optimal", "runs": 16, "model": "quadratic", "starts": 20}
    asked = study(KERNEL, GAMMA, WD, design=design)
    runs = make_design(asked).runs
    assert {run.levels["gamma"] for run in runs if run.levels["kernel"] != "rbf"} == {0.01}
    assert len({run.levels["gamma"] for run in runs if run.levels["kernel"] == "rbf"}) == 3


STUDY = """
name = "s"
backend = "m:f"
[factors.kernel]
levels = ["linear", "rbf"]
[factors.gamma]
low = 0.01
high = 1.0
when = "kernel=rbf"
[factors.C]
low = 1
high = 10
[responses]
metrics = ["y"]
"""


def test_a_condition_is_read_kept_and_checked():
    read = parse_study(STUDY.encode())
    assert read.factors[1].when == "kernel=rbf"
    assert parse_study(dump_study(read).encode()) == read
    for when, said in [
        (
            "kernel=rfb",
            r"factors.gamma.when = 'kernel=rfb': 'rfb' is not a level of kernel \(did you",
        ),
        ("gamma=1.0", "a factor cannot depend on itself"),
        ("kernel", "'kernel' is not a level; expected KEY=LEVEL"),
        ("kernel=rbf, C=1", "expected one KEY=LEVEL"),
    ]:
        with pytest.raises(SpecError, match=said):
            parse_study(STUDY.replace("kernel=rbf", when).encode())
    both = STUDY.replace('"rbf"]', '"rbf"]\nwhen = "gamma=0.01"')
    with pytest.raises(SpecError, match=r"kernel.when = 'gamma=0.01': gamma depends on kernel"):
        parse_study(both.encode())
