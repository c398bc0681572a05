"""Configurations, the best first, how likely one beats another, and means of levels."""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

from doe.analysis.analyze import Analysis
from doe.analysis.best import ReducedModel
from doe.analysis.pvalues import significant
from doe.numbers import confidence, with_interval
from doe.terms import BETWEEN, OPEN, config_header, config_in_words, single_letters
from doe.views.table import Column, Table, rows_of, starred
from doe.views.tables import ResponseTable
from doe.views.words import effect_on, mean_word, quantity, survivors, unit_text

BEFORE = "Not yet confirmed with new seeds: the mean of the best of many is optimistic."
CHOSEN = (
    "The best and the runner-up were chosen by these runs: their intervals allow for every pair "
    "that might have been, and the probability itself is optimistic until fresh runs confirm it."
)
BASES = {
    "own runs": "Only the differences of these two give the error: there are only two replicates, "
    "runs share whole plots, or a check indicates that the spread differs.",
    "nothing": "Replicates share whole plots or a random condition, so their differences do not "
    "show what fresh ones would give.",
    "seeds won": "Only which of the two won with each seed is used, because a check indicates that "
    "errors are not normal. The log scale may say more.",
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
    rows = rows_of(
        columns,
        best.cells[:top],
        lambda c: {"config": "strong"} if c.among_best else {},
        among=lambda c: None if best.critical is None else c.among_best,
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
    """Return what the model predicts to be best, and that the best was chosen for its luck as
    well.
    """
    best, keys = analysis.best, analysis.keys
    between = analysis.surface is not None and analysis.surface.optimum is not None
    predicted: tuple[str, ...] = ()
    if best is not None and not between:  # the optimum of a surface is between the levels
        predicted = (_reduced_text(best.reduced, keys, analysis.alpha),)
    return predicted if analysis.confirmation is not None else (*predicted, BEFORE)


def _reduced_text(reduced: ReducedModel, keys: Sequence[str], alpha: float) -> str:
    if not reduced.terms:
        return "No term is significant, so the model predicts the same mean everywhere."
    best = reduced.best
    level, terms = confidence(alpha), " ".join(reduced.terms)
    lead = f"Model optimum of the reduced model ({terms}): {config_in_words(keys, best.config)}"
    if best.mean is None:
        return f"{lead}."
    mean, *ends = with_interval(best.mean, best.ci_low, best.ci_high)
    span = ""
    if ends:
        doubt = ", which leaves the prediction out" * best.outside
        span = f" ({level} for all predictions at once: {' to '.join(ends)}{doubt})"
    named = [key for key in keys if key in best.config] if single_letters(keys) else keys
    is_open = len(named) < len(keys) or OPEN in best.config.split(BETWEEN)
    rest = "; factors that are not named are open" * is_open
    kind = "a geometric mean of " if best.geometric else ""
    return f"{lead} at {kind}{mean}{span}{rest}."


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
    rows = rows_of(columns, analysis.beats)
    notes = ["Both run with the same fresh seed, as in a replicate."]
    if any(b.asked and not b.fresh for b in analysis.beats):
        notes.append(CHOSEN)
    notes += dict.fromkeys(
        BASES[b.basis] for b in analysis.beats if b.basis in BASES and not b.fresh
    )
    title = f"Which configuration wins with a fresh seed, by {analysis.response}"
    return Table(f"beats {analysis.response}", title, columns, rows, tuple(notes))


# Means of levels ----------------------------------------------------------------------------------


def level_means_table(analysis: Analysis, _top: int | None = None) -> Table | None:
    """Return the mean of each level with its interval, every cell of the other factors weighted
    alike.

    None where all factors have two levels, whose effects say as much. A number with many values
    has a line and a curve instead.
    """
    curves = {factor.key for factor in analysis.factors if factor.is_curve}
    levels = [mean for mean in analysis.levels if mean.factor not in curves]
    if analysis.two_level or not levels:
        return None
    word = mean_word(analysis)
    columns = (
        Column("factor", "Factor"),
        Column("level", "Level"),
        Column("mean", word, "num"),
        Column("ci_low", f"{confidence(analysis.alpha)} low", "num"),
        Column("ci_high", "high", "num"),
        Column("n", "n", "int"),
        Column("se", "SE", "num", keep=False),
    )
    rows = rows_of(columns, levels)
    partial = [mean for mean in levels if mean.cells < mean.of]
    notes = ["All combinations of the other factors weigh equally; intervals are of single means."]
    notes += survivors(analysis)
    if partial:
        names = ", ".join(f"{m.factor} {m.level} ({m.cells} of {m.of})" for m in partial[:4])
        notes.append(f"Averaged over the combinations that ran: {names}.")
    title = f"{word} {analysis.response}{unit_text(analysis.unit)} at each level"
    return Table(f"levels {analysis.response}", title, columns, rows, tuple(notes))


def differences_table(analysis: Analysis, top: int | None = None) -> Table | None:
    """Return every pair of levels with Tukey's intervals; ratios where the scale is log.

    None where all factors have two levels, whose effects say as much.
    """
    several = {factor.key for factor in analysis.factors if len(factor.levels) > 2}
    differences = [d for d in analysis.differences if d.factor in several]
    if not differences:
        return None
    ratio = analysis.transform.scale.ratio
    value = "Ratio" if ratio else "Difference"
    own = "ratio" if ratio else "difference"
    low, high = ("ratio_low", "ratio_high") if ratio else ("ci_low", "ci_high")
    columns = (
        Column("factor", "Factor"),
        Column("pair", "Levels"),
        Column("value", value, "num" if ratio else "signed"),
        Column("low", "low", "num"),
        Column("high", "high", "num"),
        Column("p_tukey", "p Tukey", "p"),
        Column("stars", "", "stars"),
        Column("p", "p alone", "p", keep=False),
        Column("se", "SE", "num", keep=False),
    )
    rows = rows_of(
        columns,
        differences[:top],
        lambda d: {"pair": "strong"} if significant(d.p_tukey, analysis.alpha) else {},
        pair=lambda d: f"{d.level} {'/' if ratio else '−'} {d.other}",
        value=attrgetter(own),
        low=attrgetter(low),
        high=attrgetter(high),
        stars=lambda d: starred(d.p_tukey),
    )
    level = confidence(analysis.alpha)
    notes = [f"Intervals hold for all pairs of a factor at once ({level}, Tukey)."]
    if ratio:
        notes.append(f"Ratio: {ratio} of the first level over that of the second.")
    if any(d.cells < d.of for d in differences):
        notes.append("Levels that never met in some combinations are compared over the others.")
    if top is not None and len(differences) > top:
        notes.append(f"{len(differences) - top} further pairs with --json.")
    title = f"Pairs of levels: {effect_on(analysis)}"
    return Table(f"pairs {analysis.response}", title, columns, rows, tuple(notes))


ENTRIES = (
    ResponseTable(11, level_means_table, files="paper"),
    ResponseTable(12, differences_table, on_screen=15, files="further"),
    ResponseTable(30, best_table, on_screen=6, files="further"),
    ResponseTable(35, beats_table, files="further", asked=True),
)
