"""What a design can tell, from the runs of a study."""

from pathlib import Path

import pytest

from doe.design.runs import make_design
from doe.errors import DoeError
from doe.results.designs import pilot_sigma, planned_design
from doe.store.files import StudyDir
from doe.store.plan import Plan, write_plan
from doe.store.verdicts import Result, encode_result
from doe.study.values import Factor, Responses, Study


def test_sigma_comes_from_the_runs_of_a_pilot_study(tmp_path):
    """The 2² in three blocks of Montgomery, as verdicts on disk."""
    y = [[28, 36, 18, 31], [25, 32, 19, 30], [27, 32, 23, 29]]
    study = Study(
        name="square",
        backend="m:f",
        factors=(Factor(key="A", levels=(0, 1)), Factor(key="B", levels=(0, 1))),
        responses=Responses(metrics=("y",)),
        replicates=3,
        seeds=(1, 2, 3),
    )
    plan, _ = write_plan(study, tmp_path / "square")
    for run in plan.design.runs:
        run_dir = StudyDir(plan.directory).run(run.run_id)
        run_dir.path.mkdir()
        metrics = {"y": float(y[run.replicate - 1][run.row])}
        run_dir.result.write_bytes(encode_result(Result("done", metrics, None, {})))
    assert pilot_sigma(plan, "y") ** 2 == pytest.approx(24.8333333333 / 6, rel=1e-9)
    with pytest.raises(DoeError, match="not among the study"):
        pilot_sigma(plan, "z")


@pytest.mark.parametrize("number", [4, 5, 7])
def test_every_main_effect_of_a_definitive_design_is_estimable(number):
    factors = tuple(Factor(key, (0.0, 8.0)) for key in "ABCDEFG"[:number])
    study = Study(
        name="s",
        backend="m:f",
        factors=factors,
        responses=Responses(metrics=("y",)),
        seeds=(1,),
        design={"kind": "screening", "method": "definitive"},
    )
    facts = planned_design(Plan(Path(), study, make_design(study))).facts
    assert [term.term for term in facts.terms] == list("ABCDEFG"[:number])
    assert facts.rank == facts.coefficients == number + 1
