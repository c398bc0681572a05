"""The tables of `doe status`."""

from __future__ import annotations

from doe.results.decision import Decision
from doe.results.status import Overview
from doe.views.numbers import cell_text, counted, duration_text
from doe.views.table import Column, Row, Table


def running_table(state: Overview) -> Table:
    """A row per run under way."""
    columns = (
        Column("slot", "slot"),
        Column("run", "run"),
        Column("config", "configuration"),
        Column("step", "step"),
        Column("for", "for"),
        Column("metric", "metric", keep=False),
        Column("host", "host", keep=False),
    )
    rows = tuple(
        Row(
            (
                run.slot,
                run.run_id,
                run.config,
                f"{run.step}/{run.total}" if run.step is not None else "",
                duration_text(run.seconds),
                f"{run.metric} {cell_text(run.value, 'num')}" if run.value is not None else "",
                run.host,
            )
        )
        for run in state.running
    )
    return Table("running", "Running", columns, rows)


def running_lines(state: Overview) -> list[str]:
    """The same in plain lines, with the time left first; none where nothing runs."""
    if not state.running:
        return []
    rows = [row.values[:-1] for row in running_table(state).data_rows]
    head = f"{counted(len(rows), 'run')} under way, time left {duration_text(state.left)}"
    return [head, *("  ".join(str(cell) for cell in row if cell) for row in rows)]


def failure_table(state: Overview, named: int | None = 1) -> Table:
    """A row per reason, with how many runs it took and the first `named` of them, or all."""
    columns = (
        Column("runs", "runs", "int"),
        Column("reason", "reason"),
        Column("which", "first run" if named == 1 else "which"),
    )
    rows = tuple(
        Row((len(runs), reason, ", ".join(runs[:named]))) for reason, runs in state.failures.items()
    )
    notes = ("doe logs RUN shows a run's log; doe run --retry-failed runs failed ones again.",)
    return Table("failures", "Failed and diverged runs", columns, rows, notes)


def decision_lines(reached: Decision) -> list[str]:
    """The decision in sentences: what is settled, what the next replicate is expected to bring."""
    terms, rule, still_open = reached.terms, reached.rule, reached.open
    effects = sum(term.state.verdict == "effect" for term in terms)
    lines = [
        f"decided: {len(terms) - len(still_open)} of {len(terms)} terms after {reached.replicates} "
        f"of at most {rule.max_replicates} replicates ({effects} effects, "
        f"{len(terms) - len(still_open) - effects} negligible, {len(still_open)} open)"
    ]
    if not still_open:
        lines.append("stopped: every term is decided; no further replicate is run.")
    elif reached.over:
        lines.append("stopped: the last replicate is complete; what is open stays open.")
    elif reached.expected is not None:
        bring = sum(term.chance or 0.0 for term in still_open)
        lines.append(
            f"the next replicate is expected to decide {bring:.1f} of the {len(still_open)} open "
            f"terms; expected total {reached.expected:.1f} replicates, "
            f"{reached.expected * reached.runs_each:.0f} runs"
        )
    else:
        lines.append("the first look comes after the second replicate.")
    return lines
