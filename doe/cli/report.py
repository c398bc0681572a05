"""`doe report`: the page, the tables and the figures of a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doe.cli.options import (
    BlockOption,
    GoalOption,
    LowOption,
    RandomBlocksOption,
    StudyOption,
    TableFactorsOption,
    TableOption,
    TermsOption,
    TransformOption,
    chosen_study,
    one_thread,
    only_with_table,
    split_names,
    table_observations,
)

if TYPE_CHECKING:
    from doe.results.report import Report
    from doe.results.status import Overview


def report(
    study: StudyOption = None,
    table: TableOption = None,
    factors: TableFactorsOption = None,
    low: LowOption = None,
    block: BlockOption = None,
    response: Annotated[
        str | None,
        typer.Option("--response", "-r", help="Responses of the table: a,b [default: all]."),
    ] = None,
    goal: GoalOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Where to write [default: reports/NAME of the study or table]."),
    ] = None,
    transform: TransformOption = None,
    terms: TermsOption = None,
    random_blocks: RandomBlocksOption = False,
    drop: Annotated[
        str | None,
        typer.Option(
            "--drop",
            help="Factors left out of the paper's tables of effects: F or E,F, or '' for none "
            "[default: what [report] in the study file says].",
        ),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            help="Save charts as PDF, SVG and PNG as well: of responses a,b, `averages` or `all`."
        ),
    ] = None,
    serve: Annotated[
        int | None,
        typer.Option(
            "--serve",
            min=0,
            max=65535,
            help="Serve the page on 127.0.0.1 at this port, up to date while the study runs.",
        ),
    ] = None,
) -> None:
    """Write a page with charts and findings, the paper's tables in LaTeX, and figures."""
    one_thread()
    from doe.analysis.case import AnalysisOptions
    from doe.errors import DoeError
    from doe.results.report import report_of
    from doe.results.status import overview
    from doe.results.table_report import table_state

    only_with_table(
        study, table, factors=factors, low=low, block=block, response=response, goal=goal
    )
    options = AnalysisOptions(
        transform=transform,
        terms=None if terms is None else split_names(terms),
        random_blocks=random_blocks,
        robust=True,
    )
    left_out = None if drop is None else split_names(drop)

    def make(state: Overview) -> Report:
        return report_of(state, options, left_out)

    from doe.views.files import REPORTS

    if table is not None:
        if serve is not None:
            raise DoeError("--serve follows a study while it runs; a table has but its page")
        asked = split_names(response) or ("all",)
        observed = table_observations(table, factors, asked, low, block, goal)
        state, name = table_state(table, observed, goal), table.stem
    else:
        directory = chosen_study(study)
        if serve is not None:
            from doe.views.serve import serve_page

            serve_page(directory, make, serve)
            return
        state, name = overview(directory), directory.name
    saved = None if figures is None else _saved(state, figures)
    made = make(state)
    _write(made, out or REPORTS / name, saved)


def _saved(state: Overview, asked: str) -> tuple[str, ...]:
    """Responses whose charts are saved, known before anything is computed."""
    from doe.errors import DoeError, nearest

    answers, names = state.study.responses, split_names(asked)
    known = answers.names
    if names == ("all",):
        return known
    if names == ("averages",):
        return answers.headline
    for name in names:
        if name not in known:
            raise DoeError(
                f"--figures: {name!r} is no response{nearest(name, known)}; "
                f"the responses are {', '.join(known)}"
            )
    return names


def _write(made: Report, out: Path, figures: tuple[str, ...] | None) -> None:
    from rich.text import Text

    from doe.errors import counted
    from doe.views.files import write_figures, write_report
    from doe.views.headlines import headlines
    from doe.views.terminal import console

    written = write_report(made, out)
    screen = console()
    if made.provisional:
        screen.print(Text(f"Provisional: {made.progress}", style="yellow"))
    for name in made.headline_responses:
        screen.print(Text(headlines(made.analyses[name]).effects[0]))
    folder = written.tables[0].parent
    screen.print(Text(f"{counted(len(written.tables) - 2, 'table')} in LaTeX and CSV: {folder}"))
    screen.print(Text(f"Page: {written.page}", style="bold"), soft_wrap=True)
    if figures is not None:
        folder, number, changed = write_figures(made, out, figures)
        screen.print(Text(f"{number} figures, {3 * changed} of them new: {folder}"))
