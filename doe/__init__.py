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

    from doe.results.sources import Source
    from doe.store.scan import RunState
    from doe.study.values import Study
    from doe.views.notebook import ResponseResult, Results

    __version__: str

_PLANNED = "the directory of a planned study"

__all__ = ["__version__", "analyze", "load", "plan", "report", "run"]


def __getattr__(name: str) -> str:
    if name != "__version__":
        raise AttributeError(f"module 'doe' has no attribute {name!r}")
    from importlib.metadata import version

    return version("pit-doe")


def plan(
    study: Study | Path | str | None = None,
    *,
    preset: str | None = None,
    replicates: int | None = None,
    fraction: str | None = None,
    out: Path | str | None = None,
) -> Path:
    """Plan a study (a value, a TOML file or a preset) and return its directory.

    Planning the same study again changes nothing.
    """
    from doe.design.changes import with_overrides
    from doe.errors import DoeError
    from doe.store.plan import RUNS, write_plan
    from doe.study.command import check_program
    from doe.study.presets import asked_study
    from doe.study.values import Study

    source = Path(study) if isinstance(study, str) else study
    if not isinstance(source, (Study, Path, type(None))):
        raise DoeError(f"got {type(study).__name__}; expected a Study or the path of a study file")
    changed = with_overrides(asked_study(source, preset), replicates, fraction)
    check_program(changed, Path.cwd())
    directory = RUNS / changed.name if out is None else _path(out, "the directory to plan in")
    write_plan(changed, directory)
    return directory


def run(
    directory: Path | str,
    *,
    engine: str = "local",
    retries: int = 2,
    retry_errors: bool = False,
    retry_failed: bool = False,
    timeout: float = 0.0,
    limit: int = 0,
    until_decided: bool = False,
    **engine_settings: Any,
) -> dict[RunState, int]:
    """Run what is not yet done, as `doe run` does; return how many runs are in each state.

    A study that declares when it may stop keeps to it; `until_decided` declares it.

    Further arguments are settings of the engine, by the names of `doe run`'s options: `cpu=2`,
    `gpus="0,1"`, `partition="gpu"`.
    """
    from doe.results.decision import declare, is_decided
    from doe.running.execute import EngineChoice, run_study
    from doe.running.scheduler import RunOptions
    from doe.store.plan import load_plan
    from doe.store.verdicts import Policy
    from doe.views.live import open_display
    from doe.views.terminal import console

    options = RunOptions(
        policy=Policy(retries, retry_errors),
        timeout=timeout,
        limit=limit,
        retry_failed=retry_failed,
    )
    study = _path(directory, _PLANNED)
    if until_decided:
        declare(study, (), None)
    with open_display(console()) as display:
        choice = EngineChoice(engine, engine_settings)
        return run_study(load_plan(study), options, choice, display, is_decided).counts


def load(directory: Path | str) -> pd.DataFrame:
    """Read a study's results as a table, a row per planned run, in run order.

    Columns: the run (`run_id, run_order, row, replicate, block, seed, config`), the factors' levels
    as given and coded −1/+1 (`<key>_coded`), `state` (done, diverged, failed, running, pending),
    `reason`, `slot`, `host`, `started`, `ended`, `seconds`, `imported` (the table that a past run
    came from), then metrics, further metrics and averages. An average is the plain mean of its
    metrics. A missing value is NaN.
    """
    from doe.results.observations import load as load_table

    return load_table(_path(directory, _PLANNED))


def _path(path: Path | str, expected: str) -> Path:
    from doe.errors import DoeError

    if not isinstance(path, (str, Path)):
        raise DoeError(f"got {type(path).__name__}; expected {expected}")
    return Path(path)


def _terms(terms: Sequence[str] | None) -> tuple[str, ...] | None:
    from doe.errors import DoeError

    if terms is None:
        return None
    if not isinstance(terms, (list, tuple)) or not all(isinstance(term, str) for term in terms):
        raise DoeError(f"terms={terms!r}: expected a list of terms, as in ['A', 'B', 'AB']")
    return tuple(terms)


def analyze(
    source: Source,
    response: str | Sequence[str] | None = None,
    *,
    factors: Sequence[str] = (),
    low: Mapping[str, str] | None = None,
    block: str | None = None,
    goal: str | None = None,
    transform: str | None = None,
    order: int | None = None,
    terms: Sequence[str] | None = None,
    robust: bool = False,
    alpha: float = 0.05,
    beats: Sequence[tuple[str, str]] = (),
) -> ResponseResult | Results:
    """Analyse a study, a CSV file or a DataFrame, as `doe analyze` does.

    One response by its name gives a `ResponseResult`: sentences and tables when it is shown,
    `effects`, `anova` and `best` as DataFrames, `half_normal()` and the other charts of the report
    as Altair objects, and every number as a frozen value in `analysis`. Several, or none for those
    that the study names first, give `Results`, a mapping from names to them.

    `factors`, `low` levels, `block` and `goal` ("min" or "max") are for files and DataFrames.
    `beats` asks how likely one configuration beats another with a fresh seed, in `analysis.beats`:
    pairs of names, or of "best", "runner-up", "baseline".
    """
    from doe.analysis.case import AnalysisOptions
    from doe.errors import DoeError
    from doe.results.report import report_of
    from doe.results.sources import source_state
    from doe.views.notebook import ResponseResult, Results

    responses = [response] if isinstance(response, str) else list(response or ())
    if wrong := [name for name in responses if not isinstance(name, str)]:
        raise DoeError(f"response {wrong[0]!r}: expected a name, or a list of names")
    state, names = source_state(source, responses, _say, factors, low, block, goal)
    options = AnalysisOptions(
        transform=transform,
        order=order,
        terms=_terms(terms),
        robust=robust,
        alpha=alpha,
        beats=tuple((first, second) for first, second in beats),
    )
    analysed = report_of(state, options, responses=names)
    for name in names:
        if name in analysed.refused:
            raise DoeError(analysed.refused[name])
    results = [ResponseResult(analysed, name) for name in names]
    return results[0] if isinstance(response, str) else Results(results)


def _say(sentence: str) -> None:
    import sys

    print(sentence, file=sys.stderr)


def report(
    source: Source,
    *,
    out: Path | str | None = None,
    transform: str | None = None,
    terms: Sequence[str] | None = None,
    responses: Sequence[str] = (),
    factors: Sequence[str] = (),
    low: Mapping[str, str] | None = None,
    block: str | None = None,
    goal: str | None = None,
) -> Path:
    """Write the page and tables of a study, a CSV file or a DataFrame; return the page.

    `responses`, `factors`, `low`, `block` and `goal` are for files and DataFrames.
    """
    from doe.analysis.case import AnalysisOptions
    from doe.errors import DoeError
    from doe.results.report import report_of
    from doe.results.sources import is_study, source_state
    from doe.views.files import REPORTS, write_report

    target = None if out is None else _path(out, "the directory to write to")
    if (planned := is_study(source)) and responses:
        raise DoeError("responses belong to a table; the page of a study has all of them")
    names = () if planned else tuple(responses) or ("all",)
    state, _ = source_state(source, names, _say, factors, low, block, goal)
    options = AnalysisOptions(transform=transform, terms=_terms(terms), robust=True)
    return write_report(report_of(state, options), target or REPORTS / state.directory.stem).page
