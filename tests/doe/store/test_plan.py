import json
import multiprocessing
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from doe.cli import app
from doe.cli.options import chosen_study
from doe.design.changes import with_overrides
from doe.design.runs import make_design
from doe.design.table import design_csv
from doe.errors import DoeError
from doe.store import plan as plans
from doe.store.files import StudyDir
from doe.store.plan import (
    RUNS,
    augment_plan,
    complete_design,
    extend_plan,
    find_study,
    load_plan,
    write_plan,
)
from doe.store.requests import changed_runs, prepare
from doe.store.verdicts import Result, commit
from doe.study.file import load_study
from doe.study.presets import preset_study
from doe.study.values import Factor, ReportSection
from tests.command_line import doe

run = CliRunner().invoke
ROOT = Path(__file__).parents[3]


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def contents(directory):
    return {p.relative_to(directory): p.read_bytes() for p in directory.rglob("*") if p.is_file()}


def test_planning_writes_study_and_design_and_planning_again_changes_nothing(tmp_path):
    plan, outcome = write_plan(preset_study("paper"), tmp_path)
    assert outcome == "created"
    before = contents(tmp_path)
    assert {str(path) for path in before} == {"study.toml", "design.csv"}
    again, outcome = write_plan(preset_study("paper"), tmp_path)
    assert outcome == "unchanged"
    assert contents(tmp_path) == before
    assert load_plan(tmp_path) == plan == again


def begin_a_run(plan):
    run = plan.design.runs[0]
    run_dir = StudyDir(plan.directory).run(run.run_id)
    prepare(run_dir, plan.study, run)
    commit(run_dir, Result("done", {}), "nonce")


def test_another_plan_is_refused_once_a_run_has_begun_and_the_difference_named(tmp_path):
    begin_a_run(write_plan(preset_study("paper"), tmp_path)[0])
    before = contents(tmp_path)
    other = msgspec.structs.replace(preset_study("paper"), order_seed=7)
    with pytest.raises(
        DoeError, match=r"(?s)1 of 256 runs have begun.*order_seed: planned 42, now 7"
    ):
        write_plan(other, tmp_path)
    more = with_overrides(preset_study("paper"), 6, None)
    with pytest.raises(DoeError, match="Only replicates were added: `doe plan --augment 2 --out"):
        write_plan(more, tmp_path)
    assert contents(tmp_path) == before


def test_a_changed_level_is_named_by_its_factor_alone(tmp_path):
    study = msgspec.structs.replace(preset_study("paper"), report=ReportSection())
    begin_a_run(write_plan(study, tmp_path)[0])
    first = msgspec.structs.replace(study.factors[0], levels=("off", "on"))
    with pytest.raises(DoeError) as refused:
        write_plan(msgspec.structs.replace(study, factors=(first, *study.factors[1:])), tmp_path)
    (line,) = [line for line in str(refused.value).splitlines() if line.startswith("  - ")]
    assert line == "  - factors.A.levels: planned [False, True], now ['off', 'on']"


def test_a_plan_of_which_no_run_has_begun_is_planned_again(tmp_path):
    plan, _ = write_plan(preset_study("paper"), tmp_path)
    prepare(StudyDir(tmp_path).run(plan.design.runs[0].run_id), plan.study, plan.design.runs[0])
    half = msgspec.structs.replace(preset_study("demo"), fraction="F=ABCDE")
    assert write_plan(half, tmp_path)[1] == "replanned"
    assert {str(path) for path in contents(tmp_path)} == {"study.toml", "design.csv"}
    assert load_plan(tmp_path).study == half
    assert write_plan(half, tmp_path)[1] == "unchanged"


def test_words_and_the_report_can_be_changed_at_any_time(tmp_path):
    study = preset_study("paper")
    begin_a_run(write_plan(study, tmp_path)[0])
    changed = msgspec.structs.replace(study, description="read again", report=ReportSection())
    assert write_plan(changed, tmp_path)[1] == "amended"
    assert load_plan(tmp_path).study == changed


def test_a_design_lost_between_the_two_writes_is_completed(tmp_path):
    write_plan(preset_study("demo"), tmp_path)
    design = StudyDir(tmp_path).design
    whole = design.read_text()
    design.unlink()
    assert write_plan(preset_study("demo"), tmp_path)[1] == "completed"
    assert design.read_text() == whole


def test_an_optimal_design_that_a_kill_has_cut_off_is_found_again(tmp_path):
    factors = (Factor("lr", (1e-4, 1e-1), scale="log"), Factor("wd", (0.0, 0.5)))
    optimal = {"kind": "optimal", "runs": 9, "starts": 20}
    study = msgspec.structs.replace(
        preset_study("demo"), factors=factors, design=optimal, report=ReportSection()
    )
    plan, _ = write_plan(study, tmp_path)
    more = augment_plan(tmp_path, "optimal", runs=3)
    design = StudyDir(tmp_path).design
    whole = design.read_text()
    for left in ("", design_csv(plan.design)):
        design.write_text(left)
        assert load_plan(tmp_path) == more
        assert write_plan(more.study, tmp_path)[1] == "completed"
        assert design.read_text() == whole


def test_an_edited_design_is_refused_and_left_alone(tmp_path):
    write_plan(preset_study("demo"), tmp_path)
    design = StudyDir(tmp_path).design
    edited = design.read_text().replace(",100,", ",999,", 1)
    design.write_text(edited)
    with pytest.raises(DoeError, match="line 2"):
        load_plan(tmp_path)
    assert design.read_text() == edited


def test_replicates_are_added_without_touching_what_was_planned(tmp_path):
    old, _ = write_plan(preset_study("demo"), tmp_path)
    old_csv = StudyDir(tmp_path).design.read_text()
    new = augment_plan(tmp_path, "2")
    assert new.design.runs[: len(old.design.runs)] == old.design.runs
    assert StudyDir(tmp_path).design.read_text().startswith(old_csv)
    assert load_plan(tmp_path).study.augment[0].seeds == (102, 103)
    # A kill after study.toml was written and before design.csv was: reading completes it.
    StudyDir(tmp_path).design.write_text(old_csv)
    assert len(load_plan(tmp_path).design.runs) == 256


def test_the_other_half_of_a_fraction_is_added(tmp_path):
    half = msgspec.structs.replace(preset_study("demo"), fraction="F=ABCDE")
    write_plan(half, tmp_path)
    plan = augment_plan(tmp_path, "foldover")
    assert plan.study.augment[0].flip == ("F",)
    assert len({run.row for run in plan.design.runs}) == 64
    assert plan.design.blocks == 4


@pytest.mark.parametrize(("kind", "said"), [("foldover", "full factorial"), ("x", "number")])
def test_augmentation_that_makes_no_sense_is_refused(tmp_path, kind, said):
    write_plan(preset_study("demo"), tmp_path)
    before = contents(tmp_path)
    with pytest.raises(DoeError, match=said):
        augment_plan(tmp_path, kind)
    assert contents(tmp_path) == before


def test_the_study_planned_last_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DoeError, match="no study in runs/"):
        find_study(None)
    for name in "ba":
        write_plan(preset_study("demo"), RUNS / name)
        assert find_study(None) == RUNS / name
    assert find_study(RUNS / "b" / "study.toml") == RUNS / "b"
    write_plan(preset_study("demo"), RUNS / "b")  # there already, and asked for again
    assert find_study(None) == RUNS / "b"


def test_a_choice_among_several_studies_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    write_plan(preset_study("demo"), Path("runs/a"))
    assert chosen_study(None) == Path("runs/a")
    assert capsys.readouterr().err == ""
    write_plan(preset_study("small"), Path("runs/b"))
    assert chosen_study(None) == Path("runs/b")
    assert capsys.readouterr().err == "study: runs/b, the last planned of 2\n"
    assert chosen_study(Path("runs/a")) == Path("runs/a")
    assert capsys.readouterr().err == ""


def test_unwritable_place_is_one_message(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DoeError, match="cannot write"):
        write_plan(preset_study("demo"), tmp_path / "file" / "study")


# The command line --------------------------------------------------------------------------------


def test_plan_command_prints_the_plan(here):
    result = run(app, ["plan", "--preset", "paper"])
    assert result.exit_code == 0, result.output
    assert "256 runs in 4 blocks" in " ".join(result.output.split())
    assert (here / "runs/pit-paper/design.csv").exists()
    again = run(app, ["plan", "--preset", "paper"])
    assert "nothing changed" in again.output


@pytest.mark.parametrize(
    ("fraction", "resolution", "chain"),
    [("1/2", "Resolution VI", "DEF"), ("E=ABC,F=BCD", "Resolution IV", "AE, DF")],
)
def test_plan_of_a_fraction_prints_resolution_and_aliases(here, fraction, resolution, chain):
    result = run(app, ["plan", "--preset", "demo", "--fraction", fraction])
    assert result.exit_code == 0, result.output
    assert resolution in result.output
    assert chain in result.output


def test_plan_of_a_surface_counts_its_configurations(here):
    factors = "".join(f"[factors.{key}]\nlow = 0.0\nhigh = 1.0\n" for key in "uv")
    head = 'name = "s"\nbackend = "m:f"\n[design]\nkind = "surface"\n'
    (here / "study.toml").write_text(f"{head}{factors}[responses]\nmetrics = ['y']\n")
    told = " ".join(doe("plan").stdout.split())
    assert "Design of 2 factors, 9 configurations, 1 replicate: 12 runs in 1 block" in told
    assert "D-efficiency" in told


def test_json_of_the_three_commands_is_one_document(here):
    plan = json.loads(run(app, ["plan", "--preset", "demo", "--fraction", "1/4", "--json"]).stdout)
    assert plan["runs"] == 32
    assert plan["resolution"] == 4
    assert len(plan["order"]) == 32
    alias = json.loads(run(app, ["alias", "-k", "6", "--fraction", "1/2", "--json"]).stdout)
    assert alias["defining_relation"] == [{"term": "ABCDEF", "sign": 1}]
    assert alias["word_length_pattern"] == [0, 0, 0, 1]
    power = json.loads(run(app, ["power", "-k", "6", "--effect", "0.5", "--json"]).stdout)
    assert power["replicates_needed"] == 3
    assert power["designs"][3]["df_error"] == 189


def test_replicates_on_the_command_line_continue_the_seeds(here):
    plan = json.loads(run(app, ["plan", "--preset", "demo", "-n", "5", "--json"]).stdout)
    assert plan["runs"] == 320
    assert load_plan(here / "runs/pit-demo").study.seeds == (100, 101, 102, 103, 104)


@pytest.mark.parametrize(
    "arguments",
    [
        ["plan", "--preset", "huge"],
        ["plan", "absent.toml"],
        ["plan", "--preset", "demo", "--fraction", "1/3"],
        ["plan", "--augment", "2"],
        ["plan", "--preset", "demo", "--augment", "2"],
        ["alias"],
        ["power", "-k", "3", "--sigma", "-1"],
    ],
)
def test_mistakes_end_in_one_message_and_exit_code_one(here, arguments):
    said = doe(*arguments, code=1)
    assert said.stderr.startswith("error: ")
    assert said.stdout == ""


def test_reading_a_plan_writes_nothing_and_running_completes_it(tmp_path):
    plan, _ = write_plan(preset_study("demo"), tmp_path)
    files = StudyDir(tmp_path)
    files.design.unlink()
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    assert load_plan(tmp_path) == plan
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before
    assert complete_design(plan)
    assert files.design.read_text() == design_csv(plan.design)
    assert not complete_design(plan)


def test_a_planned_design_is_read_back_and_not_made_again(tmp_path, monkeypatch):
    plan, _ = write_plan(preset_study("demo"), tmp_path)
    monkeypatch.setattr(plans, "make_design", None)
    assert load_plan(tmp_path) == plan
    assert write_plan(preset_study("demo"), tmp_path)[1] == "unchanged"
    words = msgspec.structs.replace(preset_study("demo"), description="other words")
    assert write_plan(words, tmp_path)[1] == "amended"
    assert extend_plan(tmp_path, 4).design.runs[: len(plan.design.runs)] == plan.design.runs


def test_a_study_changed_by_hand_is_refused(tmp_path):
    write_plan(preset_study("demo"), tmp_path)
    files = StudyDir(tmp_path)
    text = files.study.read_text()
    files.study.write_text(text.replace("order_seed = 42", "order_seed = 43"))
    with pytest.raises(DoeError, match="from line 2 on"):
        load_plan(tmp_path)
    files.study.write_text(
        text.replace("replicates = 2", "replicates = 3").replace("101,", "101,102,")
    )
    with pytest.raises(DoeError, match="was changed by hand after planning"):
        load_plan(tmp_path)
    files.study.write_text(text.replace('description = "', 'description = "Read again. '))
    assert load_plan(tmp_path).study.description.startswith("Read again. ")


def test_a_plan_of_a_later_format_is_refused_with_one_sentence(tmp_path):
    write_plan(preset_study("demo"), tmp_path)
    study = StudyDir(tmp_path).study
    text = study.read_text().replace("format = 2", "format = 3")
    study.write_text('unheard_of = "x"\n' + text)
    with pytest.raises(DoeError) as refused:
        load_plan(tmp_path)
    assert "\n" not in str(refused.value)
    assert "its format is 3, and this version reads formats up to 2" in str(refused.value)


@pytest.mark.parametrize("path", sorted((ROOT / "runs").glob("*/study.toml")), ids=str)
def test_studies_of_earlier_versions_load_unchanged(path):
    """They have no digest; every verdict answers the request that the plan makes today."""
    plan = load_plan(path.parent)
    assert "[plan]" not in path.read_text()
    assert design_csv(plan.design) == plan.files.design.read_text()
    statuses = plan.scan()
    assert sum(status.state == "done" for status in statuses) > 0
    assert not changed_runs(plan.study, statuses)


def test_a_frozen_study_is_planned_elsewhere_as_any_study_file(tmp_path):
    write_plan(preset_study("demo"), tmp_path / "a")
    study = load_study(StudyDir(tmp_path / "a").study)
    assert study == preset_study("demo")
    assert write_plan(study, tmp_path / "b")[1] == "created"


@pytest.mark.parametrize("fraction", ["", "F=ABCDE"])
def test_replicates_are_added_without_making_the_matrix_again(tmp_path, monkeypatch, fraction):
    """Which takes the import of pyDOE2, most of a second."""
    write_plan(msgspec.structs.replace(preset_study("demo"), fraction=fraction), tmp_path)
    with monkeypatch.context() as without:
        without.setattr("doe.design.kinds.fraction.pydoe", None)
        plan = augment_plan(tmp_path, "1")
    assert plan.design == make_design(plan.study)


# Others write at the same time -------------------------------------------------------------------


def meanwhile(monkeypatch, name, deed):
    """Do something in the middle of a reading: just before the first call of a function."""
    function, left = getattr(plans, name), [deed]

    def called(*given, **named):
        while left:
            left.pop()()
        return function(*given, **named)

    monkeypatch.setattr(plans, name, called)


@pytest.mark.parametrize("name", ["_study_bytes", "_design_text", "planned_study"])
@pytest.mark.parametrize("change", ["augmented", "replanned"])
def test_a_plan_that_changes_while_it_is_read_is_read_whole(tmp_path, monkeypatch, name, change):
    old, _ = write_plan(preset_study("demo"), tmp_path)
    half = msgspec.structs.replace(preset_study("demo"), fraction="F=ABCDE")
    deeds = {
        "augmented": lambda: augment_plan(tmp_path, "1"),
        "replanned": lambda: write_plan(half, tmp_path),
    }
    meanwhile(monkeypatch, name, deeds[change])
    read = load_plan(tmp_path)
    new = load_plan(tmp_path)
    assert new != old
    assert read == (old if name == "planned_study" else new)


@pytest.mark.parametrize("change", ["augmented", "replanned"])
def test_a_plan_is_whole_at_every_moment_of_a_change(tmp_path, monkeypatch, change):
    """Read by another process before and after each of the writer's calls."""
    old, _ = write_plan(preset_study("demo"), tmp_path)
    half = msgspec.structs.replace(preset_study("demo"), fraction="F=ABCDE")
    seen = []
    write = plans.write_atomic

    def watched(path, text):
        seen.append(load_plan(tmp_path))
        write(path, text)
        seen.append(load_plan(tmp_path))

    monkeypatch.setattr(plans, "write_atomic", watched)
    if change == "augmented":
        new = augment_plan(tmp_path, "1")
    else:
        new, _ = write_plan(half, tmp_path)
    assert seen == [old, new, new, new]


def test_a_design_that_another_has_made_longer_stays(tmp_path):
    """A scheduler that read the plan before a second one appended a replicate."""
    old, _ = write_plan(preset_study("demo"), tmp_path)
    new = augment_plan(tmp_path, "1")
    assert not complete_design(old)
    assert StudyDir(tmp_path).design.read_text() == design_csv(new.design)


def test_two_that_lack_the_same_replicate_add_it_once(tmp_path):
    write_plan(preset_study("demo"), tmp_path)

    def extend(together):
        together.wait()
        for replicates in range(3, 9):
            plan = extend_plan(tmp_path, replicates)
            assert plan.design.runs[-1].replicate >= replicates

    context = multiprocessing.get_context("fork")  # neither has to import first
    together = context.Barrier(2, timeout=60)
    both = [context.Process(target=extend, args=(together,)) for _ in range(2)]
    for process in both:
        process.start()
    for process in both:
        process.join()
    assert [process.exitcode for process in both] == [0, 0]
    plan = load_plan(tmp_path)
    assert [step.seeds for step in plan.study.augment] == [(102 + i,) for i in range(6)]
    assert StudyDir(tmp_path).design.read_text() == design_csv(plan.design)
