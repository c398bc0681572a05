"""Sources of an analysis: a study, a file, a DataFrame."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from doe.errors import DoeError
from doe.results.responses import check_response
from doe.results.status import Overview, overview
from doe.results.subject import Subject, report_responses, study_subject, table_subject
from doe.results.table_file import Say, read_table
from doe.store.files import StudyDir
from doe.store.plan import RUNS, find_study
from doe.store.requests import changed_warning
from doe.study.values import Study

if TYPE_CHECKING:
    import pandas as pd

    from doe.analysis.tables import TableOptions

Source = Any
"""A Study, a directory, a CSV file, or a DataFrame."""


def is_study(source: Source) -> bool:
    """Return whether a source is a planned study, by its value, its directory or its file."""
    if isinstance(source, Study):
        return True
    path = Path(source) if isinstance(source, (str, Path)) else None
    return path is not None and (path.is_dir() or StudyDir(path.parent).study == path)


def read_source(
    source: Source, responses: Sequence[str], table: TableOptions | None, say: Say
) -> Subject:
    """Read a study or a table with the responses that are named, by name or as a group.

    Parameters
    ----------
    source
        A Study, a directory, a CSV file, or a DataFrame.
    responses
        Names, "all" or "further"; of none those of a study that come first, or the only one of a
        table.
    table
        What the columns of a table are; None where nothing was said of it.

    Raises
    ------
    DoeError
        If it is something else, or an argument does not fit it.
    """
    if isinstance(source, (Study, str, Path)):
        path = RUNS / source.name if isinstance(source, Study) else Path(source)
        if is_study(source) and not (path.is_file() and table is not None):
            if table is not None:
                raise DoeError(
                    "factors, low, scale, of, block, goal and ceiling belong to a table; a study "
                    "defines them"
                )
            return read_study(find_study(path), responses, say)
        if table is None and not path.is_file():
            raise DoeError(
                f"there is neither a study nor a table at {path}; plan a study with doe.plan, or "
                "name a CSV file"
            )
        frame = read_table(path, say, None if table is None else table.decimal)
        return _read_table(frame, path, responses, table)
    import pandas as pd

    if not isinstance(source, pd.DataFrame):
        raise DoeError(
            f"got {type(source).__name__}; expected a study's directory, a CSV file or a DataFrame"
        )
    frame = source.rename(columns=str).reset_index(drop=True)
    return _read_table(frame, Path("DataFrame"), responses, table)


def _read_table(
    frame: pd.DataFrame, path: Path, responses: Sequence[str], table: TableOptions | None
) -> Subject:
    from doe.analysis.tables import NO_OPTIONS, table_datasets

    options = table or NO_OPTIONS
    return table_subject(path, table_datasets(frame, options, responses), options)


def read_study(directory: Path, responses: Sequence[str], say: Say) -> Subject:
    """Read a planned study with the responses that are named, by name or as a group.

    Raises
    ------
    DoeError
        If it has no such response, or no run is done.
    """
    state = overview(directory)
    known = state.study.responses
    groups = {"all": (*known.metrics, *known.averages), "further": known.further}
    names = [n for part in responses for n in groups.get(part, (part,))]
    for name in names:
        check_response(state.study, name)
    if not state.counts["done"]:
        raise DoeError(f"no run of {directory} is done yet; start it with doe run")
    if text := changed_warning(state.study, state.statuses):
        say(f"warning: {text}")
    return study_subject(state, tuple(dict.fromkeys(names)) or known.principal)


def page_source(
    source: Source, responses: Sequence[str], table: TableOptions | None, say: Say
) -> Subject:
    """Read what a page shows: a study with all its responses, or a table with those named.

    Raises
    ------
    DoeError
        As `read_source`, if responses of a study are named, or if a response has limits.
    """
    if is_study(source):
        if responses:
            raise DoeError("responses belong to a table; the page of a study has all of them")
        if table is None:
            path = RUNS / source.name if isinstance(source, Study) else Path(source)
            return study_page(overview(find_study(path)))
    subject = read_source(source, tuple(responses) or ("all",), table, say)
    if limited := [name for name, data in subject.data.items() if data.censored]:
        raise DoeError(
            f"{limited[0]} holds limits such as >50, which the page cannot show; leave it "
            "out, or use `doe analyze` for it"
        )
    return subject


def study_page(state: Overview) -> Subject:
    """Return a study as its page shows it: with all responses, as far as it has run."""
    return study_subject(state, report_responses(state.study.responses))
