"""`doe report`: the page, the tables and the figures of a study."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doe.cli.options import (
    BlockOption,
    CovariatesOption,
    DecimalOption,
    EveryTermOption,
    GoalOption,
    LowOption,
    OfOption,
    RandomBlocksOption,
    ScaleOption,
    StudyOption,
    TableFactorsOption,
    TableOption,
    TermsOption,
    TransformOption,
    WholePlotOption,
    analysis_options,
    chosen_study,
    one_thread,
    say,
    split_names,
    table_options,
)

if TYPE_CHECKING:
    from doe.results.report import Report
    from doe.results.status import Overview


def report(
    ctx: typer.Context,
    study: StudyOption = None,
    table: TableOption = None,
    factors: TableFactorsOption = None,
    low: LowOption = None,
    scale: ScaleOption = None,
    of: OfOption = None,
    block: BlockOption = None,
    whole_plot: WholePlotOption = None,
    covariates: CovariatesOption = None,
    decimal: DecimalOption = None,
    responses: Annotated[
        str | None,
        typer.Option("--response", "-r", help="Responses of the table: a,b [default: all]."),
    ] = None,
    goal: GoalOption = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Output directory [default: reports/NAME of the study or table]."),
    ] = None,
    transform: TransformOption = None,
    terms: TermsOption = None,
    random_blocks: RandomBlocksOption = False,
    drop: Annotated[
        str | None,
        typer.Option(
            "--drop",
            help="Factors omitted from the paper's tables of effects: F or E,F, or '' for none "
            "[default: [report] in the study file].",
        ),
    ] = None,
    figures: Annotated[
        str | None,
        typer.Option(
            help="Save charts as PDF, SVG and PNG as well: of responses a,b, `averages` or `all`."
        ),
    ] = None,
    contour: Annotated[
        str | None,
        typer.Option(help="Two factors of a surface, for the first contour map: lr,width."),
    ] = None,
    every_term: EveryTermOption = False,
    serve: Annotated[
        int | None,
        typer.Option(
            "--serve",
            min=0,
            max=65535,
            help="Serve the page on 127.0.0.1 at this port and update it while the study runs.",
        ),
    ] = None,
) -> None:
    """Write a page with charts and findings, the paper's tables in LaTeX, and figures."""
    one_thread()
    from msgspec import structs

    from doe.errors import DoeError
    from doe.results.report import report_of
    from doe.results.sources import page_source, study_page
    from doe.views.files import REPORTS, figure_responses

    of_table = table_options(ctx)
    if table is None and responses is not None:
        raise DoeError("--response applies to --table; the page of a study shows all its responses")
    options = structs.replace(analysis_options(ctx), robust=True, drop=())
    left_out = None if drop is None else split_names(drop)
    if serve is not None:
        if table is not None:
            raise DoeError(
                "--serve updates the page of a running study; with --table, open the written page"
            )
        from doe.views.serve import serve_page

        def make(state: Overview, first: bool) -> Report:
            return report_of(study_page(state), options, left_out, in_short=first)

        serve_page(chosen_study(study), make, serve)
        return
    source = table or chosen_study(study)
    subject = page_source(source, split_names(responses), of_table, say)
    drawn = None if figures is None else figure_responses(subject.responses, split_names(figures))
    report = report_of(subject, options, left_out)
    _write(report, out or REPORTS / source.stem, drawn, every_term)


def _write(report: Report, out: Path, figures: tuple[str, ...] | None, every: bool) -> None:
    from rich.text import Text

    from doe.errors import counted
    from doe.views.files import FIGURES, write_figures, write_report
    from doe.views.headlines import headlines
    from doe.views.terminal import console

    written = write_report(report, out, every)
    screen = console()
    if report.provisional:
        screen.print(Text(f"Provisional: {report.progress}", style="yellow"))
    for name in report.headline_responses:
        screen.print(Text(headlines(report.analyses[name]).effects[0]))
    folder = written.tables[0].parent
    screen.print(Text(f"{counted(len(written.tables), 'table')} in LaTeX and CSV: {folder}"))
    screen.print(Text(f"Page: {written.page}", style="bold"), soft_wrap=True)
    if figures is not None:
        drawings, changed = write_figures(report, out, figures)
        numbers = f"{len(drawings)} figures, {len(changed)} of them changed"
        screen.print(Text(f"{numbers}: {out / FIGURES}"))
