"""What `doe run` shows while it works: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from doe.results.time_left import foreseen, time_left
from doe.store.progress import Progress, read_progress
from doe.store.scan import STATES, counts
from doe.views.numbers import duration_text

if TYPE_CHECKING:
    from doe.running.placing import Active
    from doe.running.scheduler import Runner

STYLES = {
    "done": "green",
    "diverged": "yellow",
    "failed": "red",
    "again": "yellow",
    "closed": "bold red",
    "adopted": "cyan",
    "stop": "bold",
}
DRAW_SECONDS = 0.25
LOOK_SECONDS = 5.0
"""Time between two looks for a first estimate of the time left."""


class PlainDisplay:
    """A line per event, for logs and pipes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._shown = -1
        self._looked = 0.0
        self._foretold = False

    def note(self, kind: str, text: str) -> None:
        """Print what happened."""
        self._console.print(f"{kind:>8}  {text}", soft_wrap=True, markup=False)

    def show(self, runner: Runner) -> None:
        """Print the counts at each tenth of the study, and once the time left is known."""
        views = list(runner.views.values())
        ended = sum(seen.result is not None for seen in views)
        tenth, now = 10 * ended // len(views), time.monotonic()
        if tenth == self._shown and (self._foretold or now - self._looked < LOOK_SECONDS):
            return
        self._looked = now
        left = remaining(runner)
        if tenth > self._shown or left is not None:
            self._shown, self._foretold = tenth, left is not None
            text = duration_text(left)
            self.note("progress", f"{ended} of {len(views)} runs, time left {text}")


class LiveDisplay:
    """A picture of the study that is drawn again a few times a second; events scroll above it."""

    def __init__(self, console: Console, live: Live) -> None:
        self._console, self._live = console, live
        self._drawn = 0.0

    def note(self, kind: str, text: str) -> None:
        """Print above the picture what a user should see; success shows in the counts."""
        if kind != "done":
            self._console.print(Text(f"{kind:>8}  {text}", style=STYLES.get(kind, "")))

    def show(self, runner: Runner) -> None:
        """Draw."""
        now = time.monotonic()
        if now - self._drawn >= DRAW_SECONDS:
            self._drawn = now
            self._live.update(picture(runner), refresh=True)


@contextmanager
def open_display(console: Console) -> Iterator[PlainDisplay | LiveDisplay]:
    """The live view on a terminal, plain lines elsewhere; leaves the terminal as it was."""
    if not console.is_terminal:
        yield PlainDisplay(console)
        return
    with Live(console=console, auto_refresh=False, transient=True) as live:
        yield LiveDisplay(console, live)


def ages(runner: Runner) -> dict[str, float]:
    """Seconds since each running run began, own and adopted ones."""
    now = time.monotonic()
    found = {active.run_id: now - active.since for active in runner.active.values()}
    for run_id in runner.elsewhere:
        lease = runner.views[run_id].lease
        if lease and lease.lease:
            found[run_id] = max(0.0, time.time() - lease.lease.since)
    return found


def remaining(runner: Runner) -> float | None:
    """Seconds until the study's end; None if unknown."""
    views, since = list(runner.views.values()), ages(runner)
    return time_left(views, since, places(runner), foreseen(runner.files, views, since))


def places(runner: Runner) -> int:
    """How many runs go on at once."""
    own = sum(s.places for s in runner.engine.slots if s.name not in runner.breaker.closed)
    return max(1, min(own + len(runner.elsewhere), len(runner.views)))


def picture(runner: Runner) -> RenderableType:
    """The study at a glance: a bar, the counts, a row per slot."""
    views = list(runner.views.values())
    number = counts(views)
    number["running"] = len(runner.active) + len(runner.elsewhere)
    number["pending"] = len(views) - sum(number[s] for s in STATES if s != "pending")
    ended = number["done"] + number["diverged"] + number["failed"]
    left = duration_text(remaining(runner))
    head = Table.grid(padding=(0, 1))
    head.add_row(
        Text(runner.study.name, style="bold"),
        ProgressBar(total=len(views), completed=ended, width=30),
        f"{ended}/{len(views)}",
        f"time left {left}",
    )
    line = Text("  ").join(
        Text(f"{number[state]} {state}", style=STYLES.get(state, "")) for state in STATES
    )
    return Group(head, line, slot_table(runner))


def slot_table(runner: Runner) -> Table:
    """A row per run under way: slot, run, configuration, step, the metric's course."""
    table = Table(box=None, pad_edge=False, padding=(0, 1), show_edge=False)
    for title in ("slot", "run", "configuration", "step", "for", "metric", ""):
        table.add_column(title, no_wrap=True, overflow="ellipsis")
    for active in sorted(runner.active.values(), key=lambda one: one.slot.name)[:32]:
        table.add_row(*_slot_row(runner, active))
    for run_id in sorted(runner.elsewhere)[:8]:
        table.add_row(*_other_row(runner, run_id))
    for name, why in runner.breaker.closed.items():
        table.add_row(name, Text("closed", style="red"), why)
    return table


def _slot_row(runner: Runner, active: Active) -> tuple[str, ...]:
    age = duration_text(time.monotonic() - active.since)
    config = runner.runs[active.run_id].config
    progress = read_progress(runner.files.run(active.run_id))
    return (active.slot.name, active.run_id, config, *_progress_cells(progress, age))


def _other_row(runner: Runner, run_id: str) -> tuple[str, ...]:
    seen = runner.views[run_id]
    lease = seen.lease.lease if seen.lease else None
    where = f"{lease.host}:{lease.slot}" if lease else "elsewhere"
    age = duration_text(max(0.0, time.time() - lease.since)) if lease else ""
    progress = read_progress(runner.files.run(run_id))
    return (where, run_id, seen.run.config, *_progress_cells(progress, age))


def _progress_cells(progress: Progress | None, age: str) -> tuple[str, str, str, str]:
    if progress is None:
        return "", age, "", ""
    value = f"{progress.metric} {progress.values[-1]:.4g}" if progress.values else ""
    return f"{progress.step}/{progress.total}", age, value, sparkline(progress.values)


SPARKS = "▁▂▃▄▅▆▇█"


def sparkline(values: Sequence[float], width: int = 16) -> str:
    """Draw the last `width` values, the smallest at the bottom."""
    shown = [value for value in values if math.isfinite(value)][-width:]
    if not shown:
        return ""
    low, high = min(shown), max(shown)
    scale = (len(SPARKS) - 1) / (high - low) if high > low else 0.0
    return "".join(SPARKS[round((value - low) * scale)] for value in shown)
