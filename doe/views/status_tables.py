"""The tables of `doe status`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.text import Text

from doe.design.runs import Run
from doe.errors import counted
from doe.numbers import about, cell_text, duration_text
from doe.results.status import Overview
from doe.results.summary import Summary
from doe.store.scan import STATES, RunState
from doe.terms import BETWEEN, config_header, config_in_words, level_text, single_letters
from doe.views.table import Column, Row, Table

BAR_WIDTH = 40
STATE_STYLES = {
    "done": "#2F7FC1",
    "diverged": "yellow",
    "failed": "magenta",
    "running": "green",
    "pending": "dim",
}
GLYPHS = {"done": "█", "diverged": "≈", "failed": "×", "running": "▒", "pending": "·"}
"""What a state looks like in a bar, also without colours."""
MOST_REPLICATES = 12
"""Rows of the table of replicates."""


def state_bar(counts: Mapping[RunState, int]) -> Text:
    """Return a bar of all runs by state; a state with one run at least has a sign of its own."""
    every = sum(counts.values()) or 1
    order: tuple[RunState, ...] = ("done", "diverged", "failed", "running", "pending")
    signs = {s: max(round(BAR_WIDTH * counts[s] / every), counts[s] > 0) for s in order}
    largest = max(signs, key=lambda state: signs[state])
    signs[largest] += BAR_WIDTH - sum(signs.values())
    return Text().join(Text(GLYPHS[s] * signs[s], style=STATE_STYLES[s]) for s in order)


def counts_line(counts: Mapping[RunState, int], signs: bool = True) -> Text:
    """Return how many runs are in each state, each with its sign in the bar if asked."""
    parts = [
        Text(f"{GLYPHS[state] + ' ' if signs else ''}{counts[state]} {state}", STATE_STYLES[state])
        for state in STATES
        if counts[state]
    ]
    return Text("  " if signs else ", ").join(parts)


def legend(counts: Mapping[RunState, int]) -> Text:
    """Return what the signs of a bar mean, beside it; nothing where all runs are in one state."""
    shown = [state for state in STATES if counts[state]]
    parts = [Text(f"  {GLYPHS[state]} {state}", STATE_STYLES[state]) for state in shown]
    return Text().join(parts if len(shown) > 1 else [])


def replicates_table(state: Overview) -> Table | None:
    """Return the runs of each replicate by state; None of a single replicate."""
    numbers = sorted({status.run.replicate for status in state.statuses})
    if len(numbers) < 2:
        return None
    shown = [name for name in STATES if state.counts[name]]
    rows = tuple(
        Row(
            (
                f"replicate {number}",
                *(
                    sum(s.run.replicate == number and s.state == name for s in state.statuses)
                    for name in shown
                ),
            )
        )
        for number in numbers[:MOST_REPLICATES]
    )
    columns = (Column("replicate", ""), *(Column(name, name, "int") for name in shown))
    rest = len(numbers) - len(rows)
    notes = (f"{rest} further replicates are not shown.",) if rest else ()
    return Table("replicates", "Replicates", columns, rows, notes)


def running_table(state: Overview) -> Table:
    """Return a row per run under way, with what varies of its configuration in the study."""
    runs = [status.run for status in state.statuses if not status.run.stage]
    shown = what_varies(state.study.keys, runs)
    columns = (
        Column("slot", "slot"),
        Column("run", "run"),
        Column("step", "step"),
        Column("metric", "metric"),
        Column("for", "for"),
        Column("config", shown.header),
        Column("host", "host", keep=False),
    )
    rows = tuple(
        Row(
            (
                run.slot,
                run.run_id,
                step_text(run.step, run.total),
                metric_text(run.metric, run.value),
                duration_text(run.seconds),
                shown.labels.get(run.run_id, run.config),
                run.host,
            )
        )
        for run in state.running
    )
    return Table("running", "Running", columns, rows)


class Shown(NamedTuple):
    """Configurations of runs as they stand in a column: what is above them, and each by its run."""

    header: str
    labels: dict[str, str]


def what_varies(keys: Sequence[str], runs: Sequence[Run]) -> Shown:
    """Return the levels in which these runs differ, under the names of their factors; all of one
    run.
    """
    texts = {run.run_id: [level_text(run.levels[key]) for key in keys] for run in runs}
    columns = list(zip(*texts.values(), strict=True))
    several = [i for i, column in enumerate(columns) if len(set(column)) > 1]
    varying = several or range(len(keys))
    if single_letters(keys):
        parts = {run.run_id: LETTER.findall(run.config) for run in runs}
        labels = {
            run.run_id: "".join(parts[run.run_id][i] for i in varying)
            if parts[run.run_id]
            else run.config
            for run in runs
        }
    else:
        labels = {key: BETWEEN.join(levels[i] for i in varying) for key, levels in texts.items()}
    return Shown(config_header([keys[i] for i in varying], "configuration"), labels)


LETTER = re.compile(r"\D\d+")
"""A factor and its level in a label such as A1B0."""


def step_text(step: int | None, total: int | None) -> str:
    """Return how far a run is: 12/40; empty before its first report."""
    return "" if step is None else f"{step}/{total}"


def metric_text(name: str, value: float | None) -> str:
    """Return what a run reports of its learning: "loss 0.4372"; empty before its first report."""
    return "" if value is None else f"{name} {cell_text(value, 'num')}".strip()


def failure_table(
    failures: Mapping[str, Sequence[str]], named: int | None = 1, logged: bool = True
) -> Table:
    """Return a row per reason, with how many runs it took and the first `named` of them, or all."""
    columns = (
        Column("runs", "runs", "int"),
        Column("reason", "reason"),
        Column("which", "first run" if named == 1 else "which"),
    )
    rows = tuple(
        Row((len(runs), reason, ", ".join(runs[:named]))) for reason, runs in failures.items()
    )
    logs = "doe logs RUN shows a run's log; doe run --retry-failed runs failed ones again."
    return Table("failures", "Failed and diverged runs", columns, rows, (logs,) if logged else ())


# The end of a run ---------------------------------------------------------------------------------


MOST_RESPONSES = 8
"""Responses whose best configuration is named."""


def summary_lines(summary: Summary, study_option: str) -> list[str]:
    """Counts, time, the best by each goal, the next command.

    `study_option` names the study on the command line, as in " --study runs/x".
    """
    states = [f"{count} {state}" for state, count in summary.counts.items() if count]
    lines = [f"{', '.join(states)}; {summary.ending} after {duration_text(summary.seconds)}."]
    for best in summary.best[:MOST_RESPONSES]:
        extreme = "largest" if best.goal == "max" else "smallest"
        runs = f"mean of {counted(best.runs, 'run')}"
        ties = f"; equal: {counted(best.ties, 'other')}" if best.ties else ""
        lines.append(
            f"{extreme} {best.response}: {about(best.mean)} with "
            f"{config_in_words(summary.keys, best.config)} ({runs}{ties})"
        )
    if summary.counts["failed"]:
        lines.append("`doe run --retry-failed` runs failed ones again.")
    return [*lines, f"next: {next_command(summary)}{study_option}"]


def next_command(summary: Summary) -> str:
    """Return what to do about a study in this state."""
    if summary.counts["failed"]:
        return "doe status"
    over = summary.decision is not None and summary.decision.is_final
    if (summary.counts["pending"] or summary.counts["running"]) and not over:
        return "doe run"
    return "doe report"


def summary_environment(summary: Summary, study_option: str) -> dict[str, str]:
    """Return the summary as variables that a command finds in its environment."""
    return {
        "DOE_STUDY": summary.study,
        "DOE_ENDING": summary.ending,
        "DOE_SECONDS": cell_text(summary.seconds, "int"),
        **{f"DOE_{state.upper()}": str(count) for state, count in summary.counts.items()},
        "DOE_NEXT": f"{next_command(summary)}{study_option}",
        "DOE_SUMMARY": "\n".join(summary_lines(summary, study_option)),
    }
