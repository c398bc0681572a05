"""`doe status`: the state of a study."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from doe.cli.options import JsonOption, StudyOption, chosen_study

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from doe.results.status import Overview

WATCH_SECONDS = 1.0
MOST_NAMES = 12


def status(
    study: StudyOption = None,
    watch: Annotated[bool, typer.Option("--watch", help="Refresh until all is done.")] = False,
    json: JsonOption = False,
) -> None:
    """Show counts, failures by reason, running runs, time left, balance and what is missing."""
    from doe.errors import DoeError
    from doe.results.status import as_json, overview
    from doe.views.terminal import console, print_json

    if watch and json:
        raise DoeError("--watch and --json cannot be combined; choose one")
    directory = chosen_study(study)
    state = overview(directory)
    if json:
        from doe.results.decision import decision, decision_json

        reached = decision(state.study, state.statuses)
        further = {"decision": decision_json(reached), "waiting": _waiting_reasons(state)}
        print_json(as_json(state) | further)
    elif watch:
        _watch(state, console())
    else:
        screen = console()
        screen.print(_picture(state, screen.width))


def _watch(state: Overview, screen: Console) -> None:
    import time

    from rich.live import Live

    from doe.results.status import overview

    try:
        with Live(_picture(state, screen.width), console=screen, auto_refresh=False) as live:
            while not _ended(state):
                time.sleep(WATCH_SECONDS)
                state = overview(state.directory)
                live.update(_picture(state, screen.width), refresh=True)
    except KeyboardInterrupt:
        raise typer.Exit(130) from None


def _ended(state: Overview) -> bool:
    """Return whether nothing more will run: all is done, or all is decided."""
    from doe.results.decision import decision

    reached = decision(state.study, state.statuses)
    stopped = reached is not None and reached.is_final
    return not state.counts["running"] and (stopped or not state.counts["pending"])


def _picture(state: Overview, width: int) -> RenderableType:
    """Format the status page."""
    from rich.console import Group
    from rich.text import Text

    from doe.errors import counted
    from doe.results.decision import decision
    from doe.views.status_tables import (
        counts_line,
        failure_table,
        legend,
        replicates_table,
        running_table,
        state_bar,
    )
    from doe.views.terminal import render_table

    head = Text(f"{state.study.name}: {counted(len(state.statuses), 'run')}: ")
    head += counts_line(state.counts, signs=False)
    bar, signs = state_bar(state.counts), legend(state.counts)
    beside = len(bar) + len(signs) <= width
    parts: list[RenderableType] = [head, *([bar + signs] if beside else [bar, signs[2:]])]
    parts += [Text("\n".join(_lines(state)))]
    if (replicates := replicates_table(state)) is not None:
        parts += [Text(), render_table(replicates, width)]
    if (reached := decision(state.study, state.statuses)) is not None:
        from doe.views.tables.study import decision_table

        parts += [Text("\n".join(reached.sentences))]
        if reached.terms:
            parts += [Text(), render_table(decision_table(reached), width)]
    if state.running:
        parts += [Text(), render_table(running_table(state), width)]
    if state.failures:
        parts += [Text(), render_table(failure_table(state.failures), width)]
    parts += [Text(f"warning: {warning}", style="yellow") for warning in state.warnings]
    return Group(*parts)


def _lines(state: Overview) -> list[str]:
    from doe.errors import counted, listed
    from doe.numbers import duration_text
    from doe.results.status import status_line

    balance = ", ".join(
        f"{counted(configs, 'configuration')} with {done}"
        for done, configs in state.balance.items()
    )
    lines = [f"replicates done: {balance}"]
    lines += [status_line(stage) for stage in state.stages]
    if state.running:
        lines.append(f"time left: {duration_text(state.left)}")
    if state.missing and len(state.missing) < len(state.statuses):
        lines.append(f"missing: {listed(state.missing, MOST_NAMES)}")
    lines += [f"to be retried: {run}: {why}" for run, why in [*state.again.items()][:MOST_NAMES]]
    lines += [f"{run.run_id}: {run.note}" for run in state.running if run.note][:MOST_NAMES]
    reasons: dict[str, list[str]] = {}
    for run_id, why in _waiting_reasons(state).items():
        reasons.setdefault(why, []).append(run_id)
    for why, waiting in [*reasons.items()][:MOST_NAMES]:
        lines.append(f"not started: {listed(waiting, 1)}: {why}")
    return lines


def _waiting_reasons(state: Overview) -> dict[str, str]:
    """Return the cluster's reasons for runs that were submitted and have not begun."""
    from doe.running.engines import waiting_reasons

    pending = {status.run.run_id for status in state.statuses if status.state == "pending"}
    return waiting_reasons(state.directory, pending) if pending else {}
