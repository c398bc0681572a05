"""The schema that editors use says what the checks say."""

import json
import tomllib
from pathlib import Path

import jsonschema
import pytest
from typer.testing import CliRunner

from doe.cli import app
from doe.study.file import parse_study
from doe.study.schema import schema_text, study_schema

ROOT = Path(__file__).parents[3]
STUDIES = sorted(
    path
    for folder in ("examples", "pit_model", "runs", "docs")
    for path in (ROOT / folder).rglob("*.toml")
)
GOOD = """
name = "own"
backend = "command"
command = "python train.py --lr {lr} {aug:--aug}"
replicates = 2
[settings]
anything = { goes = [1, "x"] }
[factors.lr]
low = 0.1
high = 0.2
[factors.aug]
low = false
high = true
[responses]
metrics = ["acc"]
goal = "max"
[metrics]
file = "results.json"
keys = { acc = "eval/accuracy" }
[progress]
pattern = "(?P<step>\\\\d+)"
total = 10
"""


def mistakes(text):
    validator = jsonschema.Draft202012Validator(study_schema())
    return [error.message for error in validator.iter_errors(tomllib.loads(text))]


def test_it_is_a_schema_and_the_command_prints_it():
    said = CliRunner().invoke(app, ["schema"]).output
    assert json.loads(said) == json.loads(schema_text())
    jsonschema.Draft202012Validator.check_schema(study_schema())


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_study_file_here_is_valid(path):
    assert mistakes(path.read_text(encoding="utf-8")) == []


def test_the_good_study_is_good_for_both():
    parse_study(GOOD.encode())
    assert mistakes(GOOD) == []


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        ('name = "own"\n', "", "'name' is a required"),
        ('"python train.py --lr {lr} {aug:--aug}"', "3", "3 is not valid"),
        ('command = "python train.py --lr {lr} {aug:--aug}"\n', "", "'command' is a required"),
        ("replicates = 2", "replicats = 2", "'replicats' was unexpected"),
        ("replicates = 2", "replicates = 0", "minimum"),
        ("replicates = 2", "replicates = 1.5", "1.5 is not of type"),
        ("low = 0.1", "lowest = 0.1", "'lowest' was unexpected"),
        ("low = 0.1", "low = [0.1]", "is not"),
        ("[factors.aug]", '[factors."a b"]', "'a b' does not match"),
        ('goal = "max"', 'goal = "best"', "'best' is not one of"),
        ('metrics = ["acc"]\n', "", "'metrics' is a required"),
        ('file = "results.json"', "file = 3", "3 is not of type"),
        ('keys = { acc = "eval/accuracy" }', "key = 3", "'key' was unexpected"),
        ("total = 10", "total = [10]", "is not"),
    ],
)
def test_a_mistake_is_marked(old, new, named):
    assert old in GOOD
    assert any(named in message for message in mistakes(GOOD.replace(old, new, 1)))


def test_fields_say_what_they_are():
    schema = study_schema()
    assert "replicate" in schema["properties"]["seeds"]["description"]
    assert schema["$defs"]["MetricsSection"]["properties"]["file"]["description"]
