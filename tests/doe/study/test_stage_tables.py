"""Stages in a study file: read, written, and everything that can be wrong with them."""

import copy

import pytest

from doe.errors import DoeError
from doe.study.command import check_program
from doe.study.file import checked_study, dump_study, parse_study, study_differences
from doe.study.schema import study_schema
from doe.study.stages import stage_doubts, stage_factors, stages_in_order

BASE = {
    "name": "tokens",
    "backend": "command",
    "command": "python train.py --data {stage.tokens} --lr {lr} --seed {seed}",
    "replicates": 2,
    "factors": {
        "vocab": {"levels": [100, 1000]},
        "lower": {"low": False, "high": True},
        "lr": {"low": 0.1, "high": 1.0},
    },
    "responses": {"metrics": ["loss"]},
    "stages": {
        "clean": {"command": "python clean.py {lower} --seed {seed}", "factors": ["lower"]},
        "tokens": {
            "command": "python prepare.py {stage.clean} {vocab} {limit} --seed {seed} {stage_dir}",
            "factors": ["vocab"],
            "needs": ["clean"],
            "settings": {"limit": 5},
            "slurm": {"time": 10, "mem": "4G"},
        },
    },
}


def study(**stages):
    """The study with some keys of its stages changed."""
    tables = copy.deepcopy(BASE)
    for name, changes in stages.items():
        tables["stages"].setdefault(name, {}).update(changes)
    return checked_study(tables, "the study")


def test_a_stage_is_written_and_read_back():
    asked = study()
    again = parse_study(dump_study(asked).encode())
    assert again == asked
    assert not study_differences(asked, again)
    assert asked.stages["tokens"].engines == {"slurm": {"time": 10, "mem": "4G"}}


def test_differences_name_the_stage():
    (line,) = study_differences(study(), study(tokens={"settings": {"limit": 6}}))
    assert line == "stages.tokens.settings.limit: planned 5, now 6"


def test_a_stage_depends_on_the_factors_of_those_before_it():
    assert stage_factors(study(), "tokens") == ("vocab", "lower")
    assert stages_in_order(study()) == ["clean", "tokens"]
    assert study().whole_plot_factors == ("vocab", "lower")


def test_stages_that_are_not_told_the_seed_are_doubtful():
    assert not any("{seed}" in doubt for doubt in stage_doubts(study()))
    untold = study(clean={"command": "python clean.py {lower}"})
    assert "stage clean does not use {seed}" in stage_doubts(untold)[0]
    once = {"command": "python clean.py {lower}", "seed": "none"}
    assert not any("{seed}" in doubt for doubt in stage_doubts(study(clean=once)))


def test_stages_of_different_factors_are_no_mistake():
    assert stage_factors(study(), "tokens") != stage_factors(study(), "clean")
    assert not [doubt for doubt in stage_doubts(study()) if "{seed}" not in doubt]


def test_the_schema_knows_stages():
    stage = study_schema()["$defs"]["Stage"]["properties"]
    assert "slurm" in stage
    assert "engines" not in stage
    assert stage["command"]["anyOf"][0] == {"type": "string", "minLength": 1}


WRONG = {
    "a factor nobody has": (
        {"tokens": {"factors": ["vocb"]}},
        "'vocb' is not a factor of this study",
    ),
    "needs nobody": ({"tokens": {"needs": ["cleen"]}}, "stages.tokens.needs: no stage 'cleen'"),
    "a circle": (
        {"clean": {"needs": ["tokens"], "command": "p {lower} {stage.tokens} {seed}"}},
        "clean, tokens need each other in a circle",
    ),
    "itself": (
        {"tokens": {"needs": ["tokens"]}},
        "stages: tokens needs itself; remove it from needs",
    ),
    "not used": (
        {"spare": {"command": "make {lower} {seed}", "factors": ["lower"]}},
        "it does not use {stage.spare}, so this stage would be executed for nothing",
    ),
    "nothing to do": ({"tokens": {"command": []}}, "got neither of command and function"),
    "two things to do": ({"tokens": {"function": "a:b"}}, "got both of command and function"),
    "no function": (
        {"tokens": {"command": [], "function": "prepare"}},
        "function = 'prepare': expected package.module:function",
    ),
    "a factor it does not use": (
        {"tokens": {"command": "make {stage.clean}"}},
        "stages.tokens.command: it does not use {vocab}",
    ),
    "a stage it does not use": (
        {"tokens": {"command": "make {vocab}"}},
        "stages.tokens.command: it does not use {stage.clean}",
    ),
    "another's factor": (
        {"clean": {"command": "make {lower} {lr}"}},
        "stages.clean.command: placeholder {lr}: no factor of this stage",
    ),
    "unknown placeholder": (
        {"clean": {"command": "make {lower} {sed}"}},
        "placeholder {sed}: unknown (did you mean 'seed'?)",
    ),
    "a seed that it has not": (
        {"clean": {"seed": "none"}},
        "placeholder {seed}: unknown",
    ),
    "a stream nobody has": (
        {"clean": {"seed": "data"}},
        "seed = 'data': neither of these words nor a stream of seeds",
    ),
    "a seed of less": (
        {"tokens": {"seed": "none", "command": "make {stage.clean} {vocab} {limit}"}},
        "it needs clean, which is executed for each replicate; set the same seed here",
    ),
    "no name": ({"a-b": {"command": "make"}}, "stages.a-b: expected a name"),
    "a misspelt key": ({"tokens": {"factor": ["vocab"]}}, "stages.tokens.factor: unknown key"),
    "no time": ({"tokens": {"timeout": -1.0}}, "stages.tokens.timeout = -1: expected seconds"),
    "no table of an engine": ({"tokens": {"slurm": 3}}, "expected a table [stages.tokens.slurm]"),
    "settings that no file holds": (
        {"tokens": {"settings": {"limit": 2**70}}},
        "stages.tokens.settings.limit",
    ),
    "progress without a step": (
        {"tokens": {"progress": {"pattern": "x"}}},
        "stages.tokens.progress.pattern: expected a group",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_in_a_sentence(case):
    stages, sentence = WRONG[case]
    with pytest.raises(DoeError) as raised:
        study(**stages)
    assert sentence in str(raised.value)


def test_stages_that_are_no_tables():
    for wrong in (3, {"tokens": 3}):
        with pytest.raises(DoeError, match="expected a table"):
            checked_study(BASE | {"stages": wrong}, "the study")


def test_a_run_uses_what_is_no_factor_of_a_stage():
    with pytest.raises(DoeError, match="does not use lr"):
        checked_study(BASE | {"command": "train {stage.tokens} {seed}"}, "the study")


def test_a_script_of_a_stage_that_is_not_there(tmp_path):
    (tmp_path / "train.py").touch()
    (tmp_path / "clean.py").touch()
    with pytest.raises(DoeError, match=r"no prepare\.py"):
        check_program(study(), tmp_path)


def test_a_stream_may_be_a_stages_own():
    tables = copy.deepcopy(BASE) | {"seeds": {"init": [1, 2, 3], "split": [7, 7, 8]}}
    tables["replicates"] = 3
    tables["stages"]["clean"]["seed"] = "split"
    assert checked_study(tables, "the study").stages["clean"].seed == "split"
