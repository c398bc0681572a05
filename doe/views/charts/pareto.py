"""The Pareto chart of effects."""

from __future__ import annotations

from doe.analysis.analyze import Analysis
from doe.numbers import confidence
from doe.views.charts import alt
from doe.views.charts.model import ChartData, ResponseChart, of_analysis
from doe.views.charts.shared import direction, direction_of, effect_record, hover, word
from doe.views.charts.short import term_labels
from doe.views.charts.theme import FIT, FULL, STEP
from doe.views.words import effect_on

BARS = 16
"""Terms in the Pareto chart."""


def draw() -> alt.TopLevelMixin:
    """Bars of |effect|, the largest first, by whether they help."""
    order = alt.EncodingSortField("magnitude", order="descending")
    bars = alt.Chart(alt.NamedData("bars"))
    margin = alt.Chart(alt.NamedData("margins"))
    return alt.layer(
        bars.mark_bar(height=8).encode(
            x=alt.X("magnitude:Q", title="{magnitude}", axis=alt.Axis(titleAnchor="end")),
            y=alt.Y("short:N", sort=order, title=None),
            color=direction(),
            tooltip=hover("term", "effect", "ci_low", "ci_high", "p", "p_holm", "percent"),
        ),
        margin.mark_rule(strokeDash=[4, 3]).encode(x="magnitude:Q"),
        width=FULL,
        height=word("height"),
        autosize=FIT,
    )


def pareto_data(analysis: Analysis) -> ChartData:
    """The largest effects, and the margin beyond which one is significant by itself."""
    ranked = sorted(analysis.effects, key=lambda e: (-abs(e.effect), e.term))[:BARS]
    short = term_labels([effect.term for effect in ranked], [f.key for f in analysis.factors])
    bars = [
        effect_record(effect)
        | {
            "short": short[effect.term],
            "magnitude": abs(effect.effect),
            "direction": direction_of(effect, analysis),
        }
        for effect in ranked
    ]
    margin = _margin(analysis)
    margin_text = "".join(f"; dashed: {name}" for name, _ in margin)
    return ChartData(
        # Vega warns of an empty data set; a line at zero lies on the axis.
        {"bars": bars, "margins": [{"magnitude": at} for _, at in margin or [("", 0.0)]]},
        {
            "magnitude": f"|effect| on {effect_on(analysis)}" + margin_text,
            "height": STEP * max(len(bars), 3),
        },
    )


def _margin(analysis: Analysis) -> list[tuple[str, float]]:
    """Half the width of the interval of an effect where all share it, else Lenth's ME."""
    widths = [(e.ci_high or 0) - (e.ci_low or 0) for e in analysis.effects if e.ci_low is not None]
    if widths and max(widths) - min(widths) < 1e-6 * max(widths):
        return [(f"{confidence(analysis.alpha)} margin", widths[0] / 2)]
    if not widths and analysis.lenth is not None:
        return [("ME", analysis.lenth.me)]
    return []


CHART = ResponseChart(
    20,
    "pareto",
    "Pareto chart of effects",
    "The largest effects. Grey ones are not significant after Holm's adjustment for the number of "
    "terms; the dashed line is the margin of a single effect, so that a grey bar may cross it.",
    draw,
    of_analysis(pareto_data),
)
