"""`doe analyze`: from results to effects, tests and advice."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from doe.cli.complete import complete_response
from doe.cli.options import (
    BlockOption,
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
    chosen_study,
    one_thread,
    only_with_table,
    say,
    split_names,
    table_options,
)

if TYPE_CHECKING:
    from doe.analysis.analyze import Analysis
    from doe.analysis.censored import CensoredAnalysis
    from doe.analysis.options import AnalysisOptions
    from doe.analysis.trade_off import TradeOff
    from doe.results.subject import Subject

TOP, SHORT = 20, 8
"""Rows of a ranked table in full and in short."""


def analyze(
    study: StudyOption = None,
    table: TableOption = None,
    factors: TableFactorsOption = None,
    low: LowOption = None,
    scale: ScaleOption = None,
    of: OfOption = None,
    block: BlockOption = None,
    whole_plot: WholePlotOption = None,
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
        str | None, typer.Option("--drop", help="Factors whose terms are not shown: F or E,F.")
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
        typer.Option("--error", help="Test against pure error where runs repeat, or residual."),
    ] = "pure",
    alpha: Annotated[float, typer.Option("--alpha", help="Level of tests and intervals.")] = 0.05,
    beats: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--beats",
            metavar="X Y",
            help="How likely X beats Y with a fresh seed; also: best, runner-up, baseline.",
        ),
    ] = None,
    optimize: Annotated[
        bool, typer.Option("--optimize", help="Where to go next: optimum, or path of ascent.")
    ] = False,
    coding: Annotated[
        str, typer.Option("--coding", help="One coded unit: factorial points, or the range.")
    ] = "factorial",
    constraint: Annotated[
        list[str] | None,
        typer.Option("--constraint", help="Limit that the best has to keep: 'seconds <= 60'."),
    ] = None,
    desire: Annotated[
        list[str] | None,
        typer.Option("--desire", help="Worth nothing..target[:weight]: seconds=60..10:2."),
    ] = None,
    brief: Annotated[bool, typer.Option("--brief", help="Stop after the sentences.")] = False,
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
    from doe.analysis.options import AnalysisOptions
    from doe.errors import DoeError
    from doe.results.sources import read_source

    forms = {"json": json, "latex": latex, "csv": csv, "plot": plot, "brief": brief, "full": full}
    if sum(forms.values()) > 1:
        raise DoeError(
            "--json, --latex, --csv, --plot, --brief and --full exclude each other; "
            "give one of them"
        )
    options = AnalysisOptions(
        transform=transform,
        order=order,
        drop=split_names(drop),
        terms=None if terms is None else split_names(terms),
        random_blocks=random_blocks,
        robust=robust or permutations is not None,
        permutations=permutations or AnalysisOptions().permutations,
        error=error,
        alpha=alpha,
        beats=() if beats is None else (beats,),
        optimize=optimize,
        coding=coding,
        constraints=tuple(constraint or ()),
        desires=tuple(desire or ()),
    )
    names = tuple(name for part in response or () for name in split_names(part))
    of_table = {
        "factors": factors,
        "low": low,
        "scale": scale,
        "of": of,
        "block": block,
        "whole-plot": whole_plot,
        "goal": goal,
    }
    only_with_table(study, table, **of_table, decimal=decimal, ceiling=ceiling)
    options_of_table = table_options(
        table, factors, low, scale, block, goal, ceiling, decimal, of, whole_plot
    )
    subject = read_source(table or chosen_study(study), names, options_of_table, say)
    form = next((name for name, chosen in forms.items() if chosen), "")
    words = ["--table", table, "--factors", factors] if table else ["--study", study]
    source = f" {shlex.join(map(str, words))}"
    command = f"doe analyze{source if table or study else ''}"
    if every and form != "latex":
        raise DoeError("--all is about LaTeX tables; give --latex as well")
    _print(subject, options, form, command, every)


def _print(
    subject: Subject, options: AnalysisOptions, form: str, command: str, every: bool
) -> None:
    from doe.analysis.effects_by_response import effects_by_response
    from doe.errors import DoeError
    from doe.results.goals import trade_off_of
    from doe.results.report import analyze_all, bound_all
    from doe.views import csv, latex
    from doe.views.json import to_plain
    from doe.views.table import significant_rows
    from doe.views.tables import paper_tables, whole_tables
    from doe.views.tables.by_response import by_response_table
    from doe.views.tables.goals import goal_tables
    from doe.views.tables.lost import censored_table
    from doe.views.tables.surface import surface_tables
    from doe.views.terminal import print_json

    analyses, refused = analyze_all([d for d in subject.data.values() if not d.censored], options)
    bounds, unbounded = bound_all(subject, options)
    if len(refused) + len(unbounded) == len(subject.data):
        raise DoeError(next(iter((refused | unbounded).values())))
    for reason in (refused | unbounded).values():
        print(f"left out: {reason}", file=sys.stderr)
    results = list(analyses.values())
    family = effects_by_response(results) if len(results) > 1 else None
    trade = trade_off_of(subject, options)
    if form == "json":
        known = analyses | bounds
        plain = [to_plain(known[name], family, trade) for name in subject.data if name in known]
        print_json(plain[0] if len(plain) == 1 else plain)
    elif form in ("latex", "csv"):
        tables = [by_response_table(family, results)] if family is not None else []
        tables += goal_tables(trade) if trade is not None else []
        tables += [censored_table(bounded) for bounded in bounds.values()]
        for analysis in results:
            if options.optimize:
                tables += surface_tables(analysis)
            else:
                tables += whole_tables(analysis) if form == "csv" else paper_tables(analysis)
        if form == "latex" and not every:
            tables = [significant_rows(table, options.alpha) for table in tables]
        text = csv.render_all(tables) if form == "csv" else "\n".join(map(latex.render, tables))
        print(text, end="")
    else:
        _show(results, list(bounds.values()), trade, form, command, options.optimize)
        if form == "plot":
            _plot(results)


def _show(
    analyses: list[Analysis],
    bounds: list[CensoredAnalysis],
    trade: TradeOff | None,
    form: str,
    command: str,
    optimize: bool,
) -> None:
    """Sentences, then one short table, or in full all tables, the shortest first."""
    from rich.text import Text

    from doe.analysis.effects_by_response import effects_by_response
    from doe.views.tables import first_table, screen_tables
    from doe.views.tables.by_response import by_response_table
    from doe.views.tables.goals import goal_sentences, goal_tables
    from doe.views.tables.lost import censored_table
    from doe.views.tables.surface import surface_tables
    from doe.views.terminal import console, print_list, print_sentences, print_table

    screen, rows = console(), TOP if form == "full" else SHORT
    for analysis in analyses:
        print_sentences(analysis, screen, command)
    if trade is not None:
        print_list(" and ".join(trade.responses), goal_sentences(trade), screen)
        screen.print()
    for bounded in bounds:
        for warning in bounded.warnings:
            screen.print(Text("note: ", style="yellow"), Text(warning), end="\n", sep="")
    tables = [censored_table(bounded, rows) for bounded in bounds]
    if len(analyses) > 1:
        tables.append(by_response_table(effects_by_response(analyses), analyses, rows))
    elif analyses:
        made = screen_tables(analyses[0]) if form == "full" else first_table(analyses[0], SHORT)
        tables += surface_tables(analyses[0]) if optimize else made
    tables += goal_tables(trade, rows) if trade is not None else []
    for table in () if form == "brief" and analyses else sorted(tables, key=lambda t: len(t.rows)):
        print_table(table, screen)
    if len(analyses) == 1 and form not in ("brief", "full"):
        screen.print("`--full` prints every table.")


def _plot(analyses: list[Analysis]) -> None:
    from doe.views.plot import half_normal
    from doe.views.terminal import console

    screen = console()
    for analysis in analyses:
        if (plot := half_normal(analysis, screen.width)) is not None:
            screen.print(plot)
