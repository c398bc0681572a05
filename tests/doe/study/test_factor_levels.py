"""Factors with levels and responses with goals: what is read, written and refused."""

import pytest

from doe.errors import SpecError
from doe.study.file import dump_study, parse_study

GOOD = """
name = "digits"
backend = "train:run"
[factors.lr]
levels = [0.001, 0.01, 0.1]
scale = "log"
[factors.optimizer]
levels = ["sgd", "adam", "lion"]
[factors.augment]
low = false
high = true
[responses]
metrics = ["val_acc", "val_loss"]
further = ["f1"]
goal = "max"
goals = { val_loss = "min" }
scales = { val_loss = "log" }
matters = { val_acc = 0.01 }
[responses.averages]
right = ["val_acc", "f1"]
"""


def problem(text):
    with pytest.raises(SpecError) as caught:
        parse_study(text.encode())
    (said,) = caught.value.problems
    return said


def test_levels_goals_and_scales_are_read_and_written_back():
    text = GOOD.replace("[factors.lr]", 'exclude = ["optimizer=sgd, augment=on"]\n[factors.lr]')
    study = parse_study(text.encode())
    assert study.factors[0].levels == (0.001, 0.01, 0.1)
    assert study.factors[2].levels == (False, True)
    assert study.sizes == (3, 3, 2)
    answers = study.responses
    assert [answers.goal_of(name) for name in answers.names] == ["max", "min", "max", "max"]
    assert (answers.scale_of("val_loss"), answers.scale_of("val_acc")) == ("log", "raw")
    assert (answers.matters_of("val_acc"), answers.matters_of("f1")) == (0.01, None)
    assert parse_study(dump_study(study).encode()) == study


def test_two_levels_as_a_list_are_low_and_high():
    study = parse_study(GOOD.replace('["sgd", "adam", "lion"]', '["sgd", "adam"]').encode())
    assert (study.factors[1].low, study.factors[1].high) == ("sgd", "adam")
    assert 'low = "sgd"' in dump_study(study)


def test_the_goal_of_an_average_is_that_of_its_metrics():
    text = GOOD.replace('right = ["val_acc", "f1"]', 'lost = ["val_loss"]')
    assert parse_study(text.encode()).responses.goal_of("lost") == "min"


@pytest.mark.parametrize(
    ("old", "new", "parts"),
    [
        ('"adam", "lion"', '"sgd", "lion"', ["factors.optimizer.levels", "'sgd' is listed twice"]),
        ('["sgd", "adam", "lion"]', '["sgd"]', ["factors.optimizer.levels", "two or more"]),
        ('["sgd", "adam", "lion"]', "[]", ["factors.optimizer.levels", "got nothing"]),
        ('"adam", "lion"', '3, "lion"', ["factors.optimizer.levels", "words and numbers"]),
        ('"adam", "lion"', 'true, "lion"', ["factors.optimizer.levels", "words and switches"]),
        ("low = false", "low = false\nlevels = [1, 2]", ["factors.augment", "levels and low"]),
        ("low = false\n", "", ["factors.augment.low", "missing"]),
        ("0.001, 0.01", "0.0, 0.01", ["factors.lr.scale", "level 0", "above 0"]),
        ("[0.001, 0.01, 0.1]", '["a", "b"]', ["factors.lr.scale", "'a' is not a number"]),
        ('scale = "log"\n[', 'scale = "logg"\n[', ["factors.lr.scale", "did you mean 'log'"]),
        ('["sgd", "adam", "lion"]', '["sgd", true]', ["factors.optimizer", "one kind"]),
        (
            "low = false\nhigh = true",
            'low = 0.003\nhigh = "0.03"',
            ["factors.augment: got 0.003 and '0.03', numbers and words", "one kind"],
        ),
        ("[factors.lr]", 'fraction = "1/12"\n[factors.lr]', ["fraction = '1/12'", "1 of 18"]),
        (
            'goals = { val_loss = "min" }',
            'goals = { val_los = "min" }',
            ["goals.val_los", "did you mean 'val_loss'"],
        ),
        (
            'goals = { val_loss = "min" }',
            'goals = { val_loss = "mim" }',
            ["responses.goals", "did you mean 'min'", "expected min or max"],
        ),
        ("val_acc = 0.01", "val_acc = 0.0", ["responses.matters.val_acc", "above 0"]),
        (
            '["val_acc", "f1"]',
            '["val_acc", "val_loss"]',
            ["averages.right", "goal 'max' and val_loss 'min'"],
        ),
        ('goal = "max"', 'goal = "max"\nunits = { f1 = "%" }', ["averages.right", "unit", "'%'"]),
        ("[factors.lr]", "centre = 3\n[factors.lr]", ["centre = 3", "factors.optimizer is a word"]),
        (
            "[factors.lr]",
            'exclude = ["optimiser=sgd"]\n[factors.lr]',
            ["exclude[0]", "did you mean 'optimizer'"],
        ),
        (
            "[factors.lr]",
            'exclude = ["optimizer=adm"]\n[factors.lr]',
            ["exclude[0]", "did you mean 'adam'", "sgd, adam, lion"],
        ),
        ("[factors.lr]", 'exclude = ["optimizer"]\n[factors.lr]', ["exclude[0]", "KEY=LEVEL"]),
        (
            "[factors.lr]",
            'exclude = ["augment=on", "augment=off"]\n[factors.lr]',
            ["every combination is excluded"],
        ),
        (
            "[factors.lr]",
            'exclude = ["optimizer=lion"]\n[factors.lr]',
            ["main effect of optimizer", "12 combinations"],
        ),
        (
            "[factors.lr]",
            'fraction = "lr=optimizer:augment"\n[factors.lr]',
            ["fraction", "lr has 3", "1/2 or 1/3"],
        ),
        ("[factors.lr]", 'blocks = "lr:augment"\n[factors.lr]', ["blocks", "lr has 3 levels"]),
    ],
)
def test_every_mistake_is_said_in_one_sentence_with_its_place(old, new, parts):
    assert old in GOOD
    said = problem(GOOD.replace(old, new, 1))
    for part in parts:
        assert part in said


def test_a_switch_has_no_centre_and_whole_numbers_have_a_whole_one():
    numbers = GOOD.replace('["sgd", "adam", "lion"]', "[16, 32]").replace(
        "low = false\nhigh = true", "low = 0.1\nhigh = 0.5"
    )
    text = numbers.replace("[factors.lr]", "centre = 2\n[factors.lr]")
    assert parse_study(text.encode()).factors[1].centre == 24
    assert "factors.augment is a switch" in problem(
        text.replace("low = 0.1\nhigh = 0.5", "low = false\nhigh = true")
    )
    assert "is 22.6" in problem(
        text.replace("levels = [16, 32]", 'levels = [16, 32]\nscale = "log"')
    )
    only = text.replace("[16, 32]", "[16, 24, 32]").replace(
        "low = 0.1\nhigh = 0.5", "levels = [1, 2, 3]"
    )
    assert "already" in problem(only)


def test_shares_of_counted_items_are_read_and_written_back():
    text = GOOD.replace('{ val_loss = "log" }', '{ val_acc = "logit", right = "logit" }')
    every = parse_study(text.replace("matters", "of = 500\nmatters").encode())
    assert [every.responses.items_of(name) for name in every.responses.names] == [500, 0, 1000, 0]
    single = parse_study(
        text.replace("matters", "of = { val_acc = 500, f1 = 90 }\nmatters").encode()
    )
    assert [single.responses.items_of(name) for name in single.responses.names] == [500, 0, 590, 90]
    for study in (every, single):
        assert parse_study(dump_study(study).encode()) == study
    assert "of" not in dump_study(parse_study(text.encode())).split("[responses]")[1]
    for wrong in ("of = -3", "of = { val_acc = 0 }"):
        assert "the number of items counted" in problem(
            text.replace("matters", f"{wrong}\nmatters")
        )
    said = problem(text.replace("matters", "of = { val_ac = 9 }\nmatters"))
    assert "responses.of.val_ac: no such response (did you mean 'val_acc'?)" in said
