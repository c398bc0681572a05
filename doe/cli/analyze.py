"""`doe analyze`: from results to effects, tests and advice."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from doe.cli.options import (
    BlockOption,
    CovariatesOption,
    DecimalOption,
    EveryTermOption,
    GoalOption,
    JsonOption,
    LowOption,
    OfOption,
    OrderOption,
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
    complete_response,
    one_thread,
    say,
    source_words,
    split_names,
    table_options,
)

if TYPE_CHECKING:
    from doe.analysis.options import AnalysisOptions
    from doe.results.report import Answers
    from doe.views.table import Table

TOP, SHORT = 20, 8
"""Rows of a ranked table, short and full."""


def analyze(
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
    response: Annotated[
        list[str] | None,
        typer.Option(
            "--response",
            "-r",
            help="Response, several (a,b), `all`, or `further` metrics.",
            autocompletion=complete_response,
        ),
    ] = None,
    goal: GoalOption = None,
    transform: TransformOption = None,
    order: OrderOption = None,
    terms: TermsOption = None,
    random_blocks: RandomBlocksOption = False,
    drop: Annotated[
        str | None, typer.Option("--drop", help="Factors whose terms are hidden: F or E,F.")
    ] = None,
    ceiling: Annotated[
        float | None,
        typer.Option("--ceiling", help="Largest possible value, for tables with cells like >50."),
    ] = None,
    robust: Annotated[
        bool, typer.Option("--robust", help="Add permutation, wild bootstrap, trimmed contrasts.")
    ] = False,
    permutations: Annotated[
        int | None,
        typer.Option("--permutations", min=99, help="Permutations; implies --robust [10000]."),
    ] = None,
    error: Annotated[
        str,
        typer.Option("--error", help="Test against pure error if runs repeat, or residual."),
    ] = "pure",
    alpha: Annotated[float, typer.Option("--alpha", help="Level of tests and intervals.")] = 0.05,
    beats: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--beats",
            metavar="X Y",
            help="Probability that X beats Y with a new seed; also: best, runner-up, baseline.",
        ),
    ] = None,
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Next step: optimum, or path of steepest ascent.")
    ] = False,
    coding: Annotated[
        str, typer.Option("--coding", help="One coded unit: factorial points, or the range.")
    ] = "factorial",
    constraints: Annotated[
        list[str] | None,
        typer.Option("--constraint", help="Limit that the best has to meet: 'seconds <= 60'."),
    ] = None,
    desires: Annotated[
        list[str] | None,
        typer.Option("--desire", help="Desirability 0..target[:weight]: seconds=60..10:2."),
    ] = None,
    equivalence: Annotated[
        bool, typer.Option("--equivalence", help="Test which effects lie within what matters.")
    ] = False,
    matters: Annotated[
        float | None,
        typer.Option(help="With --equivalence: smallest effect that matters [from the study]."),
    ] = None,
    brief: Annotated[
        bool, typer.Option("--brief", help="Print the summary sentences only.")
    ] = False,
    full: Annotated[bool, typer.Option("--full", help="Print every table.")] = False,
    json: JsonOption = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX tables instead.")] = False,
    every: EveryTermOption = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV tables instead.")] = False,
    plot: Annotated[
        bool, typer.Option("--plot", help="Draw a half-normal plot of the effects as well.")
    ] = False,
) -> None:
    """Analyse the responses of a study, or of any table of results."""
    one_thread()
    from doe.errors import DoeError
    from doe.results.report import answers_of
    from doe.results.sources import read_source

    forms = {"json": json, "latex": latex, "csv": csv, "plot": plot, "brief": brief, "full": full}
    if sum(forms.values()) > 1:
        raise DoeError(
            "--json, --latex, --csv, --plot, --brief and --full cannot be combined; give one of "
            "them"
        )
    options, of_table = analysis_options(ctx), table_options(ctx)
    names = tuple(name for part in response or () for name in split_names(part))
    subject = read_source(table or chosen_study(study), names, of_table, say)
    form = next((name for name, chosen in forms.items() if chosen), "")
    if every and form != "latex":
        raise DoeError("--all applies to LaTeX tables; add --latex")
    answers = answers_of(subject, options)
    if len(answers.refused) == len(subject.data):
        raise DoeError(next(iter(answers.refused.values())))
    for reason in answers.refused.values():
        typer.echo(f"omitted: {reason}", err=True)
    if form == "json":
        _print_json(answers, list(subject.data))
    elif form in ("latex", "csv"):
        _print_tables(answers, options, form, every)
    else:
        _show(answers, form, f"doe analyze{source_words(ctx)}", optimize)


def _print_json(answers: Answers, names: list[str]) -> None:
    from doe.views.json import bounds_to_plain, to_plain
    from doe.views.terminal import print_json

    family = answers.effects_by_response if len(answers.analyses) > 1 else None
    plain = {name: to_plain(a, family, answers.trade_off) for name, a in answers.analyses.items()}
    plain |= {name: bounds_to_plain(bounds) for name, bounds in answers.bounds.items()}
    documents = [plain[name] for name in names if name in plain]
    print_json(documents[0] if len(documents) == 1 else documents)


def _print_tables(answers: Answers, options: AnalysisOptions, form: str, every: bool) -> None:
    from doe.views import csv, latex
    from doe.views.table import significant_rows
    from doe.views.tables import paper_tables, screen_tables
    from doe.views.tables.surface import surface_tables

    made = partial(screen_tables, complete=True) if form == "csv" else paper_tables
    tables = _common_tables(answers)
    for analysis in answers.analyses.values():
        tables += surface_tables(analysis) if options.optimize else made(analysis)
    if form == "latex" and not every:
        tables = [significant_rows(table, options.alpha) for table in tables]
    text = csv.render_all(tables) if form == "csv" else "\n".join(map(latex.render, tables))
    print(text, end="")


def _common_tables(answers: Answers, rows: int | None = None) -> list[Table]:
    """Return the tables of several responses, and of responses with bounds alone."""
    from doe.views.tables.effects import by_response_table
    from doe.views.tables.goals import goal_tables
    from doe.views.tables.lost import censored_table

    analyses, trade = list(answers.analyses.values()), answers.trade_off
    tables = []
    if len(analyses) > 1 and answers.effects_by_response is not None:
        tables.append(by_response_table(answers.effects_by_response, analyses, rows))
    tables += goal_tables(trade, rows) if trade is not None else []
    return [*tables, *(censored_table(bounds, rows) for bounds in answers.bounds.values())]


def _show(answers: Answers, form: str, command: str, optimize: bool) -> None:
    """Print sentences, then one short table, or all tables with --full, the shortest first."""
    from rich.text import Text

    from doe.views.plot import half_normal
    from doe.views.tables import first_table, screen_tables
    from doe.views.tables.goals import goal_sentences
    from doe.views.tables.surface import surface_tables
    from doe.views.terminal import console, print_list, print_sentences, print_table

    screen, rows = console(), TOP if form == "full" else SHORT
    analyses, trade = list(answers.analyses.values()), answers.trade_off
    for analysis in analyses:
        print_sentences(analysis, screen, command)
    if trade is not None:
        print_list(" and ".join(trade.responses), goal_sentences(trade), screen)
        screen.print()
    for warning in (warning for bounds in answers.bounds.values() for warning in bounds.warnings):
        screen.print(Text("note: ", style="yellow"), Text(warning), end="\n", sep="")
    tables = _common_tables(answers, rows)
    if len(analyses) == 1:
        made = screen_tables(analyses[0]) if form == "full" else first_table(analyses[0], SHORT)
        tables += surface_tables(analyses[0]) if optimize else made
    for table in () if form == "brief" and analyses else sorted(tables, key=lambda t: len(t.rows)):
        print_table(table, screen)
    if len(analyses) == 1 and form not in ("brief", "full"):
        screen.print("`--full` prints every table.")
    for analysis in analyses if form == "plot" else ():
        if (plot := half_normal(analysis, screen.width)) is not None:
            screen.print(plot)
