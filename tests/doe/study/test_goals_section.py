"""[desirability], constraints and recorded responses in a study file."""

import pytest

from doe.errors import SpecError
from doe.goals import Desire
from doe.study.file import dump_study, parse_study

TEXT = """
name = "t"
backend = "train:run"
[factors.A]
low = 0
high = 1
[responses]
metrics = ["loss", "accuracy", "seconds"]
goals = { accuracy = "max" }
constraints = ["seconds <= 60"]
[desirability]
loss = { target = 0.0, high = 2.0, weight = 2.0 }
accuracy = { low = 0.8, target = 0.95 }
"""


def test_goals_are_read_and_written_the_same():
    study = parse_study(TEXT.encode())
    assert study.desirability["loss"] == Desire(0.0, high=2.0, weight=2.0)
    assert study.responses.constraints == ("seconds <= 60",)
    assert parse_study(dump_study(study).encode()) == study


def test_run_time_is_a_response_that_no_run_returns():
    responses = parse_study(TEXT.encode()).responses
    assert responses.returned == ("loss", "accuracy")
    assert responses.optional == ("seconds",)


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("loss = {", "los = {", "desirability.los: no such response (did you mean 'loss'?)"),
        ("low = 0.8", "low = 0.95", "low = 0.95 is not below target = 0.95"),
        ("high = 2.0", "high = -1.0", "high = -1 is not above target = 0"),
        ("weight = 2.0", "weight = 0.0", "weight = 0; expected a number above 0"),
        ("weight = 2.0", "weight = -1", "weight = -1; expected a number above 0"),
        ("low = 0.8, ", "", "expected low or high beside target"),
        ("low = 0.8, target = 0.95", "target = 0.5, high = 0.9", "its goal is max; expected low"),
        ("target = 0.0, high", "low = -1, target = 0.0, hihg", "unknown"),
        ("accuracy = { low = 0.8, target = 0.95 }\n", "", "got loss alone; expected two responses"),
        ("seconds <= 60", "second <= 60", "'second' is not a response (did you mean 'seconds'?)"),
        ("seconds <= 60", "seconds below 60", "expected a response, <= or >=, and a number"),
        ('"loss", "accuracy", "seconds"', '"seconds"', "responses.metrics: empty"),
        ('"loss", "accuracy", "seconds"', '"loss", "accuracy", "started"', "name of a column"),
    ],
)
def test_each_mistake_gets_one_sentence(old, new, said):
    assert old in TEXT
    with pytest.raises(SpecError) as caught:
        parse_study(TEXT.replace(old, new).encode())
    assert sum(said in problem for problem in str(caught.value).splitlines()) == 1
