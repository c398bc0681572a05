"""How likely one configuration beats another with a fresh seed."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.numbers import confidence
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable

CHOSEN = (
    "The best and the runner-up were chosen by these runs: their intervals allow for every pair "
    "that might have been, and the probability itself is optimistic until fresh runs confirm it."
)
BASES = {
    "own runs": "The differences of the two alone tell the error: there are but two replicates, or "
    "a check doubts that the spread is the same everywhere.",
    "seeds won": "Nothing is taken of these runs but which of the two won with each seed: a check "
    "doubts normal errors. On the log scale more may be known.",
}
"""What an interval rests on where that is not the error of all runs."""


def beats_table(analysis: Analysis, _top: int | None = None) -> Table | None:
    """Pairs of configurations; None where none was asked for."""
    if not analysis.beats:
        return None
    columns = (
        Column("config", "Configuration"),
        Column("against", "beats"),
        Column("probability", "Probability", "fixed2"),
        Column("low", f"{confidence(analysis.alpha)} low", "fixed2"),
        Column("high", "high", "fixed2"),
        Column("seeds", "Seeds", "int"),
        Column("fresh", "fresh"),
        Column("basis", "Error from", keep=False),
        Column("asked", "Asked", keep=False),
    )
    rows = tuple(
        Row((b.config, b.against, b.probability, b.low, b.high, b.seeds, b.fresh, b.basis, b.asked))
        for b in analysis.beats
    )
    notes = ["Both run with the same fresh seed, as in a replicate."]
    if any(b.asked and not b.fresh for b in analysis.beats):
        notes.append(CHOSEN)
    notes += dict.fromkeys(
        BASES[b.basis] for b in analysis.beats if b.basis in BASES and not b.fresh
    )
    title = f"Which configuration wins with a fresh seed, by {analysis.response}"
    return Table(f"beats {analysis.response}", title, columns, rows, tuple(notes))


ENTRY = ResponseTable(35, beats_table, files="further")
