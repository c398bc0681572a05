"""Designed experiments over training runs, from the plan to the paper's tables.

>>> import doe
>>> study = doe.plan("study.toml")              # doctest: +SKIP
>>> doe.run(study, cpu=2)                       # doctest: +SKIP
>>> table = doe.load(study)                     # doctest: +SKIP
>>> result = doe.analyze(study, "accuracy")     # doctest: +SKIP
>>> page = doe.report(study)                    # doctest: +SKIP

Importing this package loads nothing else; each function loads what it needs when it is called.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from doe.analysis.options import AnalysisOptions
    from doe.analysis.tables import TableOptions
    from doe.results.sources import Source
    from doe.running.trial import Trial
    from doe.store.imports import Imported
    from doe.store.scan import RunState
    from doe.study.values import Study
    from doe.views.notebook import BoundsResult, ResponseResult, Results

    __version__: str

_PLANNED = "the directory of a planned study"

__all__ = [
    "Study",
    "__version__",
    "analyze",
    "import_",
    "load",
    "plan",
    "power",
    "report",
    "run",
    "try_",
]


def __getattr__(name: str) -> Any:
    if name == "Study":
        from doe.study.values import Study

        return Study
    if name != "__version__":
        raise AttributeError(f"module 'doe' has no attribute {name!r}")
    from importlib.metadata import version

    return version("pit-doe")


def plan(
    study: Study | Mapping[str, Any] | Path | str | None = None,
    *,
    preset: str | None = None,
    replicates: int | None = None,
    fraction: str | None = None,
    out: Path | str | None = None,
    augment: int | str | None = None,
    confirm: int | None = None,
    response: str | None = None,
    runs: int | None = None,
    model: str | None = None,
    budget: str | None = None,
    run_time: str | None = None,
    sigma: float | None = None,
    slots: int | None = None,
    choose: int | None = None,
) -> Path:
    """Plan a study (a value, the tables of a study file as a dict, a TOML file or a preset) and
    return its directory.

    Planning the same study again changes nothing. `augment` adds so many replicates, the "foldover"
    of a fraction, "axial" points, so many `runs` that are "optimal" for a `model`, or the path of
    steepest "ascent" of a `response`, to the study planned in `out`; `confirm` adds runs with so
    many fresh seeds of the configuration that is best by `response`, of the runner-up and of the
    baseline.

    `budget` ("40h", "200 runs") plans the design with the number `choose` among those that fit,
    which an error lists where none is chosen; `run_time` of a run ("90s"), `sigma` of single runs
    and `slots` (runs at once) replace estimates from finished runs.
    """
    from doe.results.planning import PlanRequest, make_plan

    request = PlanRequest(
        study=Path(study) if isinstance(study, str) else study,
        preset=preset,
        replicates=replicates,
        fraction=fraction,
        out=None if out is None else _path(out, "the directory to plan in"),
        augment=None if augment is None else str(augment),
        confirm=confirm,
        response=response,
        runs=runs,
        model=model,
        budget=budget,
        run_time=run_time,
        sigma=sigma,
        slots=slots,
        choose=choose,
    )
    return make_plan(request)[0].directory


def power(
    study: Path | str | None = None,
    *,
    factors: int | None = None,
    fraction: str | None = None,
    response: str | None = None,
    sigma: float | None = None,
    effect: float | None = None,
    sequential: bool = False,
    effects: Sequence[float] = (),
    matters: float | None = None,
    replicates: int = 8,
    blocks: bool = True,
    order: int | None = None,
    alpha: float = 0.05,
    power: float = 0.8,
) -> dict[str, Any]:
    """Return what `doe power --json` prints: the effects that a design detects.

    The design is that of a planned `study`, or of so many two-level `factors`; `designs` has a row
    for each number of replicates up to `replicates`. `sigma` is that of single runs, which else
    comes from the runs' `response`; `effect` asks for its power and the replicates that detect it
    with the probability `power`. `sequential` asks how soon a study with a stopping rule ends, with
    true `effects` and the smallest that `matters`.
    """
    asked = locals()
    from doe.results.power import PowerRequest, power_of

    asked["study"] = None if study is None else _path(study, _PLANNED)
    asked["effects"] = tuple(effects)
    return power_of(PowerRequest(**asked)).document


def try_(
    study: Study | Mapping[str, Any] | Path | str | None = None,
    *,
    preset: str | None = None,
    only: str | None = None,
    gpu: int | None = None,
) -> Trial:
    """Run one configuration of a study now, as `doe try` does; nothing is recorded.

    `only` names the configuration, which is by default the first to run.
    """
    from doe.design.runs import make_design, runs_of
    from doe.results.planning import PlanRequest, requested_study
    from doe.running.trial import try_run

    source = Path(study) if isinstance(study, str) else study
    chosen = requested_study(PlanRequest(study=source, preset=preset))
    runs = make_design(chosen).runs
    return try_run(chosen, runs[0] if only is None else runs_of(runs, only)[0], gpu)


def import_(
    table: Path | str | pd.DataFrame,
    study: Path | str | None = None,
    *,
    columns: Mapping[str, str] | None = None,
    decimal: str | None = None,
    matching: bool = False,
) -> Imported:
    """Take past runs over as results of a study, matched by levels and seed.

    `study` is its directory or its file, which is planned if need be. `columns` names the columns
    of factors, responses and "seed" that have other names; `decimal` is the decimal sign of a file;
    `matching` leaves out rows that the plan does not have.
    """
    from doe.results.planning import import_table, planned_or_new

    planned, _ = planned_or_new(None if study is None else _path(study, _PLANNED))
    source = Path(table) if isinstance(table, str) else table
    return import_table(planned, source, columns or {}, matching, _say, decimal)


def run(
    directory: Path | str,
    *,
    engine: str = "local",
    detach: bool = False,
    only: Sequence[str] = (),
    replicate: int = 0,
    until: str | None = None,
    decide: Sequence[str] = (),
    max_replicates: int | None = None,
    limit: int = 0,
    retries: int = 2,
    retry_errors: bool = False,
    retry_failed: bool = False,
    keep_stages: bool = False,
    timeout: float = 0.0,
    grace: float = 10.0,
    **engine_settings: Any,
) -> dict[RunState, int]:
    """Run what is not yet done, as `doe run` does; return how many runs are in each state.

    A study that declares when it may stop keeps to it; `until="decided"` declares it, for the terms
    in `decide` and at most `max_replicates`.

    `keep_stages` keeps what stages left when no run needs it any more.

    Further arguments are settings of the engine, by the names of `doe run`'s options: `cpu=2`,
    `gpus="0,1"`, `partition="gpu"`.
    """
    from doe.results.decision import declare_until, requested_portions
    from doe.running.execute import EngineChoice, run_study
    from doe.running.scheduler import RunOptions
    from doe.store.plan import load_plan
    from doe.store.verdicts import Policy
    from doe.views.live import open_display
    from doe.views.terminal import console

    options = RunOptions(
        policy=Policy(retries, retry_errors),
        timeout=timeout,
        only=_names(only, "only"),
        replicates=(replicate,) if replicate else (),
        limit=limit,
        retry_failed=retry_failed,
        grace=grace,
        detach=detach,
        keep_stages=keep_stages,
    )
    study = _path(directory, _PLANNED)
    declare_until(study, until, _names(decide, "decide"), max_replicates)
    with open_display(console()) as display:
        choice = EngineChoice(engine, engine_settings)
        return run_study(load_plan(study), options, choice, display, requested_portions).counts


def load(directory: Path | str) -> pd.DataFrame:
    """Read a study's results as a table, a row per planned run, in run order.

    Columns: the run (`run_id, run_order, row, replicate, block, seed, config`), the factors' levels
    as given and coded −1/+1 (`<key>_coded`), `state` (done, diverged, failed, running, pending),
    `reason`, `slot`, `host`, `started`, `ended`, `seconds`, `imported` (the table that a past run
    came from), then metrics, further metrics and averages. An average is the plain mean of its
    metrics. A missing value is NaN.
    """
    from doe.results.dataset import load as load_table

    return load_table(_path(directory, _PLANNED))


def analyze(
    source: Source,
    response: str | Sequence[str] | None = None,
    *,
    factors: Sequence[str] = (),
    low: Mapping[str, str] | None = None,
    scale: Mapping[str, str] | None = None,
    of: Mapping[str, int] | None = None,
    block: str | None = None,
    whole_plot: Sequence[str] = (),
    covariates: Sequence[str] = (),
    goal: str | Mapping[str, str] | None = None,
    decimal: str | None = None,
    ceiling: float | None = None,
    transform: str | None = None,
    order: int | None = None,
    terms: Sequence[str] | None = None,
    drop: Sequence[str] = (),
    error: str = "pure",
    random_blocks: bool = False,
    robust: bool = False,
    permutations: int | None = None,
    alpha: float = 0.05,
    beats: Sequence[tuple[str, str]] = (),
    optimize: bool = False,
    coding: str = "factorial",
    constraints: Sequence[str] = (),
    desires: Sequence[str] = (),
    equivalence: bool = False,
    matters: float | None = None,
) -> ResponseResult | BoundsResult | Results:
    """Analyse a study, a CSV file or a DataFrame, as `doe analyze` does.

    One response by its name gives a `ResponseResult`: sentences and tables when it is shown,
    `effects`, `anova` and `best` as DataFrames, `half_normal()` and the other charts of the report
    as Altair objects, and every number as a frozen value in `analysis`. Several, or none for those
    that the study names first, give `Results`, a mapping from names to them.

    `factors`, `low` levels, `scale` (of factors "linear" or "log", of responses "raw", "log" or
    "logit"), `of` (how many items a response is the share of), `block`, `whole_plot` (a column, or
    factors that are hard to change), `covariates` (columns to adjust for), `goal` ("min", "max", or
    one for each response), the `decimal` sign of a file and the `ceiling` (the largest possible
    value, where cells are limits such as ">50", so that effects have bounds alone) are for tables.
    `terms` are the model, `drop` factors whose terms are not shown; `error` is what tests are
    against where runs repeat, "pure" or "residual". `permutations` are of the robust methods, and
    imply `robust`. `beats` asks
    how likely one configuration beats another with a fresh seed, in `analysis.beats`: pairs of
    names, or of "best", "runner-up", "baseline". `optimize` asks where to go next, in
    `analysis.surface`, also of a model without squares; `coding` is what lies one coded unit from
    the centre, "factorial" points or the "range". `equivalence` tests which effects lie within what
    `matters`, by default as the study says.

    Several responses are weighed against each other in `trade_off`: the Pareto front, the best
    under `constraints` such as "seconds <= 60", and the overall desirability, of the study's
    [desirability] or of `desires` such as "seconds=60..10:2" (worth nothing, target, weight).
    """
    asked = locals()
    from doe.errors import DoeError
    from doe.results.report import report_of
    from doe.results.sources import read_source
    from doe.views.notebook import BoundsResult, ResponseResult, Results

    responses = [response] if isinstance(response, str) else list(response or ())
    if wrong := [name for name in responses if not isinstance(name, str)]:
        raise DoeError(f"response {wrong[0]!r}: expected a name, or a list of names")
    options, table = _options(asked), _table(asked)
    analysed = report_of(read_source(source, responses, table, _say), options)
    for reason in analysed.refused.values():
        raise DoeError(reason)
    bounds = {name: BoundsResult(bounds) for name, bounds in analysed.bounds.items()}
    results = [bounds.get(name) or ResponseResult(analysed, name) for name in analysed.subject.data]
    return results[0] if isinstance(response, str) else Results(results)


def report(
    source: Source,
    *,
    out: Path | str | None = None,
    transform: str | None = None,
    terms: Sequence[str] | None = None,
    random_blocks: bool = False,
    drop: Sequence[str] | None = None,
    responses: Sequence[str] = (),
    factors: Sequence[str] = (),
    low: Mapping[str, str] | None = None,
    scale: Mapping[str, str] | None = None,
    of: Mapping[str, int] | None = None,
    block: str | None = None,
    whole_plot: Sequence[str] = (),
    covariates: Sequence[str] = (),
    goal: str | Mapping[str, str] | None = None,
    decimal: str | None = None,
    every_term: bool = False,
    figures: Sequence[str] = (),
    contour: Sequence[str] = (),
) -> Path:
    """Write the page and tables of a study, a CSV file or a DataFrame; return the page.

    `responses`, `factors`, `low`, `scale`, `of`, `block`, `whole_plot`, `covariates`, `goal` and
    `decimal` are for tables.
    `drop` are factors left out of the paper's tables of effects; `every_term` puts terms that are
    not significant into LaTeX tables as well; `figures` saves charts of the responses named, of
    "averages" or of "all", as PDF, SVG and PNG; `contour` are two factors of a surface whose map
    comes first.
    """
    asked = locals() | {"drop": (), "robust": True}
    from doe.results.report import report_of
    from doe.results.sources import page_source
    from doe.views.files import REPORTS, figure_responses, write_figures, write_report

    target = None if out is None else _path(out, "the directory to write to")
    options, table = _options(asked), _table(asked)
    names = _names(responses, "responses")
    subject = page_source(source, names, table, _say)
    left_out = None if drop is None else _names(drop, "drop")
    drawn = figure_responses(subject.responses, _names(figures, "figures"))
    made, place = report_of(subject, options, left_out), target or REPORTS / subject.path.stem
    page = write_report(made, place, every_term).page
    if drawn:
        write_figures(made, place, drawn)
    return page


# What is asked, as values -------------------------------------------------------------------------


_LISTS = {
    "responses": "names",
    "factors": "columns, as in ['lr', 'augment']",
    "whole_plot": "columns",
    "covariates": "columns",
    "terms": "terms, as in ['A', 'B', 'AB']",
    "drop": "factors",
    "contour": "two factors",
    "figures": "responses",
    "constraints": "texts, as in ['seconds <= 60']",
    "desires": "texts, as in ['seconds=60..10:2']",
    "only": "configurations",
    "decide": "terms",
}
"""Arguments that are lists of texts, with what they hold."""


def _options(asked: Mapping[str, Any]) -> AnalysisOptions:
    """Return the options of an analysis among the arguments of a function, checked."""
    from doe.analysis.options import AnalysisOptions, requested

    given = {name: asked.get(name) for name in AnalysisOptions.__struct_fields__}
    given["beats"] = tuple((first, second) for first, second in given["beats"] or ())
    return requested(**{name: _checked(name, value) for name, value in given.items()})


def _table(asked: Mapping[str, Any]) -> TableOptions | None:
    """Return the roles of a table's columns from the arguments of a function; None for a study."""
    names = ("factors", "low", "scale", "of", "block", "whole_plot", "covariates")
    named = {name: asked.get(name) for name in (*names, "goal", "decimal", "ceiling")}
    given: dict[str, Any] = {
        name: _checked(name, value) for name, value in named.items() if value not in (None, (), {})
    }
    if not given:
        return None
    from doe.analysis.tables import TableOptions

    if isinstance(goal := given.get("goal"), Mapping):
        given["goal"] = ",".join(f"{name}={way}" for name, way in goal.items())
    for name in {"low", "of"} & given.keys():
        given[name] = {key: str(value) for key, value in given[name].items()}
    return TableOptions(**given)


def _checked(name: str, value: Any) -> Any:
    return value if name not in _LISTS or value is None else _names(value, name)


def _names(names: Sequence[str], argument: str) -> tuple[str, ...]:
    from doe.errors import DoeError

    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        raise DoeError(f"{argument}={names!r}: expected a list of {_LISTS[argument]}")
    return tuple(names)


def _path(path: Path | str, expected: str) -> Path:
    from doe.errors import DoeError

    if not isinstance(path, (str, Path)):
        raise DoeError(f"got {type(path).__name__}; expected {expected}")
    return Path(path)


def _say(sentence: str) -> None:
    import sys

    print(sentence, file=sys.stderr)
