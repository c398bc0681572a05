"""Parts that several charts share: axes, hover text, colours of direction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from doe.analysis.analyze import Analysis
from doe.analysis.dataset import FactorColumn
from doe.analysis.effects import Effect
from doe.analysis.pvalues import significant
from doe.terms import factor_label, order
from doe.views.charts import alt
from doe.views.charts.labels import text_width
from doe.views.charts.model import Record, Word
from doe.views.charts.theme import HARMS, HEIGHT, HELPS, NEITHER, PLAIN, WIDTH
from doe.views.words import helps


def effect_record(effect: Effect) -> Record:
    """Return an effect's figures for a chart's data and hover."""
    return {
        "term": effect.term,
        "effect": effect.effect,
        "ci_low": effect.ci_low,
        "ci_high": effect.ci_high,
        "p": effect.p,
        "p_holm": effect.p_holm,
        "percent": effect.percent,
    }


NO_DIRECTION = "significant"
"""An interaction, a contrast of several levels, or an effect where no goal is set."""
DIRECTIONS = {True: "better", False: "worse", None: NO_DIRECTION}
OTHERS = "not significant"


def direction_of(effect: Effect, analysis: Analysis) -> str:
    """Return whether an effect is for the better or for the worse: what colours mean everywhere.

    Neither unless it is significant after Holm's adjustment. An interaction has no direction of its
    own: exchange the levels of a factor, and its sign turns.
    """
    if not significant(effect.p_holm, analysis.alpha):
        return OTHERS
    if order(effect.mask) > 1:
        return NO_DIRECTION
    return DIRECTIONS[helps(effect.effect, analysis.goal)]


GROUPS = ("better", "worse", NO_DIRECTION, OTHERS)


def direction() -> alt.Color:
    """Colours of effects for the better, for the worse, without a direction, and of all others.

    The legend names those that occur: the words of `direction_words`.
    """
    scale = alt.Scale(domain=list(GROUPS), range=[HELPS, HARMS, PLAIN, NEITHER])
    legend = alt.Legend(columns=word("legend"), values=word("groups"), symbolOpacity=1)
    return alt.Color("direction:N", title=None, scale=scale, legend=legend)


def direction_words(records: Sequence[Record], room: float = WIDTH) -> dict[str, Word]:
    """Return the groups of some records, and the columns of a legend that has so much room."""
    occur = {record["direction"] for record in records}
    groups = [group for group in GROUPS if group in occur]
    return {"groups": groups, "legend": max(1, min(len(groups), int(room // LEGEND)))}


LEGEND = 112
"""Pixels of an entry of a legend."""
TEXT_FIELDS = frozenset(
    {"term", "factor", "response", "pair", "first", "second"}
    | {"config", "run", "slot", "state", "given", "scale", "row", "place"}
)
"""Fields of charts that hold words."""


def hover(*fields: str) -> list[alt.Tooltip]:
    """Hover text; numbers to four significant figures as in the tables."""
    titles = {"ci_low": "interval from", "ci_high": "to", "p_holm": "p (Holm)", "p_bh": "p (FDR)"}
    return [
        alt.Tooltip(f"{field}:N", title=titles.get(field, field))
        if field in TEXT_FIELDS
        else alt.Tooltip(f"{field}:Q", title=titles.get(field, field), format=".4~g")
        for field in fields
    ]


def scale_type(values: Sequence[object]) -> str:
    """Logarithmic where every value is positive, else linear."""
    positive = all(isinstance(value, (int, float)) and value > 0 for value in values)
    return "log" if positive else "linear"


def word(key: str) -> Any:
    """Return a number that is chosen with the data, where Altair wants it at once."""
    return f"{{{key}}}"


DECADES = 10.0
"""A logarithmic axis that spans more has labels at 1, 2 and 5 alone."""
FEW_LABELS = (
    "indexof('125', slice(format(datum.value, '.0e'), 0, 1)) < 0 ? '' : format(datum.value, '.3~g')"
)


def scale_words(values: Sequence[object]) -> dict[str, str]:
    """Return the words of an axis that is logarithmic where every value is positive."""
    kind = scale_type(values)
    known = [float(value) for value in values if isinstance(value, (int, float))]
    wide = kind == "log" and known and max(known) > DECADES * min(known)
    return {"scale": kind, "ticks": FEW_LABELS if wide else "datum.label"}


def chosen_scale(**more: Any) -> dict[str, Any]:
    """Scale and axis of data that choose them, as `scale_words` says; they end with the data."""
    axis = alt.Axis(labelExpr=word("ticks"), **more)
    return {"scale": alt.Scale(type=word("scale"), nice=False, padding=6), "axis": axis}


LINES = r"split(datum.label, '\n')"
"""A label that may have several lines."""


LOW = 100
"""Height of panels in several rows."""


def staggered(labels: Sequence[str], room: int) -> list[str]:
    """Names of levels, every other a line lower where one is wider than its room."""
    wide = any(text_width(label) > room for label in labels)
    return [f"\n{label}" if wide and i % 2 else label for i, label in enumerate(labels)]


def mean_by_level() -> alt.Chart:
    """Axes of main effects and interactions: the levels across, the mean up, not from zero."""
    return alt.Chart().encode(
        x=alt.X(
            "given:O",
            title=None,
            sort=None,
            axis=alt.Axis(
                labelAngle=0, labelLimit=400, labelOverlap=False, labelExpr=LINES, ticks=False
            ),
        ),
        y=alt.Y("mean:Q", title=None, scale=alt.Scale(zero=False)),
    )


def panels(
    data: str,
    field: str,
    *layers: alt.Chart,
    spacing: int = 8,
    height: Any = None,
) -> alt.FacetChart:
    """Layers in a panel for each value of a field by its rank, each with levels of its own."""
    faceted = alt.layer(*layers, width=word("width"), height=height or word("height")).facet(
        data=alt.NamedData(data),
        facet=alt.Facet(
            f"{field}:N",
            title=None,
            sort=alt.EncodingSortField("rank", op="min"),
            header=alt.Header(labelExpr=LINES),
        ),
        columns=word("columns"),
        spacing=spacing,
    )
    drawn: alt.FacetChart = faceted.resolve_scale(x="independent").properties(title="{mean}")
    return drawn


def mean_panels(data: str) -> alt.FacetChart:
    """Means at the levels of each factor with intervals, side by side on one scale."""
    base = mean_by_level().encode(tooltip=hover("factor", "given", "mean", "ci_low", "ci_high"))
    grand = alt.Chart().mark_rule(strokeDash=[2, 3]).encode(y="grand:Q")
    interval = base.mark_rule(strokeWidth=1.4, color=PLAIN).encode(y="ci_low:Q", y2="ci_high:Q")
    points = base.mark_circle(color=PLAIN, size=40, opacity=1)
    return panels(data, "factor", grand, base.mark_line(color=PLAIN), interval, points)


def panel_layout(panels: int, least: float) -> dict[str, int]:
    """Sizes of panels in rows of as many as have their least width; the page has more room."""
    most = max(1, min(panels, int(WIDTH // least)))
    rows = -(-panels // most)
    columns = -(-panels // rows)
    height = HEIGHT if rows == 1 else LOW
    sizes = {"columns": columns, "width": WIDTH // columns - 6, "height": height}
    return sizes | {"panels": panels, "least": round(least)}


def panel_title(factor: FactorColumn) -> str:
    """Return a factor above its panel: by its name, with its key where that is a letter."""
    if len(factor.key) > 1 or not factor.name:
        return factor.name or factor.key
    return factor_label(factor.key, factor.name).replace(" (", "\u00a0(")


def mean_record(mean: float, ci_low: float | None, ci_high: float | None) -> Record:
    """Return a mean with its interval; without one the interval has no length."""
    low = mean if ci_low is None else ci_low
    high = mean if ci_high is None else ci_high
    return {"mean": mean, "ci_low": low, "ci_high": high}
