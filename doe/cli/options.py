"""Options that several commands share, so that they read alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from doe.cli.complete import complete_preset, complete_study

FileArgument = Annotated[
    Path | None, typer.Argument(help="Study file (TOML) [default: study.toml].")
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="A study that an installed package offers, such as demo.",
        autocompletion=complete_preset,
    ),
]
StudyOption = Annotated[
    Path | None,
    typer.Option(
        "--study",
        help="Study directory [default: the last planned below runs/].",
        autocompletion=complete_study,
    ),
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON document instead.")]
FactorsOption = Annotated[
    int | None, typer.Option("--factors", "-k", min=1, max=16, help="Number of factors A, B, C, …")
]
FractionOption = Annotated[
    str | None,
    typer.Option("--fraction", help="Generators such as F=ABCDE, or a fraction such as 1/4."),
]
OrderOption = Annotated[
    int | None, typer.Option("--order", min=1, help="Highest order of interactions.")
]


def chosen_study(given: Path | None) -> Path:
    """The study that was named, or the one planned last, which is then said."""
    from doe.store.plan import find_study, planned_studies

    directory = find_study(given)
    if given is None and (number := len(planned_studies())) > 1:
        typer.echo(f"study: {directory}, the last planned of {number}", err=True)
    return directory


def one_thread() -> None:
    """Keep linear algebra on one thread: small matrices only make more of them wait.

    The library reads this when it is first imported.
    """
    import os

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
