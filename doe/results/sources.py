"""What an analysis can start from in Python: a study, a file, a DataFrame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doe.analysis.tables import observe_table
from doe.errors import DoeError
from doe.results.responses import check_response
from doe.results.status import Overview, overview
from doe.results.table_file import Say, read_table
from doe.results.table_report import table_state
from doe.store.files import StudyDir
from doe.store.plan import RUNS, find_study
from doe.study.values import Study

if TYPE_CHECKING:
    import pandas as pd

Source = Any
"""A Study, a directory, a CSV file, or a DataFrame."""


def is_study(source: Source) -> bool:
    """Whether a source is a planned study, by its value, its directory or its file."""
    if isinstance(source, Study):
        return True
    path = Path(source) if isinstance(source, (str, Path)) else None
    return path is not None and (path.is_dir() or StudyDir(path.parent).study == path)


def source_state(
    source: Source,
    responses: Sequence[str],
    say: Say,
    factors: Sequence[str] = (),
    low: Mapping[str, str] | None = None,
    block: str | None = None,
    goal: str | None = None,
) -> tuple[Overview, tuple[str, ...]]:
    """The state of a study or of a table as one, and the responses that are asked for.

    Raises
    ------
    DoeError
        If it is none of these, or an argument does not fit it.
    """
    import pandas as pd

    if isinstance(source, pd.DataFrame):
        frame, path = source.rename(columns=str), Path("DataFrame")
    elif isinstance(source, (Study, str, Path)):
        path = RUNS / source.name if isinstance(source, Study) else Path(source)
        if is_study(source):
            return _study_state(find_study(path), responses, factors, low, block, goal)
        if not path.is_file():
            raise DoeError(
                f"there is neither a study nor a table at {path}; plan a study with doe.plan, or "
                "name a CSV file"
            )
        frame = read_table(path, say)
    else:
        raise DoeError(
            f"got {type(source).__name__}; expected a study's directory, a CSV file or a DataFrame"
        )
    return _table_state(frame, path, responses, factors, low, block, goal)


def _table_state(
    frame: pd.DataFrame,
    path: Path,
    responses: Sequence[str],
    factors: Sequence[str],
    low: Mapping[str, str] | None,
    block: str | None,
    goal: str | None,
) -> tuple[Overview, tuple[str, ...]]:
    if isinstance(factors, str):
        raise DoeError(f"factors={factors!r}: expected a list of columns, as in ['lr', 'augment']")
    observed = observe_table(frame, factors, responses, low, block, goal)
    return table_state(path, observed, goal), tuple(o.response for o in observed)


def _study_state(
    directory: Path, responses: Sequence[str], *of_tables: object
) -> tuple[Overview, tuple[str, ...]]:
    if any(of_tables):
        raise DoeError("factors, low, block and goal belong to a table; a study knows them")
    state = overview(directory)
    names = tuple(responses) or state.study.responses.principal
    for name in names:
        check_response(state.study, name)
    if not state.counts["done"]:
        raise DoeError(f"no run of {directory} is done yet; start it with doe.run")
    return state, names
