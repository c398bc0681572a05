"""Configurations, the best first, and how likely one beats another."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.analysis.best import ReducedModel
from doe.numbers import cell_text, confidence
from doe.terms import BETWEEN, config_header
from doe.views.table import Column, Row, Table
from doe.views.tables import ResponseTable
from doe.views.words import mean_word, quantity, survivors

BEFORE = (
    "Not yet confirmed with new seeds: the best of many is optimistic; doe plan --confirm N runs "
    "it again."
)
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


def best_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Configurations, the best first, with Hsu's comparisons; None where no goal is known."""
    best = analysis.best
    if best is None:
        return None
    columns = (
        Column("config", config_header([factor.key for factor in analysis.factors])),
        Column("n", "n", "int"),
        Column("mean", mean_word(analysis), "num"),
        Column("among", "tied with the best"),
        Column("mcb_low", "Hsu low", "num", keep=False),
        Column("mcb_high", "Hsu high", "num", keep=False),
    )
    rows = tuple(
        Row(
            (
                *(c.config, c.n, c.mean),
                None if best.critical is None else c.among_best,
                *(c.mcb_low, c.mcb_high),
            ),
            marks={"config": "strong"} if c.among_best else {},
        )
        for c in best.cells[:top]
    )
    title = f"Configurations by {analysis.response}, the best first"
    hsu = () if best.critical is None else (_hsu_text(analysis),)
    notes = (
        best.sentence,
        *survivors(analysis),
        *hsu,
        *([best.spread] if best.spread else []),
        *_notes(analysis),
    )
    return Table(f"best {analysis.response}", title, columns, rows, notes)


def _hsu_text(analysis: Analysis) -> str:
    scale = "" if analysis.transform.name == "none" else f" of {quantity(analysis)}"
    level = confidence(analysis.alpha)
    return f"Hsu: mean{scale} less the best of the others, {level} for all configurations at once."


def _notes(analysis: Analysis) -> tuple[str, ...]:
    """What the model predicts to be best, and that the best was chosen for its luck as well."""
    predicted = (
        () if analysis.best is None else (_reduced_text(analysis.best.reduced, analysis.alpha),)
    )
    return predicted if analysis.confirmation is not None else (*predicted, BEFORE)


def _reduced_text(reduced: ReducedModel, alpha: float) -> str:
    if not reduced.terms:
        return "No term is active, so no configuration is predicted to differ from the mean."
    mean, low, high = (
        cell_text(value, "short")
        for value in (reduced.best.mean, reduced.best.ci_low, reduced.best.ci_high)
    )
    prediction = f"{reduced.best.config} at {mean}"
    if reduced.best.ci_low is not None:
        doubt = ", which leaves the prediction out" * reduced.best.outside
        prediction += f" ({confidence(alpha)} for all predictions at once: {low} to {high}{doubt})"
    terms = " ".join(reduced.terms)
    rest = "" if BETWEEN in reduced.best.config else "; factors that are not named are open"
    return f"Model optimum of the reduced model ({terms}): {prediction}{rest}."


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


ENTRIES = (
    ResponseTable(30, best_table, on_screen=6, files="further"),
    ResponseTable(35, beats_table, files="further"),
)
