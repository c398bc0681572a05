"""Options shared by several commands."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from doe.analysis.scales import choices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from doe.analysis.options import AnalysisOptions
    from doe.analysis.tables import TableOptions
    from doe.store.scan import RunStatus
    from doe.study.values import Study


Completer = Callable[[typer.Context, str], list[str]]


def _silent(offer: Callable[[typer.Context], Iterable[str]]) -> Completer:
    """Complete a word; a study that cannot be read offers nothing."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return [word for word in offer(ctx) if word.startswith(incomplete)]
        except Exception:  # a traceback in the middle of a command line helps nobody
            return []

    return complete


def _named_directory(ctx: typer.Context) -> Path:
    from doe.store.plan import find_study

    path = ctx.params.get("study")
    return find_study(Path(path) if path else None)


def _completed_study(ctx: typer.Context) -> Study:
    from doe.store.files import StudyDir
    from doe.study.file import load_study

    return load_study(StudyDir(_named_directory(ctx)).study)


def _design_column(ctx: typer.Context, name: str) -> list[str]:
    """Return a column of the design, each value once."""
    import csv

    from doe.store.files import StudyDir

    with open(StudyDir(_named_directory(ctx)).design, encoding="utf-8", newline="") as file:
        return list(dict.fromkeys(row[name] for row in csv.DictReader(file)))


def _studies(_ctx: typer.Context) -> list[str]:
    from doe.store.plan import planned_studies

    return [str(path) for path in planned_studies()]


def _presets(_ctx: typer.Context) -> tuple[str, ...]:
    from doe.study.presets import preset_names

    return preset_names()


def _engines(_ctx: typer.Context) -> Iterable[str]:
    from doe.study.values import ENGINES

    return ENGINES


complete_study = _silent(_studies)
complete_preset = _silent(_presets)
complete_run = _silent(lambda ctx: _design_column(ctx, "run_id"))
complete_config = _silent(lambda ctx: _design_column(ctx, "config"))
complete_response = _silent(lambda ctx: (*_completed_study(ctx).responses.names, "all", "further"))
complete_engine = _silent(_engines)


FileArgument = Annotated[
    Path | None, typer.Argument(help="Study file (TOML) [default: study.toml].")
]
PresetOption = Annotated[
    str | None,
    typer.Option(
        "--preset",
        help="A study from an installed package, such as demo.",
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
    typer.Option("--table", help="CSV table of results, instead of a study."),
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
    str | None, typer.Option("--of", help="Number of items behind a share: acc=1000.")
]
EveryTermOption = Annotated[
    bool, typer.Option("--all", help="Every term in LaTeX tables, not only significant ones.")
]
DecimalOption = Annotated[
    str | None,
    typer.Option("--decimal", help="Decimal sign of the table: , or . [default: detected]."),
]
BlockOption = Annotated[
    str | None, typer.Option("--block", help="Column of the table with the block.")
]
WholePlotOption = Annotated[
    str | None,
    typer.Option("--whole-plot", help="Column of whole plots, or hard-to-change factors."),
]
CovariatesOption = Annotated[
    str | None,
    typer.Option("--covariate", help="Columns to adjust for, measured before any factor acts."),
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
    bool, typer.Option("--random-blocks", help="Treat blocks as a random sample (REML).")
]
GoalOption = Annotated[
    str | None,
    typer.Option("--goal", help="Which direction is better in a table: min, or acc=max,time=min."),
]

LISTS = frozenset({"factors", "whole_plot", "covariates", "terms", "drop", "contour"})
"""Options that take several names, separated by commas."""
PAIRS = {
    "low": "KEY=LEVEL, as in lr=0.001",
    "scale": "KEY=SCALE, as in lr=log",
    "of": "RESPONSE=ITEMS, as in acc=1000",
}
"""Options of a table that take pairs, with an example."""
COLUMNS = ("factors", *PAIRS, "block", "whole_plot", "covariates", "goal", "decimal", "ceiling")
"""Options that define the columns of a table."""


def split_names(text: str | None) -> tuple[str, ...]:
    """Split names separated by commas."""
    return tuple(part.strip() for part in (text or "").split(",") if part.strip())


def pairs(text: str | None, option: str, example: str) -> dict[str, str]:
    """Split pairs KEY=VALUE separated by commas."""
    from doe.errors import DoeError

    parts = [part.partition("=") for part in split_names(text)]
    if wrong := [key for key, equals, value in parts if not equals or not value.strip()]:
        raise DoeError(f"{option} {wrong[0]!r} is not a pair; expected {example}")
    return {key.strip(): value.strip() for key, _, value in parts}


def analysis_options(ctx: typer.Context) -> AnalysisOptions:
    """Build the options of an analysis from the command's options."""
    from doe.analysis.options import AnalysisOptions, requested

    told = {name: ctx.params.get(name) for name in AnalysisOptions.__struct_fields__}
    if told["beats"] is not None:
        told["beats"] = (told["beats"],)
    return requested(**{name: _read(name, value) for name, value in told.items()})


def table_options(ctx: typer.Context) -> TableOptions | None:
    """Return the roles of a table's columns; None for a study, which defines its own."""
    from doe.errors import DoeError

    told = {name: value for name in COLUMNS if (value := ctx.params.get(name)) is not None}
    if ctx.params["study"] is not None and ctx.params["table"] is not None:
        raise DoeError("--study and --table cannot be combined; give one of them")
    if ctx.params["table"] is None:
        if told:
            raise DoeError(
                f"--{_option(next(iter(told)))} applies to --table only; a study defines its "
                "factors, blocks, covariates and goal itself"
            )
        return None
    from doe.analysis.tables import TableOptions  # pandas, which a study does not need

    return TableOptions(**{name: _read(name, value) for name, value in told.items()})


def _read(name: str, value: Any) -> Any:
    """Convert the value of an option: names, pairs, or the value as read."""
    if value is not None and name in PAIRS:
        return pairs(value, f"--{name}", PAIRS[name])
    if value is not None and name in LISTS:
        return split_names(value)
    return tuple(value) if isinstance(value, list) else value


def source_words(ctx: typer.Context) -> str:
    """Return the part of a command line that names the data, such as " --table results.csv"."""
    told = ((name, ctx.params.get(name)) for name in ("table", "study", *COLUMNS))
    return "".join(f" --{_option(name)} {shlex.quote(str(v))}" for name, v in told if v)


def _option(name: str) -> str:
    return {"covariates": "covariate"}.get(name, name.replace("_", "-"))


def say(sentence: str) -> None:
    """Report on standard error what was recognised, separate from the answer."""
    typer.echo(sentence, err=True)


def chosen_study(path: Path | None) -> Path:
    """Return the given study, or report and return the one planned last."""
    from doe.store.plan import find_study, planned_studies

    directory = find_study(path)
    if path is None and (number := len(planned_studies())) > 1:
        typer.echo(f"study: {directory}, the last planned of {number}", err=True)
    return directory


def warn_changed(study: Study, statuses: Sequence[RunStatus]) -> None:
    """Warn on standard error that some results are for former settings of the study."""
    from doe.store.requests import changed_warning

    if text := changed_warning(study, statuses):
        typer.echo(f"warning: {text}", err=True)


def one_thread() -> None:
    """Keep linear algebra on one thread: on small matrices more threads only wait.

    The library reads this when it is first imported.
    """
    import os

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
