"""Output of `doe run` while it works: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from html import escape
from typing import TYPE_CHECKING, Any

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from doe.errors import counted
from doe.numbers import duration_text
from doe.results.status import study_time_left
from doe.store.leases import age
from doe.store.progress import Progress, read_progress
from doe.store.scan import STATES, RunState, counts
from doe.views.status_tables import (
    STATE_STYLES,
    Shown,
    counts_line,
    metric_text,
    state_bar,
    step_text,
    what_varies,
)

if TYPE_CHECKING:
    from doe.running.scheduler import Snapshot
    from doe.running.transitions import Active

STYLES = STATE_STYLES | {
    "again": "yellow",
    "closed": "bold red",
    "adopted": "cyan",
    "warning": "yellow",
    "stop": "bold",
}
DRAW_SECONDS = 0.25
LOOK_SECONDS = 5.0
"""Time between two looks for a first estimate of the time left."""


class PlainDisplay:
    """A line per event, for logs and pipes."""

    def __init__(self, console: Console, levels: str = "") -> None:
        self._console = console
        self._levels = levels  # whose they are in configurations: said above the first line
        self._shown = -1
        self._looked = 0.0
        self._foretold = False

    def note(self, kind: str, text: str) -> None:
        """Print what happened; a log on a full disk stops no run; the end of the command
        reports it.
        """
        levels, self._levels = self._levels, ""
        with suppress(OSError, UnicodeError):
            if levels:
                self._console.print(f"{'levels':>8}  {levels}", soft_wrap=True, markup=False)
            self._console.print(f"{kind:>8}  {text}", soft_wrap=True, markup=False)

    def show(self, snapshot: Snapshot) -> None:
        """Print the counts at each tenth of the study, and once the time left is known."""
        statuses = snapshot.runs
        ended = sum(status.result is not None for status in statuses)
        tenth, now = 10 * ended // len(statuses), time.monotonic()
        if tenth == self._shown and (self._foretold or now - self._looked < LOOK_SECONDS):
            return
        self._looked = now
        left = remaining(snapshot)
        if tenth > self._shown or left is not None:
            self._shown, self._foretold = tenth, left is not None
            text = duration_text(left)
            self.note("progress", f"{ended} of {counted(len(statuses), 'run')}, time left {text}")


class LiveDisplay:
    """A picture of the study that is drawn again a few times a second; events scroll above it.

    A closed terminal stops no run; the end of the command reports it.
    """

    def __init__(self, console: Console, live: Live, levels: str = "") -> None:
        self._console, self._live, self._levels = console, live, levels
        self._drawn = 0.0

    def note(self, kind: str, text: str) -> None:
        """Print above the picture what a user should see; success shows in the counts."""
        if kind != "done":
            levels, self._levels = self._levels, ""
            with self._to_terminal():
                if levels:
                    self._console.print(Text(f"{'levels':>8}  {levels}"))
                self._console.print(Text(f"{kind:>8}  {text}", style=STYLES.get(kind, "")))

    def show(self, snapshot: Snapshot) -> None:
        """Draw."""
        now = time.monotonic()
        if now - self._drawn >= DRAW_SECONDS:
            self._drawn = now
            with self._to_terminal():
                self._live.update(picture(snapshot), refresh=True)

    @contextmanager
    def _to_terminal(self) -> Iterator[None]:
        """Draw no more where it has failed once: what was not drawn would pile up."""
        try:
            yield
        except (OSError, UnicodeError):
            self._console.quiet = True


class NotebookDisplay(PlainDisplay):
    """A progress bar in a cell of a notebook, redrawn in place; events are lines below it."""

    def __init__(self, console: Console, levels: str = "") -> None:
        super().__init__(console, levels)
        from IPython import display  # a notebook has it

        shown: Any = display  # untyped
        self._html = shown.HTML
        self._bar = shown.display(shown.HTML(""), display_id=True)
        self._drawn = 0.0

    def note(self, kind: str, text: str) -> None:
        """Print what the bar does not show."""
        if kind != "done":
            super().note(kind, text)

    def show(self, snapshot: Snapshot) -> None:
        """Draw the bar, at most a few times a second and always at the end."""
        number = state_counts(snapshot)
        total = len(snapshot.runs)
        ended = number["done"] + number["diverged"] + number["failed"]
        now = time.monotonic()
        if now - self._drawn >= DRAW_SECONDS or ended == total:
            self._drawn = now
            states = ", ".join(f"{n} {state}" for state, n in number.items() if n)
            left = "" if ended == total else f", time left {duration_text(remaining(snapshot))}"
            bar = f'<progress value="{ended}" max="{total}"></progress>'
            text = escape(f"{snapshot.study}: {ended} of {counted(total, 'run')}{left} ({states})")
            self._bar.update(self._html(f"{bar} {text}"))


@contextmanager
def open_display(console: Console, levels: str = "") -> Iterator[PlainDisplay | LiveDisplay]:
    """The live view on a terminal, a bar in a notebook, plain lines elsewhere.

    The terminal is left as it was. `levels` names the factors whose levels a configuration has,
    where it does not say so itself.
    """
    if console.is_jupyter:
        yield NotebookDisplay(console, levels)
        return
    if not console.is_terminal:
        yield PlainDisplay(console, levels)
        return
    live = Live(console=console, auto_refresh=False, transient=True)
    live.start()
    try:
        yield LiveDisplay(console, live, levels)
    finally:
        with suppress(OSError):
            live.stop()


def ages(snapshot: Snapshot) -> dict[str, float]:
    """Seconds since each running run began, own and adopted ones."""
    now = time.monotonic()
    seconds = {active.run_id: now - active.since for active in snapshot.active}
    for run_id in snapshot.elsewhere:
        if lease := snapshot.statuses[run_id].holder:
            seconds[run_id] = age(lease)
    return seconds


def remaining(snapshot: Snapshot) -> float | None:
    """Seconds until the study's end; None if unknown."""
    statuses, since = list(snapshot.statuses.values()), ages(snapshot)
    return study_time_left(snapshot.files, statuses, since, snapshot.places)


def state_counts(snapshot: Snapshot) -> dict[RunState, int]:
    """Runs in each state, as the scheduler knows them."""
    statuses = snapshot.runs
    number = counts(statuses)
    number["running"] = len(snapshot.active) + len(snapshot.elsewhere)
    number["pending"] = len(statuses) - sum(number[s] for s in STATES if s != "pending")
    return number


def picture(snapshot: Snapshot) -> RenderableType:
    """Return the study at a glance: a bar, the counts, a row per slot."""
    statuses = snapshot.runs
    number = state_counts(snapshot)
    ended = number["done"] + number["diverged"] + number["failed"]
    left = duration_text(remaining(snapshot))
    head = Table.grid(padding=(0, 1))
    head.add_row(
        Text(snapshot.study, style="bold"),
        state_bar(number),
        f"{ended}/{len(statuses)}",
        f"time left {left}",
    )
    return Group(head, counts_line(number), slot_table(snapshot))


WIDTHS = {"slot": 5, "run": 3, "step": 7, "for": 8, "metric": 13, "": 10}
"""Least width of the columns, so that what comes and goes in them moves nothing."""
MOST_ACTIVE, MOST_ELSEWHERE = 32, 8
"""Rows of the table of runs under way."""


def slot_table(snapshot: Snapshot) -> Table:
    """Return a row per run under way: slot, run, step, time, the metric's course, what sets it
    apart.

    Of the configurations what varies in the study is shown, on several lines where it is narrow:
    cut, two of them could look alike. Columns are as wide from the first drawing to the last.
    """
    every = [status.run for status in snapshot.statuses.values()]
    stages = {run.run_id: run.config for run in every if run.stage}
    every = [run for run in every if not run.stage]
    shown = what_varies(list(every[0].levels), every) if every else Shown("configuration", {})
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_edge=False)
    widths = WIDTHS | {"run": max((len(run.run_id) for run in every), default=3)}
    for title, width in widths.items():
        table.add_column(title, no_wrap=True, overflow="ellipsis", min_width=width)
    active = sorted(snapshot.active, key=lambda active: active.slot.name)[:MOST_ACTIVE]
    rows = [_slot_row(snapshot, run) for run in active]
    rows += [_other_row(snapshot, run_id) for run_id in snapshot.elsewhere[:MOST_ELSEWHERE]]
    table.add_column(shown.header, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row), Text((shown.labels | stages)[row[1]]))
    for name, why in snapshot.closed.items():
        table.add_row(Text(name), Text("closed", style="red"), *[""] * 4, Text(why))
    return table


def _slot_row(snapshot: Snapshot, active: Active) -> tuple[str, ...]:
    elapsed = duration_text(time.monotonic() - active.since)
    progress = read_progress(snapshot.files.run(active.run_id))
    return (active.slot.name, active.run_id, *_progress_cells(progress, elapsed))


def _other_row(snapshot: Snapshot, run_id: str) -> tuple[str, ...]:
    status = snapshot.statuses[run_id]
    lease = status.holder
    holder = f"{lease.host}:{lease.slot}" if lease else "elsewhere"
    elapsed = duration_text(age(lease)) if lease else ""
    return (holder, run_id, *_progress_cells(read_progress(snapshot.files.run(run_id)), elapsed))


def _progress_cells(progress: Progress | None, elapsed: str) -> tuple[str, str, str, str]:
    if progress is None:
        return "", elapsed, "", ""
    value = progress.values[-1] if progress.values else None
    return (
        step_text(progress.step, progress.total),
        elapsed,
        metric_text(progress.metric, value),
        sparkline(progress.values),
    )


SPARKS, SPARK_WIDTH = "▁▂▃▄▅▆▇█", 10


def sparkline(values: Sequence[float]) -> str:
    """Draw the last values, the smallest at the bottom."""
    shown = [value for value in values if math.isfinite(value)][-SPARK_WIDTH:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARKS[round((value - low) * scale)] for value in shown)
