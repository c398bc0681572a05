"""Options that several commands share, so that they read alike everywhere."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doe.analysis.scales import choices
from doe.cli.complete import complete_preset, complete_study

if TYPE_CHECKING:
    from collections.abc import Sequence

    from doe.analysis.tables import TableOptions
    from doe.store.scan import RunStatus
    from doe.study.values import Study

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
TableOption = Annotated[
    Path | None,
    typer.Option("--table", help="CSV table of results instead of a study."),
]
TableFactorsOption = Annotated[
    str | None, typer.Option("--factors", help="Factor columns of the table: A,B or lr,aug.")
]
LowOption = Annotated[
    str | None, typer.Option("--low", help="Low levels of the table: lr=0.001,opt=sgd.")
]
ScaleOption = Annotated[
    str | None, typer.Option("--scale", help="Scales of the table's columns: lr=log,acc=logit.")
]
OfOption = Annotated[
    str | None, typer.Option("--of", help="Items of which a column is the share: acc=1000.")
]
EveryTermOption = Annotated[
    bool, typer.Option("--all", help="Every term in LaTeX tables, not the significant ones alone.")
]
DecimalOption = Annotated[
    str | None,
    typer.Option("--decimal", help="What is decimal in the table: , or . [default: by its cells]."),
]
BlockOption = Annotated[
    str | None, typer.Option("--block", help="Column of the table that names the block.")
]
WholePlotOption = Annotated[
    str | None,
    typer.Option("--whole-plot", help="Column of whole plots, or factors that are hard to change."),
]
TermsOption = Annotated[
    str | None,
    typer.Option("--terms", help="The model's terms: lr,lr^2,lr:opt; or linear, quadratic."),
]
TransformOption = Annotated[
    str | None,
    typer.Option(
        "--transform", help=f"{', '.join(choices())} [default: the response's own scale]."
    ),
]
RandomBlocksOption = Annotated[
    bool, typer.Option("--random-blocks", help="Add tests with blocks drawn from many.")
]
GoalOption = Annotated[
    str | None,
    typer.Option("--goal", help="Which way is better in a table: min, or acc=max,time=min."),
]


def split_names(text: str | None) -> tuple[str, ...]:
    """Names that are separated by commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def pairs(text: str | None, option: str, example: str) -> dict[str, str]:
    """Pairs KEY=VALUE that are separated by commas."""
    from doe.errors import DoeError

    parts = [part.partition("=") for part in split_names(text)]
    if wrong := [key for key, equals, value in parts if not equals or not value.strip()]:
        raise DoeError(f"{option} {wrong[0]!r} is no pair; expected {example}")
    return {key.strip(): value.strip() for key, _, value in parts}


def only_with_table(study: Path | None, table: Path | None, **table_options: object) -> None:
    """Refuse options of a table beside a study, and both at once."""
    from doe.errors import DoeError

    if study is not None and table is not None:
        raise DoeError("--study and --table exclude each other; give one of them")
    wrong = [name for name, value in table_options.items() if value is not None]
    if table is None and wrong:
        raise DoeError(
            f"--{wrong[0]} belongs to --table; a study knows its factors, blocks and goal"
        )


def table_options(
    table: Path | None,
    factors: str | None,
    low: str | None,
    scale: str | None,
    block: str | None,
    goal: str | None,
    ceiling: float | None = None,
    decimal: str | None = None,
    of: str | None = None,
    whole_plot: str | None = None,
) -> TableOptions | None:
    """What the columns of a table are; None without a table."""
    if table is None:
        return None
    from doe.analysis.tables import TableOptions  # pandas, which a study does without

    return TableOptions(
        factors=split_names(factors),
        low=pairs(low, "--low", "KEY=LEVEL, as in lr=0.001"),
        scale=pairs(scale, "--scale", "KEY=SCALE, as in lr=log"),
        of=pairs(of, "--of", "RESPONSE=ITEMS, as in acc=1000"),
        block=block,
        whole_plot=split_names(whole_plot),
        goal=goal,
        ceiling=ceiling,
        decimal=decimal,
    )


def say(sentence: str) -> None:
    """Tell what was recognised, beside the answer and not in it."""
    typer.echo(sentence, err=True)


def chosen_study(path: Path | None) -> Path:
    """The study that was named, or the one planned last, which is then said."""
    from doe.store.plan import find_study, planned_studies

    directory = find_study(path)
    if path is None and (number := len(planned_studies())) > 1:
        typer.echo(f"study: {directory}, the last planned of {number}", err=True)
    return directory


def warn_changed(study: Study, statuses: Sequence[RunStatus]) -> None:
    """Say on standard error that results answer another request than the study makes now."""
    from doe.store.requests import changed_warning

    if text := changed_warning(study, statuses):
        typer.echo(f"warning: {text}", err=True)


def one_thread() -> None:
    """Keep linear algebra on one thread: small matrices only make more of them wait.

    The library reads this when it is first imported.
    """
    import os

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
