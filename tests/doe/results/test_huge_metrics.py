"""Metrics near the end of the floats end in answers, not in tracebacks."""

import pytest

from tests.command_line import called

pytestmark = pytest.mark.filterwarnings("error::RuntimeWarning")

COMMANDS = (
    ("run", "--cpu", "1"),
    ("status",),
    ("analyze",),
    ("analyze", "--json"),
    ("analyze", "--transform", "auto"),
    ("export",),
    ("report", "--out", "page"),
)


@pytest.mark.parametrize("far", [1e300, 1.7e308, -1.6e308])
def test_every_command_answers_where_a_metric_is_huge(planned, tmp_path, far):
    plan = planned("huge", replicates=2, far=far)
    for command in COMMANDS:
        ended = called(*command, "--study", plan.directory, cwd=tmp_path)
        assert "Traceback" not in ended.stderr, ended.stderr
        assert ended.code in (0, 1), ended.stderr
        if command[0] not in ("analyze",):
            assert ended.code == 0, ended.stderr


@pytest.mark.parametrize("values", [(1.7e308, 1.6e308, 1.2e308, 1.5e308), (1e300, 1.6, 1.2, 1.5)])
@pytest.mark.parametrize("command", ["analyze", "report"])
def test_tables_with_huge_values_are_answered(tmp_path, values, command):
    rows = [f"{i & 1},{i >> 1},{value!r}" for i, value in enumerate(values)] * 2
    (tmp_path / "t.csv").write_text("A,B,y\n" + "\n".join(rows) + "\n")
    ended = called(command, "--table", "t.csv", "--factors", "A,B", cwd=tmp_path)
    assert "Traceback" not in ended.stderr, ended.stderr
    assert ended.code == 0, ended.stderr
