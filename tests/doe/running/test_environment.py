"""What a command finds: variables, threads, and the interpreter that a study names."""

import json
import sys

import pytest

from doe.errors import SpecError
from doe.running.scheduler import RunOptions
from doe.store.plan import write_plan
from doe.study.file import dump_study, parse_study

STUDY = """
name = "own"
backend = "command"
command = "{command}"
threads = 3
{more}
[factors.lr]
low = 0.1
high = 0.2
[responses]
metrics = ["y", "threads"]
[metrics]
file = "stdout"
"""


def study_of(command, more=""):
    return parse_study(STUDY.format(command=command, more=more).encode())


def results(plan):
    paths = sorted(plan.directory.glob("*/result.json"))
    return [json.loads(path.read_text()) for path in paths]


def test_variables_of_a_command_and_threads(tmp_path, go, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "t.sh").write_text('echo "y $LR$MODE"; echo "threads $1$OMP_NUM_THREADS"\n')
    more = '[env]\nLR = "{lr}"\nMODE = 5\n'
    study = study_of("sh t.sh {threads}", more)
    assert parse_study(dump_study(study).encode()) == study
    plan, _ = write_plan(study, tmp_path / "runs")
    go(plan)
    assert [r["metrics"] for r in results(plan)] == [
        {"y": 0.15, "threads": 33.0},
        {"y": 0.25, "threads": 33.0},
    ]


def test_the_interpreter_that_the_study_names(tmp_path, go, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "env" / "bin"
    folder.mkdir(parents=True)
    (folder / "python").symlink_to(sys.executable)
    (tmp_path / "t.py").write_text(
        "import sys\nprint('y', sys.argv[1])\nprint('threads', 'env/bin' in sys.executable)\n"
        "print('threads', int('env/bin' in sys.executable))\n"
    )
    study = study_of("python t.py {lr}", 'python = "env/bin/python"')
    assert parse_study(dump_study(study).encode()) == study
    plan, _ = write_plan(study, tmp_path / "runs")
    go(plan, options=RunOptions(limit=1))
    (result,) = results(plan)
    assert result["metrics"]["threads"] == 1.0
    assert result["provenance"]["versions"]["python"] == sys.version.split()[0]


@pytest.mark.parametrize(
    ("command", "more", "said"),
    [
        ("sh t.sh {lr}", 'python = "env/bin/python"', "the command starts 'sh', not python"),
        ("sh t.sh", '[env]\nLR = "{lrr}"', "{lrr} is unknown (did you mean 'lr'?)"),
        ("sh t.sh {lr}", '[env]\n"A B" = 1', "is not a valid variable name"),
        ("sh t.sh {lr}", "[env]\nA = [1]", "env"),
    ],
)
def test_a_mistake_is_one_sentence(command, more, said):
    with pytest.raises(SpecError) as refused:
        study_of(command, more)
    assert said in refused.value.problems[0]


def test_both_are_for_commands():
    text = STUDY.format(command="x", more="[env]\nA = 1").replace('"command"', '"m:f"', 1)
    with pytest.raises(SpecError, match="env: only allowed with backend"):
        parse_study(text.replace('command = "x"\n', "").encode())
