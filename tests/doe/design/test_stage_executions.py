"""Which executions of stages a design needs, and the order of runs that share them."""

from itertools import groupby

import msgspec

from doe.design.changes import augmented
from doe.design.runs import make_design, stage_executions, stage_needs
from doe.design.table import design_csv, design_request, read_design
from doe.study.values import Factor, Responses, Stage, Study


def study(streams=None, **stages):
    return Study(
        name="stages",
        backend="module:function",
        factors=(
            Factor("vocab", (100, 200, 300)),
            *(Factor(key, (0.0, 1.0)) for key in ("lr", "width", "depth")),
        ),
        responses=Responses(metrics=("y",)),
        replicates=4,
        seeds=() if streams else (5, 6, 7, 8),
        streams=streams or {},
        stages=stages,
    )


TOKENS = Stage(function="a:b", factors=("vocab",))


def test_a_stage_is_done_once_for_each_level_and_replicate():
    asked = study(tokens=TOKENS)
    design = make_design(asked)
    executions = stage_executions(asked, design.runs)
    assert len(executions) == 3 * 4
    assert len({run.run_id for run in executions}) == 12
    assert {(e.levels["vocab"], e.seed) for e in executions} == {
        (level, seed) for level in (100, 200, 300) for seed in (5, 6, 7, 8)
    }
    known = {execution.run_id: execution for execution in executions}
    for run in design.runs:
        execution = known[stage_needs(asked, run)["tokens"]]
        assert execution.levels == {"vocab": run.levels["vocab"]}
        assert execution.seed == run.seed


def test_repeated_runs_share_the_execution_of_their_replicate():
    design = {"kind": "optimal", "runs": 30, "whole_plots": 6, "model": "linear"}
    asked = msgspec.structs.replace(study(tokens=TOKENS), design=design)
    runs = make_design(asked).runs
    assert {run.seed for run in runs} > {5, 6, 7, 8}
    executions = stage_executions(asked, runs)
    assert len(executions) == len({(run.levels["vocab"], run.replicate) for run in runs})
    assert {execution.seed for execution in executions} == {5, 6, 7, 8}


def test_a_stage_without_a_seed_is_done_once_for_all_replicates():
    asked = study(tokens=Stage(function="a:b", factors=("vocab",), seed="none"))
    executions = stage_executions(asked, make_design(asked).runs)
    assert len(executions) == 3
    assert {(e.seed, e.replicate) for e in executions} == {(0, 1)}


def test_a_stage_of_a_stream_is_done_once_for_each_of_its_seeds():
    streams = {"init": (1, 2, 3, 4), "split": (7, 7, 9, 9)}
    asked = study(streams, tokens=Stage(function="a:b", factors=("vocab",), seed="split"))
    executions = stage_executions(asked, make_design(asked).runs)
    assert sorted((e.levels["vocab"], e.seed) for e in executions) == [
        (level, seed) for level in (100, 200, 300) for seed in (7, 9)
    ]
    assert all(e.seeds == {"split": e.seed} for e in executions)


def test_what_a_stage_needs_comes_before_it():
    asked = study(
        tokens=Stage(function="a:b", factors=("vocab",), needs=("clean",)),
        clean=Stage(function="a:b", factors=("lr",)),
    )
    executions = stage_executions(asked, make_design(asked).runs)
    assert len([e for e in executions if e.stage == "clean"]) == 2 * 4
    assert len([e for e in executions if e.stage == "tokens"]) == 6 * 4
    ids = [execution.run_id for execution in executions]
    for execution in executions:
        for other in stage_needs(asked, execution).values():
            assert ids.index(other) < ids.index(execution.run_id)


def test_a_design_that_grows_keeps_its_executions():
    asked = study(tokens=TOKENS)
    longer = augmented(asked, "1")
    before = stage_executions(asked, make_design(asked).runs)
    after = stage_executions(longer, make_design(longer).runs)
    assert after[: len(before)] == before
    assert len(after) == 15


def plots(design):
    return [
        (block, level, [run.run_id for run in runs])
        for (block, level), runs in groupby(
            design.runs, key=lambda run: (run.block, run.levels["vocab"])
        )
    ]


def test_runs_of_a_whole_plot_follow_each_other_in_random_order():
    asked = study(tokens=TOKENS)
    design = make_design(asked)
    visits = plots(design)
    assert len(visits) == 3 * 4
    assert all(len(runs) == 8 for _, _, runs in visits)
    orders = {tuple(level for block, level, _ in visits if block == b) for b in range(1, 5)}
    assert len(orders) > 1  # whole plots in random order
    within = {tuple(run[:3] for run in runs) for _, level, runs in visits if level == 100}
    assert len(within) == 4  # and so are the runs of each
    assert [run.whole_plot for run in design.runs] == [i for i in range(1, 13) for _ in range(8)]


def test_without_stages_the_order_stays_as_it_was():
    design = make_design(study())
    assert {run.whole_plot for run in design.runs} == {0}
    assert len(plots(design)) > 12
    assert "stages" not in design_request(study())


def test_whole_plots_are_read_back_and_decide_the_design():
    asked = study(tokens=TOKENS)
    design = make_design(asked)
    assert read_design(design_csv(design), asked) == design
    assert design_request(asked) != design_request(study())


def test_a_stage_for_all_replicates_is_one_whole_plot():
    asked = study(tokens=Stage(function="a:b", factors=("vocab",), seed="none"))
    runs = make_design(asked).runs
    assert len({run.whole_plot for run in runs}) == 3
    assert len({(run.whole_plot, run.levels["vocab"]) for run in runs}) == 3
