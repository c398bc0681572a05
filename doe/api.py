"""A study from a notebook: plan, run, load, analyse.

>>> from doe.api import analyze, load, plan, run
>>> study = plan(preset="demo")          # doctest: +SKIP
>>> run(study, cpu=2)                    # doctest: +SKIP
>>> table = load(study)                  # doctest: +SKIP
>>> result = analyze(study, "dec_avg")   # doctest: +SKIP
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from doe.responses import load

if TYPE_CHECKING:
    from doe.analysis.analyze import Analysis
    from doe.scan import RunState
    from doe.study import Study

__all__ = ["analyze", "load", "plan", "run"]


def plan(
    study: Study | Path | str | None = None,
    *,
    preset: str | None = None,
    replicates: int | None = None,
    fraction: str | None = None,
    out: Path | str | None = None,
) -> Path:
    """Plan a study (a value, or a TOML file; by default the PIT study) and return its directory.

    Planning the same study again changes nothing.
    """
    from doe.plan import RUNS, asked_study, write_plan

    given = Path(study) if isinstance(study, str) else study
    asked = asked_study(given, preset, replicates, fraction)
    directory = Path(out) if out is not None else RUNS / asked.name
    write_plan(asked, directory)
    return directory


def run(
    directory: Path | str,
    *,
    cpu: int | None = None,
    gpus: str = "",
    per_gpu: int = 1,
    engine: str = "local",
    retries: int = 2,
    retry_errors: bool = False,
    retry_failed: bool = False,
    timeout: float = 0.0,
    limit: int = 0,
) -> dict[RunState, int]:
    """Run what is not yet done, as `doe run` does; return how many runs are in each state."""
    from doe.attempts import Policy
    from doe.engines import Resources
    from doe.execute import execute
    from doe.plan import load_plan
    from doe.ready import Options
    from doe.views.terminal import console

    options = Options(
        policy=Policy(retries, retry_errors),
        timeout=timeout,
        limit=limit,
        retry_failed=retry_failed,
    )
    planned = load_plan(Path(directory))
    resources = Resources(gpus=gpus, per_gpu=per_gpu, cpu=cpu)
    number, _ = execute(planned, options, engine, resources, console())
    return number


def analyze(
    directory: Path | str,
    response: str,
    *,
    transform: str = "none",
    order: int | None = None,
    robust: bool = False,
    alpha: float = 0.05,
) -> Analysis:
    """Analyse one response of a study, as `doe analyze` does; all results are frozen values."""
    from doe.analysis.analyze import analyze as analyze_one
    from doe.analysis.case import AnalysisOptions
    from doe.plan import load_plan
    from doe.results import observations, study_runs
    from doe.scan import scan
    from doe.store import StudyDir

    _, study, design = load_plan(Path(directory))
    views = scan(StudyDir(Path(directory)), design.runs)
    (observed,) = observations(study, views, study_runs(study, views), [response])
    options = AnalysisOptions(transform=transform, order=order, robust=robust, alpha=alpha)
    return analyze_one(observed, options)
