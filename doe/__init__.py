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

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from doe.analysis.analyze import Analysis
    from doe.store.scan import RunState
    from doe.study.values import Study

    __version__: str

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
    from doe.store.plan import RUNS, write_plan
    from doe.study.presets import asked_study

    given = Path(study) if isinstance(study, str) else study
    asked = with_overrides(asked_study(given, preset), replicates, fraction)
    directory = Path(out) if out is not None else RUNS / asked.name
    write_plan(asked, directory)
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
    **asked: Any,
) -> dict[RunState, int]:
    """Run what is not yet done, as `doe run` does; return how many runs are in each state.

    A study that declares when it may stop keeps to it; `until_decided` declares it.

    Further arguments are settings of the engine, by the names of `doe run`'s options: `cpu=2`,
    `gpus="0,1"`, `partition="gpu"`.
    """
    from doe.results.decision import declare, is_decided
    from doe.running.execute import execute
    from doe.running.scheduler import RunOptions
    from doe.running.until import run_until
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
    study = Path(directory)
    if until_decided:
        declare(study, (), None)
    plan = load_plan(study)
    with open_display(console()) as display:
        if plan.study.stopping is None:
            number, _ = execute(plan, options, engine, asked, display)
        else:
            number, _ = run_until(study, options, engine, asked, display, is_decided)
    return number


def load(directory: Path | str) -> pd.DataFrame:
    """Read a study's results as a table, a row per planned run, in run order.

    Columns: the run (`run_id, run_order, row, replicate, block, seed, config`), the factors' levels
    as given and coded −1/+1 (`<key>_coded`), `state` (done, diverged, failed, running, pending),
    `reason`, `slot`, `host`, `seconds`, then metrics, further metrics and averages. An average is
    the plain mean of its metrics. A missing value is NaN.
    """
    from doe.results.observations import load as load_table

    return load_table(Path(directory))


def analyze(
    directory: Path | str,
    response: str,
    *,
    transform: str | None = None,
    order: int | None = None,
    robust: bool = False,
    alpha: float = 0.05,
) -> Analysis:
    """Analyse one response of a study, as `doe analyze` does; all results are frozen values."""
    from doe.analysis.analyze import analyze as analyze_observations
    from doe.analysis.case import AnalysisOptions
    from doe.results.looks import analysed
    from doe.results.observations import confirming_runs, observations, scan_study, study_runs

    study, scanned = scan_study(Path(directory))
    views = analysed(study, scanned)
    fresh = confirming_runs(study, scanned)
    (observed,) = observations(study, views, study_runs(study, views), [response], fresh)
    options = AnalysisOptions(transform=transform, order=order, robust=robust, alpha=alpha)
    return analyze_observations(observed, options)


def report(
    directory: Path | str, *, out: Path | str | None = None, transform: str | None = None
) -> Path:
    """Write a study's page and tables, as `doe report` does; return the page."""
    from doe.analysis.case import AnalysisOptions
    from doe.results.report import gather
    from doe.views.files import REPORTS, write_report

    gathered = gather(Path(directory), AnalysisOptions(transform=transform, robust=True))
    target = Path(out) if out is not None else REPORTS / Path(directory).name
    return write_report(gathered, target).page
