"""A table of results as a study without a directory, so that any CSV has a page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from doe.analysis.data import Observations
from doe.design.runs import Run, row_label
from doe.errors import DoeError
from doe.results.status import Overview
from doe.store.scan import RunStatus, counts
from doe.store.verdicts import Result
from doe.study.values import Factor, Responses, Study

TABLE = "table"
"""The backend of such a study: nothing executes it."""
BLOCK_SETTING = "block"
"""Its one setting: the column that names the block."""


def table_state(path: Path, observed: Sequence[Observations], goal: str | None) -> Overview:
    """The rows of a table as runs that are done, with their responses."""
    runs = observed[0].runs
    limited = next((o.response for o in observed if o.censored), None)
    if limited is not None:
        raise DoeError(
            f"{limited} holds limits such as >50, of which there is no page; leave it out, or "
            "analyse it with `doe analyze --table`"
        )
    factors = tuple(Factor(f.key, (f.low, f.high), f.name) for f in runs.factors)
    answers = Responses(tuple(o.response for o in observed), goal="max" if goal == "max" else "min")
    cells = [int(cell) for cell in runs.cells]
    study = Study(
        *(path.stem, TABLE, factors, answers),
        replicates=max(Counter(cells).values()),
        settings={BLOCK_SETTING: runs.block_name or ""},
    )
    statuses = []
    replicates: Counter[int] = Counter()
    for i, (run_id, cell) in enumerate(zip(runs.run_ids, cells, strict=True)):
        replicates[cell] += 1
        coded = tuple(int(x) for x in runs.coded[i])
        run = Run(
            run_id=run_id,
            run_order=runs.run_order[i] if runs.run_order else i + 1,
            row=cell,
            replicate=replicates[cell],
            block=1 if runs.block is None else int(runs.block[i]) + 1,
            seed=0,
            config=row_label(factors, cell),
            levels={f.key: f.high if x > 0 else f.low for f, x in zip(factors, coded, strict=True)},
            coded=coded,
        )
        values = {o.response: _value(float(o.y[i])) for o in observed}
        statuses.append(RunStatus(run, "done", Result("done", values)))
    return Overview(
        study=study,
        directory=path,
        counts=counts(statuses),
        failures={},
        again={},
        running=[],
        left=None,
        balance=dict(sorted(Counter(replicates.values()).items())),
        missing=[],
        warnings=[*runs.notes, *(() if goal else ("no goal was given: smaller is better",))],
        statuses=statuses,
    )


def _value(value: float) -> float | None:
    return value if math.isfinite(value) else None
