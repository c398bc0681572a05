"""Tables that other tools export, by their own columns: W&B, MLflow, Optuna."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from doe.errors import DoeError

if TYPE_CHECKING:
    import pandas as pd

STATE = "state"
SECONDS = "seconds"
DAYS = re.compile(r"(?:(\d+) days? )?(\d+):(\d+):(\d+(?:\.\d+)?)")
"""How pandas writes a duration: 0 days 00:04:22.368701."""
UNITS = {"ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
"""How the page of MLflow writes one: 1.5min."""


class Export(NamedTuple):
    """What the table of a tool looks like."""

    tool: str
    needs: frozenset[str]
    """Columns by which it is known."""
    parameters: str = ""
    """What begins the columns of parameters; empty where they have their plain names."""
    metrics: str = ""
    further: str = ""
    """What begins columns that are kept if their plain name is free."""
    named: Mapping[str, str] = {}
    """Columns that get another name."""
    dropped: tuple[str, ...] = ()
    """Columns, or beginnings of columns, that are no result."""
    finished: str = ""
    """The state of a run that came to its end."""


EXPORTS = (
    Export(
        "Optuna",
        frozenset({"number", "state", "datetime_start"}),
        parameters="params_",
        further="user_attrs_",
        named={"number": "run_id", "duration": SECONDS},
        dropped=("datetime_", "system_attrs_", "intermediate_values_"),
        finished="COMPLETE",
    ),
    Export(
        "Optuna Dashboard",
        frozenset({"Number", "State"}),
        parameters="Param ",
        further="UserAttribute ",
        named={"Number": "run_id", "State": STATE, "Value": "value"},
        finished="Complete",
    ),
    Export(
        "MLflow",
        frozenset({"run_id", "experiment_id", "status"}),
        parameters="params.",
        metrics="metrics.",
        named={"status": STATE},
        dropped=("tags.", "experiment_id", "artifact_uri", "start_time", "end_time"),
        finished="FINISHED",
    ),
    Export(
        "MLflow",
        frozenset({"Run ID", "Source Type", "Source Name", "Status"}),
        named={"Run ID": "run_id", "Status": STATE, "Duration": SECONDS},
        dropped=("Start Time", "Name", "Source Type", "Source Name", "User", "mlflow."),
        finished="FINISHED",
    ),
    Export(
        "W&B",
        frozenset({"Name", "State", "Created", "Runtime"}),
        named={"ID": "run_id", "State": STATE, "Runtime": SECONDS},
        dropped=("Name", "Notes", "User", "Tags", "Created", "Updated", "Sweep", "Hostname", "_"),
        finished="finished",
    ),
)


def recognised(frame: pd.DataFrame, path: Path, say: Callable[[str], None]) -> pd.DataFrame:
    """A table with plain columns where it is an export that is known; any other as it is.

    Rows of runs that did not come to their end are left out: what they hold is no result.
    """
    if {"summary", "config", "name"} <= set(frame.columns):
        say(f"{path.name} is a table of W&B's interface; its config and summary are its columns")
        return _from_mappings(frame, path)
    export = next((e for e in EXPORTS if e.needs <= set(frame.columns)), None)
    if export is None:
        return frame
    plain = _renamed(frame, export)
    say(f"{path.name} is an export of {export.tool}; its columns are {', '.join(plain.columns)}")
    ended = plain[STATE] == export.finished
    if not ended.all():
        others = Counter(plain[STATE][~ended]).most_common()
        listing = ", ".join(f"{count} {name or 'without a state'}" for name, count in others)
        say(f"{path.name}: rows of runs that did not finish are left out: {listing}")
        if not ended.any():
            raise DoeError(f"{path} holds no run that finished: {listing}")
    if SECONDS in plain:
        plain[SECONDS] = [_seconds(cell) for cell in plain[SECONDS]]
    return plain[ended].assign(**{STATE: "done"}).reset_index(drop=True)


def _renamed(frame: pd.DataFrame, export: Export) -> pd.DataFrame:
    """Columns by their plain names; a name that is taken keeps what it begins with."""
    names: dict[str, str] = {}
    for prefix in (export.parameters, export.metrics, export.further):
        for column in frame.columns:
            plain = column.removeprefix(prefix)
            if prefix and column.startswith(prefix) and plain not in names.values():
                names[column] = plain
    for column in frame.columns:
        if column and column not in names and not column.startswith(export.dropped):
            names[column] = export.named.get(column, column)
    if export.parameters:  # parameters first, as a table reads
        kept = list(names)
    else:
        kept = [column for column in frame.columns if column in names]
    return frame[kept].rename(columns=names)


def _seconds(cell: str) -> str:
    """A duration in seconds, as text; empty where it cannot be read."""
    if match := DAYS.fullmatch(cell):
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return repr(86400 * days + 3600 * hours + 60 * minutes + seconds)
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|min|h|d)?", cell):
        return repr(float(match[1]) * UNITS[match[2] or "s"])
    return ""


def _from_mappings(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    """The table that W&B's documentation makes: a column each of mappings written by Python."""
    import pandas as pd

    rows = []
    for number, row in enumerate(frame.to_dict("records"), start=1):
        cells: dict[str, object] = {}
        for column in ("config", "summary"):
            try:
                mapping = ast.literal_eval(re.sub(r"\bnan\b", "None", str(row[column])))
            except (ValueError, SyntaxError):
                mapping = None
            if not isinstance(mapping, dict):
                raise DoeError(
                    f"{path}: row {number} holds no mapping in its column {column!r}; expected "
                    "what Python prints, as in {'lr': 0.1}"
                )
            cells |= {k: v for k, v in mapping.items() if k not in cells and not k.startswith("_")}
        rows.append(cells)
    plain = pd.DataFrame(rows)
    return plain.map(_text).astype(str)


def _text(value: object) -> str:
    if value is None or (isinstance(value, float) and value != value):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
