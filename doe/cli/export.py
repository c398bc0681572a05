"""`doe export`: every run with its factors, state, times and metrics, as CSV or Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doe.cli.options import StudyOption, chosen_study, warn_changed


def export(
    study: StudyOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="File to write, *.csv or *.parquet [default: standard output, CSV]."),
    ] = None,
    spreadsheet: Annotated[
        bool,
        typer.Option("--spreadsheet", help="Put ' before texts that begin with =, +, - or @."),
    ] = False,
) -> None:
    """Write the table of all runs: factors, state, times, metrics."""
    import sys

    from doe.errors import DoeError, counted
    from doe.results.dataset import scan_study
    from doe.results.responses import table_csv
    from doe.store.files import write_atomic

    directory = chosen_study(study)
    planned, statuses = scan_study(directory)
    warn_changed(planned, statuses)
    if out is not None and out.suffix == ".parquet":
        _write_parquet(directory, out)
    elif out is None or out.suffix == ".csv":
        text, formulas = _quoted_formulas(table_csv(planned, statuses))
        if formulas and not spreadsheet:
            typer.echo(
                f"warning: {counted(formulas, 'cell')} that a spreadsheet would read as a formula "
                "(it begins with =, +, - or @); --spreadsheet puts a ' before each",
                err=True,
            )
        text = text if spreadsheet else table_csv(planned, statuses)
        if out is None:
            sys.stdout.write(text)
            return
        write_atomic(out, text)
    else:
        raise DoeError(f"--out {out}: expected a name that ends in .csv or .parquet")
    typer.echo(f"Wrote {out}")


def _quoted_formulas(text: str) -> tuple[str, int]:
    """Put ' before each cell that a spreadsheet would compute; return the CSV and their number."""
    import csv
    import io

    written, number = io.StringIO(newline=""), 0
    writer = csv.writer(written, lineterminator="\n")
    for row in csv.reader(io.StringIO(text, newline="")):
        formulas = [cell[:1] in FORMULA and not _is_number(cell) for cell in row]
        number += sum(formulas)
        writer.writerow(
            [f"'{cell}" if formula else cell for cell, formula in zip(row, formulas, strict=True)]
        )
    return written.getvalue(), number


FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""First characters of a cell that a spreadsheet computes."""


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True


def _write_parquet(directory: Path, out: Path) -> None:
    from doe.errors import DoeError
    from doe.results.dataset import load

    try:
        load(directory).to_parquet(out, index=False)
    except ImportError:
        raise DoeError(
            "writing Parquet needs pip install 'pit-doe[parquet]'; CSV needs nothing"
        ) from None
    except OSError as error:
        raise DoeError(f"cannot write {out}: {error.strerror or error}") from None
