"""Running a study replicate by replicate until it is decided.

Nothing is kept on disk but the study's own rule: what comes next follows from the verdicts that
are there, so any `doe run` can be killed, and two of them agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from doe.design.changes import confirming
from doe.errors import DoeError
from doe.running.execute import execute
from doe.running.scheduler import Display, RunOptions
from doe.store.files import StudyDir
from doe.store.plan import extend_plan, load_plan
from doe.store.scan import RunState, complete_replicates, counts, scan
from doe.study.values import FIRST_LOOK


def run_until(
    directory: Path,
    options: RunOptions,
    engine: str,
    asked: Mapping[str, Any],
    display: Display,
    decided: Callable[[Path], bool],
) -> tuple[dict[RunState, int], bool]:
    """Run the next replicate as long as the study's rule asks for it.

    Parameters
    ----------
    decided : callable
        Tells of a study's directory whether all is decided by the complete replicates.

    Returns
    -------
    As `execute`: how many runs are in each state, and whether it was let run.
    """
    if options.detach:
        raise DoeError(
            "a study that stops when it is decided needs a scheduler that stays to look; "
            "leave out --detach"
        )
    while True:
        plan = load_plan(directory)
        rule = plan.study.stopping
        if rule is None:
            raise DoeError(f"{directory} declares no rule when to stop; give --until decided")
        statuses = scan(StudyDir(directory), plan.design.runs)
        fresh = confirming(plan.study)
        complete = complete_replicates([s for s in statuses if s.run.replicate not in fresh])
        over = bool(fresh) or complete >= rule.max_replicates or decided(directory)
        among = (*range(1, complete + 1), *fresh)
        if not over:
            among = tuple(range(1, max(FIRST_LOOK, complete + 1) + 1))
            plan = extend_plan(directory, among[-1])
        asked_for = [s.state for s in statuses if s.run.replicate in among]
        again = options.retry_failed and "failed" in asked_for
        if over and not again and not {"pending", "running"} & {*asked_for}:
            return counts(statuses), True
        number, finished = execute(plan, options._replace(among=among), engine, asked, display)
        if over or not finished or options.limit:
            return number, finished
        options = options._replace(retry_failed=False)
        statuses = scan(StudyDir(directory), plan.design.runs)
        if complete_replicates(statuses) <= complete:
            return number, finished  # a run that cannot be read holds the replicate back
