"""The tables of `doe status`."""

from __future__ import annotations

from doe.results.status import Overview
from doe.views.table import Column, Row, Table, duration_text


def running_table(state: Overview) -> Table:
    """A row per run under way."""
    columns = (
        Column("slot", "slot"),
        Column("run", "run"),
        Column("config", "configuration"),
        Column("step", "step"),
        Column("for", "for"),
        Column("host", "host", keep=False),
    )
    rows = tuple(
        Row(
            (
                one.slot,
                one.run_id,
                one.config,
                f"{one.step}/{one.total}" if one.step is not None else "",
                duration_text(one.seconds),
                one.host,
            )
        )
        for one in state.running
    )
    return Table("running", "Running", columns, rows)


def failure_table(state: Overview) -> Table:
    """A row per reason, with how many runs it took and the first of them."""
    columns = (
        Column("runs", "runs", "int"),
        Column("reason", "reason"),
        Column("first", "first run"),
    )
    rows = tuple(Row((len(runs), reason, runs[0])) for reason, runs in state.failures.items())
    notes = ("doe logs RUN shows a run's log; doe run --retry-failed runs failed ones again.",)
    return Table("failures", "Failures", columns, rows, notes)
