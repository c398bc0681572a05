"""`doe plan --confirm N`: from a finished study to the verdict on its winner."""

import pytest
from typer.testing import CliRunner

import doe
from doe.cli import app
from doe.store.plan import load_plan, write_plan
from doe.study.values import Factor, Responses, Study

invoke = CliRunner().invoke


@pytest.fixture
def finished(tmp_path):
    """A study of three factors that has run; A high costs 3."""
    study = Study(
        name="noisy",
        backend="tiny_backends:noisy",
        factors=tuple(Factor(key=key, levels=(True, False)) for key in "ABC"),
        responses=Responses(metrics=("y",), matters={"y": 3.0}),
        replicates=3,
        seeds=(1, 2, 3),
    )
    return write_plan(study, tmp_path / "noisy")[0].directory


def run(directory, *words):
    return invoke(app, ["run", "--cpu", "2", "--study", str(directory), *words])


def confirm(directory, *words):
    return invoke(app, ["plan", "--out", str(directory), "--confirm", *words])


def sentences(directory):
    words = ["analyze", "--study", str(directory), "-r", "y", "--brief"]
    return " ".join(invoke(app, words).output.split())


def test_a_winner_is_confirmed_by_fresh_seeds(finished):
    refused = confirm(finished, "4")
    assert refused.exit_code == 1
    assert "runs are still to come" in str(refused.exception)
    assert run(finished).exit_code == 0
    assert "not yet confirmed" in sentences(finished)
    before = doe.analyze(finished, "y").analysis
    assert confirm(finished, "4").exit_code == 0
    plan = load_plan(finished)
    fresh = plan.design.runs[24:]
    assert sorted({r.seed for r in fresh}) == [4, 5, 6, 7]
    assert {r.block for r in plan.design.runs[:24]}.isdisjoint(r.block for r in fresh)
    step = plan.study.augment[-1]
    assert {r.config for r in fresh} == set(step.confirm)
    assert len(fresh) == 4 * len(step.confirm)
    assert "A0B0C0" in step.confirm, "the baseline"
    assert "not yet confirmed" in sentences(finished)
    assert run(finished).exit_code == 0
    after = doe.analyze(finished, "y").analysis
    assert after.effects == before.effects
    assert after.confirmation.config == step.confirm[0]
    assert after.confirmation.verdict == "confirmed"
    text = sentences(finished)
    assert "With 4 fresh seeds" in text
    assert "Confirmed to be better than A0B0C0" in text
    assert "not yet confirmed" not in text
    for words in (["--confirm", "4"], ["--augment", "1"]):
        again = invoke(app, ["plan", "--out", str(finished), *words])
        assert again.exit_code == 1
        assert "confirmed" in str(again.exception)


def test_a_choice_is_confirmed_in_every_condition(tmp_path):
    """C is met and not chosen: the headline's choice runs with and without it, as others do."""
    study = Study(
        name="met",
        backend="tiny_backends:noisy",
        factors=(
            *(Factor(key=key, levels=(True, False)) for key in "AB"),
            Factor(key="C", levels=(True, False), role="condition"),
        ),
        responses=Responses(metrics=("y",)),
        replicates=3,
        seeds=(1, 2, 3),
    )
    directory = write_plan(study, tmp_path / "met")[0].directory
    assert run(directory).exit_code == 0
    chosen = doe.analyze(directory, "y").analysis.best.over_conditions[0].config
    assert confirm(directory, "3").exit_code == 0
    step = load_plan(directory).study.augment[-1]
    assert {f"{chosen}C0", f"{chosen}C1", "A0B0C0", "A0B0C1"} <= set(step.confirm)
    assert run(directory).exit_code == 0
    table, found = doe.load(directory), doe.analyze(directory, "y").analysis.confirmation
    assert found.over_conditions
    assert found.config == chosen
    fresh = table[table["replicate"] > 3]
    own = fresh[fresh["config"].str.startswith(chosen)]
    assert len(own) == 6
    assert found.mean == pytest.approx(own["y"].mean())
    base = fresh[fresh["config"].str.startswith("A0B0")].groupby("seed")["y"].mean()
    gain = own.groupby("seed")["y"].mean() - base
    assert found.gains[0].against == "A0B0"
    assert found.gains[0].difference == pytest.approx(gain.mean())
    assert f"With 3 fresh seeds {chosen} has" in sentences(directory)
    assert "over all conditions. " in sentences(directory)


def test_a_study_that_stopped_early_is_confirmed_and_stays_decided(finished):
    result = run(finished, "--until", "decided", "--decide", "A")
    assert result.exit_code == 0, result.output
    stopped = doe.analyze(finished, "y").analysis
    assert confirm(finished, "2").exit_code == 0
    assert run(finished).exit_code == 0
    table = doe.load(finished)
    pending = table[table["state"] == "pending"]
    assert set(pending["replicate"]) <= {2, 3}, "planned replicates that nobody needs"
    assert (table[table["replicate"] > 3]["state"] == "done").all()
    after = doe.analyze(finished, "y").analysis
    assert after.effects == stopped.effects
    assert after.confirmation.seeds == 2


def test_what_cannot_be_asked(finished):
    assert run(finished).exit_code == 0
    assert "at least 2 fresh seeds" in str(confirm(finished, "1").exception)
    assert "not among the study's" in str(confirm(finished, "2", "--response", "z").exception)
    alone = invoke(app, ["plan", "--out", str(finished), "--response", "y"])
    assert "belongs to confirmation" in str(alone.exception)


@pytest.fixture
def bent(tmp_path):
    """A study of two numbers whose best point is the centre."""
    study = Study(
        name="bent",
        backend="tiny_backends:bent",
        factors=tuple(Factor(key=key, levels=(0.0, 10.0)) for key in ("lr", "wd")),
        responses=Responses(metrics=("y",)),
        replicates=3,
        seeds=(1, 2, 3),
        centre=1,
    )
    return write_plan(study, tmp_path / "bent")[0].directory


def test_centre_runs_lead_on(bent):
    assert run(bent).exit_code == 0
    text = sentences(bent)
    assert "lr = 5.0, wd = 5.0 has the best observed mean" in text
    assert "doe plan --augment axial" in text
    analysis = doe.analyze(bent, "y").analysis
    effect, contrast = analysis.effects[0], analysis.half_normal.contrasts[0]
    assert contrast.value == pytest.approx(effect.effect), "centre runs do not scale it"
    means = {round(p.mean, 6) for p in analysis.predictions if p.mean is not None}
    assert len(means) > 1, "the profiler predicts by its levels"
    assert confirm(bent, "2").exit_code == 0
    step = load_plan(bent).study.augment[-1]
    assert step.confirm[0] == "centre"
    assert run(bent).exit_code == 0
    assert "With 2 fresh seeds lr = 5.0, wd = 5.0 has" in sentences(bent)


def test_centre_runs_become_a_surface(bent):
    assert run(bent).exit_code == 0
    assert invoke(app, ["plan", "--out", str(bent), "--augment", "axial"]).exit_code == 0
    assert run(bent).exit_code == 0
    terms = {test.term: test for test in doe.analyze(bent, "y").analysis.tests}
    assert terms["lr^2"].p_holm < 0.05
