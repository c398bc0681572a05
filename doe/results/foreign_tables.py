"""Tables that other tools export, by their own columns: W&B, MLflow, Optuna."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
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
    """Layout of the table that a tool exports."""

    tool: str
    needs: frozenset[str]
    """Columns by which it is known, beside those of its parameters."""
    state: str
    """The column that says how a run ended."""
    finished: str
    """What stands there for a run that came to its end, in capitals or not."""
    parameters: str = ""
    """What begins the columns of parameters; empty where they have their plain names."""
    metrics: str = ""
    further: str = ""
    """What begins columns that are kept if their plain name is free."""
    named: Mapping[str, str] = {}
    """Columns that get another name."""
    dropped: frozenset[str] = frozenset()
    """Columns that are not results."""
    hidden: tuple[str, ...] = ()
    """Prefixes of further columns that are not results."""
    guarded: bool = False
    """Whether a quote stands before cells that a spreadsheet would take for formulas: '-0.5."""


EXPORTS = (
    Export(
        "Optuna",
        frozenset({"number", "state"}),
        state="state",
        finished="complete",
        parameters="params_",
        metrics="values_",
        further="user_attrs_",
        named={"number": "run_id", "duration": SECONDS},
        dropped=frozenset({"datetime_start", "datetime_complete"}),
        hidden=("system_attrs_", "intermediate_values_"),
    ),
    Export(
        "Optuna Dashboard",
        frozenset({"Number", "State"}),
        state="State",
        finished="complete",
        parameters="Param ",
        further="UserAttribute ",
        named={"Number": "run_id", "Value": "value"},
    ),
    Export(
        "MLflow",
        frozenset({"run_id", "experiment_id", "status"}),
        state="status",
        finished="finished",
        parameters="params.",
        metrics="metrics.",
        dropped=frozenset({"experiment_id", "artifact_uri", "start_time", "end_time"}),
        hidden=("tags.",),
    ),
    Export(
        "MLflow",
        frozenset({"Run ID", "Source Type", "Source Name", "Status"}),
        state="Status",
        finished="finished",
        named={"Run ID": "run_id", "Duration": SECONDS},
        dropped=frozenset({"Start Time", "Name", "Source Type", "Source Name", "User"}),
        hidden=("mlflow.",),
        guarded=True,
    ),
    Export(
        "W&B",
        frozenset({"Name", "Created", "Runtime"}),
        state="State",
        finished="finished",
        named={"ID": "run_id", "Runtime": SECONDS},
        dropped=frozenset(
            {"Name", "Notes", "User", "Tags", "Created", "Updated", "End Time", "Sweep", "Hostname"}
        ),
        hidden=("_",),
    ),
)
PYTHON = Export(
    "W&B's interface", frozenset({"config", "summary"}), state="state", finished="finished"
)
"""The table that W&B's documentation makes: a column each of mappings written by Python."""


def recognised(frame: pd.DataFrame, path: Path, say: Callable[[str], None]) -> pd.DataFrame:
    """Return a table with plain columns where it is an export that is known; any other as it is.

    Rows of unfinished runs are left out: their values are not results.
    """
    export = next((e for e in (PYTHON, *EXPORTS) if _is(frame, e)), None)
    if export is None:
        _refuse_curves(frame, path)
        return frame
    plain = _from_mappings(frame, path) if export is PYTHON else _renamed(frame, export)
    say(f"{path.name} is an export of {export.tool}; its columns are {', '.join(plain.columns)}")
    if SECONDS in plain:
        plain[SECONDS] = [_seconds(cell) for cell in plain[SECONDS]]
    if STATE not in plain:
        say(f"{path.name} has no column {export.state}; every row is taken as a run that finished")
        return plain
    ended = plain[STATE].str.lower() == export.finished
    if not ended.all():
        others = Counter(plain[STATE][~ended]).most_common()
        listing = ", ".join(f"{count} {name or 'without a state'}" for name, count in others)
        say(f"{path.name}: rows of runs that did not finish are left out: {listing}")
        if not ended.any():
            raise DoeError(f"{path} holds no run that finished: {listing}")
    return plain[ended].assign(**{STATE: "done"}).reset_index(drop=True)


def _is(frame: pd.DataFrame, export: Export) -> bool:
    there = export.needs <= set(frame.columns)
    return there and any(column.startswith(export.parameters) for column in frame.columns)


def _refuse_curves(frame: pd.DataFrame, path: Path) -> None:
    """A chart of W&B is downloaded under the same name as the table of runs."""
    curves = [c for c in frame.columns if {f"{c}__MIN", f"{c}__MAX"} <= set(frame.columns)]
    if curves:
        raise DoeError(
            f"{path} is the download of a chart of W&B, with a row for each step of "
            f"{curves[0]!r}; expected a row for each run: download the table of runs instead"
        )


def _renamed(frame: pd.DataFrame, export: Export) -> pd.DataFrame:
    """Columns by their plain names; a name that is taken, or a number, keeps its beginning."""
    names: dict[str, str] = {}
    for prefix in (export.parameters, export.metrics, export.further):
        for column in frame.columns:
            plain = column.removeprefix(prefix)
            taken = plain in names.values() or plain.isdecimal()
            if prefix and column.startswith(prefix) and not taken:
                names[column] = plain
    unwanted = {*export.dropped, *names, ""}  # pandas writes its index under an empty name
    for column in frame.columns:
        if column not in unwanted and not column.startswith(export.hidden):
            names[column] = {**export.named, export.state: STATE}.get(column, column)
    if export.parameters:  # parameters first, as a table reads
        kept = list(names)
    else:
        kept = [column for column in frame.columns if column in names]
    plain_frame = frame[kept].rename(columns=names)
    if export.guarded:
        return plain_frame.replace(r"^'(?=[=+\-@])", "", regex=True)
    return plain_frame


def _seconds(cell: str) -> str:
    """Return a duration in seconds, as text; empty where it cannot be read."""
    if match := DAYS.fullmatch(cell):
        days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
        return repr(86400 * days + 3600 * hours + 60 * minutes + seconds)
    if match := re.fullmatch(r"(\d+(?:\.\d+)?)(ms|s|min|h|d)?", cell):
        return repr(float(match[1]) * UNITS[match[2] or "s"])
    return ""


# Mappings that Python wrote ----------------------------------------------------------------------


class _Numbers(ast.NodeTransformer):
    """nan and inf, which Python prints and does not read."""

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return ast.Constant(float(node.id)) if node.id in ("nan", "inf") else node


def _from_mappings(frame: pd.DataFrame, path: Path) -> pd.DataFrame:
    import pandas as pd

    rows = []
    for number, row in enumerate(frame.to_dict("records"), start=1):
        cells = {name: str(row[name]) for name in (STATE,) if name in row}
        cells |= {"run_id": str(row["id"])} if "id" in row else {}
        for column in ("config", "summary"):
            mapping = _mapping(str(row[column]))
            if mapping is None:
                raise DoeError(
                    f"{path}: row {number} holds no mapping in its column {column!r}; expected "
                    "what Python prints, as in {'lr': 0.1}"
                )
            cells |= {key: _text(mapping[key]) for key in mapping if key not in cells}
        rows.append(cells)
    return pd.DataFrame(rows).fillna("").astype(str)


def _mapping(text: str) -> dict[str, object] | None:
    try:
        value = ast.literal_eval(_Numbers().visit(ast.parse(text, mode="eval")))
    except (ValueError, SyntaxError):
        return None
    return dict(_flat(value)) if isinstance(value, dict) else None


def _flat(mapping: Mapping[object, object], prefix: str = "") -> Iterator[tuple[str, object]]:
    """Nested keys with dots, as in W&B's own table; keys with an underscore first are its own."""
    for key, value in mapping.items():
        if str(key).startswith("_"):
            continue
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value


def _text(value: object) -> str:
    if value is None:
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)
