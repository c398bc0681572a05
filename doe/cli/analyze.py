"""`doe analyze`: from results to effects, tests and advice."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from doe.cli.complete import complete_response
from doe.cli.options import (
    BlockOption,
    DecimalOption,
    GoalOption,
    JsonOption,
    LowOption,
    OrderOption,
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
    warn_changed,
)

if TYPE_CHECKING:
    from rich.console import Console

    from doe.analysis.across import Across
    from doe.analysis.case import AnalysisOptions
    from doe.analysis.censored import CensoredAnalysis
    from doe.analysis.data import Observations
    from doe.analysis.levels.layout import LevelObservations
    from doe.analysis.response import ResponseAnalysis
    from doe.views.table import Table

TOP = 20
"""Rows of a ranked table."""


def analyze(
    study: StudyOption = None,
    table: TableOption = None,
    factors: TableFactorsOption = None,
    low: LowOption = None,
    block: BlockOption = None,
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
    brief: Annotated[bool, typer.Option("--brief", help="Stop after the sentences.")] = False,
    json: JsonOption = False,
    latex: Annotated[bool, typer.Option("--latex", help="Print LaTeX tables instead.")] = False,
    csv: Annotated[bool, typer.Option("--csv", help="Print CSV tables instead.")] = False,
    plot: Annotated[
        bool, typer.Option("--plot", help="Draw a half-normal plot of the effects as well.")
    ] = False,
) -> None:
    """Analyse the responses of a study, or of any table of results."""
    one_thread()
    from doe.analysis.case import AnalysisOptions
    from doe.errors import DoeError

    if json + latex + csv + plot + brief > 1:
        raise DoeError(
            "--json, --latex, --csv, --plot and --brief exclude each other; give one of them"
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
    )
    names = tuple(name for part in response or () for name in split_names(part))
    only_with_table(
        study,
        table,
        factors=factors,
        low=low,
        block=block,
        decimal=decimal,
        goal=goal,
        ceiling=ceiling,
    )
    if table is not None:
        observed = table_observations(table, factors, names, low, block, goal, ceiling, decimal)
    else:
        observed = _study_observations(study, names)
    forms = {"json": json, "latex": latex, "csv": csv, "plot": plot, "brief": brief}
    form = next((name for name, chosen in forms.items() if chosen), "")
    words = ["--table", table, "--factors", factors] if table else ["--study", study]
    source = f" {shlex.join(map(str, words))}"
    command = f"doe analyze{source if table or study else ''}"
    _print(observed, options, ceiling, form, command)


def _study_observations(
    path: Path | None, asked: tuple[str, ...]
) -> list[Observations | LevelObservations]:
    """The responses of a study that are asked for by name or group, else the principal ones."""
    from doe.errors import DoeError
    from doe.results.looks import analysed
    from doe.results.observations import confirming_runs, observations, scan_study, study_runs

    directory = chosen_study(path)
    study, scanned = scan_study(directory)
    warn_changed(study, scanned)
    statuses = analysed(study, scanned)
    answers = study.responses
    groups = {"all": [*answers.metrics, *answers.averages], "further": list(answers.further)}
    names = [n for part in asked for n in groups.get(part, [part])] or list(answers.principal)
    if all(status.state != "done" for status in statuses):
        raise DoeError(f"no run of {directory} is done yet; start it with `doe run`")
    fresh = confirming_runs(study, scanned)
    return observations(study, statuses, study_runs(study, statuses), names, fresh)


def _print(
    observed: list[Observations | LevelObservations],
    options: AnalysisOptions,
    ceiling: float | None,
    form: str,
    command: str,
) -> None:
    from doe.analysis.across import across
    from doe.analysis.censored import CensoredAnalysis, analyze_censored
    from doe.analysis.data import Observations
    from doe.analysis.response import analyze_response
    from doe.errors import DoeError
    from doe.views import csv, latex
    from doe.views.json import to_plain
    from doe.views.terminal import print_json

    results: list[ResponseAnalysis | CensoredAnalysis] = []
    refused: list[str] = []
    for o in observed:
        try:
            if isinstance(o, Observations) and o.censored:
                results.append(analyze_censored(o, options, ceiling))
            else:
                results.append(analyze_response(o, options))
        except DoeError as error:
            refused.append(str(error))
            if len(refused) == len(observed):
                raise
    for reason in refused:
        print(f"left out: {reason}", file=sys.stderr)
    analyses = [result for result in results if not isinstance(result, CensoredAnalysis)]
    family = across(analyses) if len(analyses) > 1 else None
    if form == "json":
        plain = [to_plain(result, family) for result in results]
        print_json(plain[0] if len(plain) == 1 else plain)
    elif form in ("latex", "csv"):
        render = latex.render if form == "latex" else csv.render
        print("\n".join(render(table) for table in _files(results, family, form)), end="")
    else:
        _show(results, family, form == "brief", command)
        if form == "plot":
            _plot(analyses)


def _files(
    results: list[ResponseAnalysis | CensoredAnalysis], family: Across | None, form: str
) -> list[Table]:
    """Tables to print whole: one for CSV, which has one header; effects and ANOVA for LaTeX."""
    from doe.analysis.analyze import Analysis
    from doe.analysis.censored import CensoredAnalysis
    from doe.views.tables.across import across_table
    from doe.views.tables.anova import anova_table
    from doe.views.tables.censored import censored_table
    from doe.views.tables.effects import effects_table
    from doe.views.tables.level_anova import level_anova_table
    from doe.views.tables.level_differences import differences_table
    from doe.views.tables.level_means import level_means_table

    analyses = [result for result in results if not isinstance(result, CensoredAnalysis)]
    tables = [censored_table(result) for result in results if isinstance(result, CensoredAnalysis)]
    if family is not None:
        tables.insert(0, across_table(family, analyses))
    if family is None or form == "latex":
        for analysis in analyses:
            if isinstance(analysis, Analysis):
                tables.append(effects_table(analysis))
                tables += [anova_table(analysis)] if form == "latex" else []
            elif form == "csv":
                tables.append(level_means_table(analysis))
            else:
                tables += [level_anova_table(analysis), level_means_table(analysis)]
                tables.append(differences_table(analysis))
    return tables


def _show(
    results: list[ResponseAnalysis | CensoredAnalysis],
    family: Across | None,
    brief: bool,
    command: str,
) -> None:
    """Sentences, then tables, the shortest first."""
    from doe.analysis.censored import CensoredAnalysis
    from doe.views.tables import screen_tables
    from doe.views.tables.across import across_table
    from doe.views.tables.censored import censored_table
    from doe.views.terminal import console, print_sentences, print_table

    screen = console()
    tables = []
    analyses = [result for result in results if not isinstance(result, CensoredAnalysis)]
    for result in results:
        if not isinstance(result, CensoredAnalysis):
            print_sentences(result, screen, command)
        else:
            tables.append(censored_table(result, TOP))
            _warn(result.warnings, screen)
    if family is not None:
        tables.append(across_table(family, analyses, TOP))
    elif analyses and not brief:
        tables += screen_tables(analyses[0])
    for table in () if brief and analyses else sorted(tables, key=lambda table: len(table.rows)):
        print_table(table, screen)


def _plot(analyses: list[ResponseAnalysis]) -> None:
    from doe.views.plot import half_normal
    from doe.views.terminal import console

    screen = console()
    for analysis in analyses:
        if (plot := half_normal(analysis, screen.width)) is not None:
            screen.print(plot)


def _warn(warnings: tuple[str, ...], screen: Console) -> None:
    from rich.text import Text

    for warning in warnings:
        screen.print(Text("note: ", style="yellow"), Text(warning), end="\n", sep="")
