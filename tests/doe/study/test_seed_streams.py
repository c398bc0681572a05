"""Streams of seeds in a study: the replicates that they make, and plans that cannot tell shares."""

import csv
import io
import json

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from doe.cli import app
from doe.design.changes import augmented, with_confirmation, with_overrides
from doe.design.runs import make_design
from doe.design.table import design_csv
from doe.errors import DoeError, SpecError
from doe.store.imports import import_runs
from doe.store.plan import change_plan, load_plan, write_plan
from doe.store.requests import request_bytes
from doe.study.file import dump_study, parse_study
from doe.study.values import Stopping

STUDY = """
name = "streams"
backend = "module:function"
{extra}
[seeds]
{seeds}
[factors.A]
low = 0
high = 1
[factors.B]
low = 0
high = 1
[responses]
metrics = ["loss"]
"""


def study_of(seeds, extra=""):
    return parse_study(STUDY.format(seeds=seeds, extra=extra).encode())


CROSSED = study_of("init = [1, 2]\ndata = [7, 8, 9]")


def test_all_combinations_begin_with_replicates_that_differ_in_every_stream():
    assert CROSSED.replicates == 6
    pairs = list(zip(*CROSSED.streams.values(), strict=True))
    assert sorted(pairs) == [(i, d) for i in (1, 2) for d in (7, 8, 9)]
    assert pairs[:2] == [(1, 7), (2, 8)]


def test_a_study_with_streams_survives_its_file():
    assert parse_study(dump_study(CROSSED).encode()) == CROSSED
    listed = study_of("init = [1, 2, 3, 4]\ndata = [7, 7, 8, 8]", "replicates = 4")
    assert listed.streams == {"init": (1, 2, 3, 4), "data": (7, 7, 8, 8)}
    assert parse_study(dump_study(listed).encode()) == listed


def test_design_and_request_have_the_seed_of_each_stream():
    design = make_design(CROSSED)
    rows = list(csv.DictReader(io.StringIO(design_csv(design))))
    for run, row in zip(design.runs, rows, strict=True):
        init, data = (CROSSED.streams[name][run.replicate - 1] for name in ("init", "data"))
        assert (row["seed"], row["seed_init"], row["seed_data"]) == (
            str(init),
            str(init),
            str(data),
        )
        request = json.loads(request_bytes(CROSSED, run))
        assert request["seeds"] == {"init": init, "data": data}
        assert request["seed"] == init


def test_one_stream_of_seeds_leaves_no_trace():
    plain = parse_study(
        STUDY.replace("[seeds]\n{seeds}\n", "")
        .format(extra="replicates = 2\nseeds = [4, 5]")
        .encode()
    )
    assert "[seeds]" not in dump_study(plain)
    design = make_design(plain)
    assert "seed_" not in design_csv(design)
    assert b'"seeds"' not in request_bytes(plain, design.runs[0])


def test_replicates_that_are_added_have_fresh_seeds_in_every_stream():
    more = augmented(CROSSED, "2")
    added = [run.seeds for run in make_design(more).runs if run.replicate > 6]
    assert {tuple(seeds.values()) for seeds in added} == {(10, 10), (11, 11)}
    confirmed = with_confirmation(more, ("A0B0", "A1B1"), "loss", 2)
    fresh = [run.seeds for run in make_design(confirmed).runs if run.replicate > 8]
    assert {seeds["data"] for seeds in fresh} == {12, 13}


REFUSED = [
    ("init = [1, 1]\ndata = [1, 2]", "replicates = 2", ["seeds.init", "two or more different"]),
    (
        "init = [1, 2]\ndata = [5, 6]",
        "replicates = 2",
        ["seeds.data", "is confounded with", "init"],
    ),
    (
        "init = [1, 1, 2, 2]\ndata = [1, 2, 1, 2]\norder = [1, 2, 2, 1]",
        "replicates = 4",
        ["4 replicates cannot separate init, data, order", "a different seed"],
    ),
    (
        "init = [1, 2]\ndata = [5, 6, 7]",
        "replicates = 4",
        ["2 of init and 3 of data", "replicates = 6"],
    ),
    ("init = [1, 'x']\ndata = [5, 6]", "", ["seeds.init"]),
    ("init = [1, -2]\ndata = [5, 6]", "", ["-2", "2^63"]),
    ("'a b' = [1, 2]\ndata = [5, 6]", "", ["'a b' is not a valid name"]),
    ("", "", ["seeds: empty"]),
    ("init = [1, 2]\ndata = [5, 6]", 'blocks = "AB"', ["whole replicates as blocks"]),
    ("init = [1, 2]\ndata = [5, 6]", "centre = 1", ["no centre runs"]),
]


@pytest.mark.parametrize(("seeds", "extra", "words"), REFUSED)
def test_a_plan_that_cannot_tell_a_share_is_refused_in_a_sentence(seeds, extra, words):
    with pytest.raises(SpecError) as caught:
        study_of(seeds, extra)
    assert any(all(word in problem for word in words) for problem in caught.value.problems)


@pytest.mark.parametrize(
    "seeds",
    [
        "init = [1, 1, 2, 2]\ndata = [1, 2, 1, 2]\norder = [1, 2, 3, 4]",  # order is the rest
        "init = [1, 1, 2, 2]\ndata = [1, 2, 3, 4]",  # nested
        "all = [1, 1, 2, 2]",  # what a seed does not fix
    ],
)
def test_nested_streams_and_repeated_seeds_are_plans(seeds):
    assert study_of(seeds, "replicates = 4").replicates == 4


def test_replicates_follow_from_the_streams():
    assert with_overrides(CROSSED, 6, None) == CROSSED
    with pytest.raises(DoeError, match="the 6 replicates are determined by the streams"):
        with_overrides(CROSSED, 4, None)


def test_looks_are_refused_beside_streams(tmp_path):
    write_plan(CROSSED, tmp_path / "s")
    with pytest.raises(DoeError, match="interim looks assume independent replicates"):
        change_plan(tmp_path / "s", lambda s: replace(s, stopping=Stopping(max_replicates=8)))


def test_a_plan_of_levels_tells_its_streams_and_promises_no_power(tmp_path):
    text = STUDY.format(seeds="init = [1, 2]\ndata = [7, 8]", extra="")
    file = tmp_path / "study.toml"
    file.write_text(text + "[factors.C]\nlevels = [1, 2, 3]\n")
    made = CliRunner().invoke(app, ["plan", str(file), "--out", str(tmp_path / "s")])
    assert made.exit_code == 0, made.output
    assert "Streams of seeds: init (2 seeds), data (2 seeds)" in made.output.replace("\n", " ")
    assert "power" not in made.output
    with pytest.raises(DoeError, match="share seeds, and its power depends"):
        CliRunner().invoke(app, ["power", "--study", str(tmp_path / "s")], catch_exceptions=False)


COMMAND = "python t.py {A} {B} --out {run_dir}"


@pytest.mark.parametrize(
    ("words", "idle"),
    [
        ("{seed.init} {seed.data}", ""),
        ("{seed} {seed.data}", ""),
        ("{seed}", "seed.data"),
        ("{seed.data}", "seed.init"),
    ],
)
def test_a_command_uses_every_stream(words, idle):
    text = STUDY.format(seeds="init = [1, 2]\ndata = [7, 8]", extra="").replace(
        'backend = "module:function"', f'backend = "command"\ncommand = "{COMMAND} {words}"'
    )
    if not idle:
        parse_study(text.encode())
        return
    with pytest.raises(SpecError, match=idle):
        parse_study(text.encode())


def test_past_runs_are_known_by_the_seed_of_every_stream(tmp_path):
    write_plan(CROSSED, tmp_path / "s")
    plan = load_plan(tmp_path / "s")
    row = {"A": "1", "B": "0", "seed_init": "2", "seed_data": "9", "loss": "0.5"}
    (run_id,) = import_runs(plan, [row], "past.csv").new
    (run,) = [run for run in plan.design.runs if run.run_id == run_id]
    assert run.seeds == {"init": 2, "data": 9}
    assert run.config == "A1B0"
    with pytest.raises(DoeError, match="seed_data '4' is not planned; the seeds are 7, 8, 9"):
        import_runs(plan, [{**row, "seed_data": "4"}], "past.csv")


def test_far_too_many_replicates_of_streams_are_one_message():
    text = 'name = "s"\nbackend = "m:f"\nreplicates = 9223372036854775807\n'
    text += "seeds = { a = [1, 2], b = [3] }\n[factors.A]\nlow = 0\nhigh = 1\n"
    with pytest.raises(SpecError, match="expected at most"):
        parse_study(f"{text}[responses]\nmetrics = ['y']\n".encode())
