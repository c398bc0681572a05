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
) -> None:
    """Write the table of all runs: factors, state, times, metrics."""
    from doe.errors import DoeError
    from doe.results.dataset import scan_study
    from doe.results.responses import table_csv
    from doe.store.files import write_atomic

    directory = chosen_study(study)
    planned, statuses = scan_study(directory)
    warn_changed(planned, statuses)
    if out is None:
        typer.echo(table_csv(planned, statuses), nl=False)
        return
    if out.suffix == ".parquet":
        _write_parquet(directory, out)
    elif out.suffix == ".csv":
        write_atomic(out, table_csv(planned, statuses))
    else:
        raise DoeError(f"--out {out}: expected a name that ends in .csv or .parquet")
    typer.echo(f"Wrote {out}")


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
