"""From a study on disk to observations: what `doe analyze` and `doe report` both start from."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from doe.analysis.data import Layout, Observations, observe, study_layout
from doe.analysis.values import FactorLevels
from doe.design.runs import level_text
from doe.results.responses import columns, table_rows
from doe.store.files import StudyDir
from doe.store.plan import load_plan
from doe.store.scan import Seen, scan
from doe.study.values import Study


def load(directory: Path) -> tuple[Study, pd.DataFrame]:
    """Read a planned study and its responses table, in run order."""
    _, study, design = load_plan(directory)
    return study, results_table(study, scan(StudyDir(directory), design.runs))


def results_table(study: Study, views: Sequence[Seen]) -> pd.DataFrame:
    """The responses table of runs that were looked at."""
    return pd.DataFrame(table_rows(study, views), columns=columns(study))


def layout_of(study: Study, frame: pd.DataFrame) -> Layout:
    """Which run had which levels and stood in which block."""
    levels = [FactorLevels(f.key, level_text(f.low), level_text(f.high)) for f in study.factors]
    return study_layout(frame, levels)


def observations(
    study: Study, frame: pd.DataFrame, where: Layout, names: Iterable[str]
) -> list[Observations]:
    """The responses that are named, with the study's units and goal."""
    answers = study.responses
    return [
        observe(frame, where, name, unit=answers.unit_of(name), goal=answers.goal)
        for name in dict.fromkeys(names)
    ]
