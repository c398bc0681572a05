"""Charts that check the model: residuals, predictions, spread, the choice of a scale."""

from __future__ import annotations

import math
from statistics import fmean
from typing import Any

import numpy as np

from doe.analysis.analyze import Analysis
from doe.analysis.diagnostics import Residual
from doe.results.report import Report
from doe.views.charts import alt
from doe.views.charts.model import ChartData, Record, ResponseChart, Word, of_analysis
from doe.views.charts.shared import chosen_scale, hover, scale_words, word
from doe.views.charts.theme import FIT, FULL, GREY, HEIGHT, PAPER, PLAIN, WIDTH
from doe.views.words import unit_text

LEAST_PANEL, BESIDE = 126, 58
"""Pixels of a panel, and of the axis and the gap beside it."""


def draw_residuals() -> alt.TopLevelMixin:
    """Draw four panels: against fitted values, normal quantiles and run order, and their
    histogram.
    """
    base = alt.Chart(alt.NamedData("residuals"))
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(strokeDash=[3, 3]).encode(y="residual:Q")
    axis = alt.Axis(tickCount=5)
    y = alt.Y("residual:Q", title="Residual", axis=axis)
    tooltip = hover("run", "config", "residual", "fitted", "studentized")

    def points(field: str, title: str) -> alt.Chart:
        x = alt.X(f"{field}:Q", title=title, scale=alt.Scale(zero=False), axis=axis)
        dots = base.mark_circle(size=14, color=PLAIN, opacity=0.6)
        drawn: alt.Chart = dots.encode(x=x, y=y, tooltip=tooltip)
        return drawn

    line = alt.Chart(alt.NamedData("normal")).mark_line(color=GREY, strokeWidth=1)
    binned = base.transform_bin(["from", "to"], "residual", bin=alt.Bin(maxbins=24))
    histogram = binned.mark_bar(color=PLAIN, opacity=0.8).encode(
        x=alt.X("from:Q", title="Residual", scale=alt.Scale(zero=False), axis=axis),
        x2="to:Q",
        y=alt.Y("count()", title="Runs", axis=alt.Axis(tickCount=5, tickMinStep=1)),
    )

    def panel(*layers: alt.Chart) -> Any:
        return alt.layer(*layers, width=word("width"), height=word("height"))

    return alt.concat(
        panel(zero, points("fitted", "Fitted")),
        panel(line.encode(x="normal:Q", y="residual:Q"), points("normal", "Normal quantile")),
        panel(zero, points("order", "Run order")),
        panel(histogram),
        columns=word("columns"),
        spacing=14,
    )


def residual_data(analysis: Analysis) -> ChartData | None:
    """Residuals in run order; None in a saturated design, which has none."""
    residuals = analysis.diagnostics.residuals
    if not residuals:
        return None
    rows: list[Record] = [
        {
            "run": r.run_id,
            "config": r.config,
            "order": r.run_order,
            "fitted": r.fitted,
            "residual": r.residual,
            "normal": r.normal_quantile,
            "studentized": r.studentized,
        }
        for r in residuals
    ]
    ends = [min(r.normal_quantile for r in residuals), max(r.normal_quantile for r in residuals)]
    slope = analysis.diagnostics.spread or 0.0
    normal: list[Record] = [{"normal": x, "residual": slope * x} for x in ends]
    layout = {"columns": 2, "width": LEAST_PANEL, "height": 100, "panels": 4}
    words: dict[str, Word] = {**layout, "least": LEAST_PANEL, "gap": BESIDE}
    return ChartData({"residuals": rows, "zero": [{"residual": 0.0}], "normal": normal}, words)


RESIDUALS = ResponseChart(
    60,
    "residuals",
    "Residuals",
    "A funnel against the fitted values suggests a transformation, a bent normal plot suggests "
    "robust methods, and a trend over run order suggests checking the machines.",
    draw_residuals,
    of_analysis(residual_data),
    "checks",
)


# Observed and predicted ---------------------------------------------------------------------------


def draw_observed_predicted() -> alt.TopLevelMixin:
    """Return a dot for each configuration; on the line both are equal."""
    x = alt.X("predicted:Q", title="{predicted}", **chosen_scale())
    y = alt.Y("observed:Q", title="{observed}", **chosen_scale())
    points = alt.Chart(alt.NamedData("configs"))
    return alt.layer(
        alt.Chart(alt.NamedData("equal")).mark_line(color=GREY, strokeWidth=1).encode(x=x, y=y),
        points.mark_circle(size=34, color=PLAIN, opacity=0.8).encode(
            x=x, y=y, tooltip=hover("config", "predicted", "observed", "runs")
        ),
    ).properties(width=WIDTH, height=HEIGHT)


def predicted_data(report: Report, response: str) -> ChartData | None:
    """Return the configurations with runs and a prediction, on a surface that of the surface."""
    analysis = report.analyses.get(response)
    if analysis is None:
        return None
    rows: list[Record] = [
        {"config": at.config, "predicted": at.mean, "observed": at.observed, "runs": at.n}
        for at in analysis.predictions
        if at.mean is not None and at.observed is not None
    ]
    if analysis.surface is not None and analysis.surface.kind is not None:
        rows = _on_surface(analysis)
    if len(rows) < 2:
        return None
    values = [float(row[key] or 0.0) for row in rows for key in ("predicted", "observed")]
    equal: list[Record] = [
        {"predicted": end, "observed": end} for end in (min(values), max(values))
    ]
    unit = unit_text(report.subject.responses.unit_of(response))
    geometric = any(at.geometric for at in analysis.predictions)
    predicted = "Predicted geometric mean" if geometric else "Predicted"
    words = {"observed": f"Observed mean {response}{unit}", "predicted": predicted}
    words |= scale_words(values)
    return ChartData({"configs": rows, "equal": equal}, words)


def _on_surface(analysis: Analysis) -> list[Record]:
    """Return each configuration as the fitted surface has it, wherever it lies."""
    back = analysis.transform.scale.back
    by_config: dict[str, list[Residual]] = {}
    for residual in analysis.diagnostics.residuals:
        by_config.setdefault(residual.config, []).append(residual)
    return [
        {
            "config": config,
            "predicted": float(back(np.array(fmean(r.fitted for r in runs)))),
            "observed": float(back(np.array(fmean(r.fitted + r.residual for r in runs)))),
            "runs": len(runs),
        }
        for config, runs in by_config.items()
    ]


OBSERVED_PREDICTED = ResponseChart(
    55,
    "observed-predicted",
    "Observed against predicted",
    "Each dot is a configuration: its mean against the prediction of the model of significant "
    "effects, or of the fitted surface; on the line both are equal.",
    draw_observed_predicted,
    predicted_data,
)


# Spread -------------------------------------------------------------------------------------------


def draw_replicate_spread() -> alt.TopLevelMixin:
    """Draw the standard deviation between replicates against the mean, a point per
    configuration.
    """
    points = alt.Chart(alt.NamedData("spread")).mark_circle(size=34, color=PLAIN, opacity=0.75)
    drawn: alt.Chart = points.encode(
        x=alt.X("mean:Q", title="{mean}", **chosen_scale()),
        y=alt.Y("std:Q", title="{std}", **chosen_scale()),
        tooltip=hover("config", "mean", "std"),
    )
    return drawn.properties(width=WIDTH, height=HEIGHT)


def spread_data(report: Report, response: str) -> ChartData | None:
    """Mean and standard deviation of each configuration with two runs or more; three at least."""
    unit = unit_text(report.subject.responses.unit_of(response))
    spreads = {c.config: c.spreads[response] for c in report.subject.cells if response in c.spreads}
    rows: list[Record] = [
        {"config": config, "mean": spread.mean, "std": spread.std}
        for config, spread in spreads.items()
        if spread.std is not None
    ]
    words = {
        "mean": f"Mean {response}{unit}",
        "std": f"Replicate std{unit}",
        **scale_words([row[key] for row in rows for key in ("mean", "std")]),
    }
    return ChartData({"spread": rows}, words) if len(rows) > 2 else None


REPLICATE_SPREAD = ResponseChart(
    80,
    "replicate-spread",
    "Spread between replicates",
    "Configurations high up differ most from seed to seed.",
    draw_replicate_spread,
    spread_data,
    "checks",
)


# Raw and log scale --------------------------------------------------------------------------------


TERMS = 12
"""Terms in the chart, those with the largest share on either scale."""
REST = "all else"


def draw_scales() -> alt.TopLevelMixin:
    """Return a line from the share on the raw scale to that on the log scale, term by term."""
    base = alt.Chart(alt.NamedData("shares")).encode(
        y=alt.Y("term:N", sort=None, title=None),
        tooltip=hover("term", "raw", "log"),
    )
    ends = alt.Chart(alt.NamedData("ends")).encode(
        y=alt.Y("term:N", sort=None, title=None),
        x=alt.X("share:Q", title="Share of the variation in %", axis=alt.Axis(titleAnchor="end")),
        fill=alt.Fill(
            "scale:N",
            title=None,
            scale=alt.Scale(domain=["raw", "log"], range=[PAPER, PLAIN]),
            legend=alt.Legend(symbolStrokeColor=PLAIN, symbolStrokeWidth=1.5),
        ),
        tooltip=hover("term", "scale", "share"),
    )
    return alt.layer(
        base.mark_rule(color=PLAIN, strokeWidth=1.4).encode(x="raw:Q", x2="log:Q"),
        ends.mark_point(shape="circle", size=50, stroke=PLAIN, strokeWidth=1.5, opacity=1),
    ).properties(width=FULL, height=HEIGHT, autosize=FIT)


def scales_data(report: Report, response: str) -> ChartData | None:
    """Return the terms with the largest shares, and what they and all others leave."""
    analysis = report.analyses.get(response)
    both = None if analysis is None else analysis.scales
    if both is None:
        return None
    ranked = sorted(both.terms, key=lambda t: -max(t.percent, t.log_percent))[:TERMS]
    rows: list[Record] = [{"term": t.term, "raw": t.percent, "log": t.log_percent} for t in ranked]
    shown = [sum(t.percent for t in ranked), sum(t.log_percent for t in ranked)]
    rows.append({"term": REST, "raw": 100.0 - shown[0], "log": 100.0 - shown[1]})
    ends: list[Record] = [
        {"term": row["term"], "scale": scale, "share": row[scale]}
        for row in rows
        for scale in ("raw", "log")
    ]
    return ChartData({"shares": rows, "ends": ends})


SCALES = ResponseChart(
    85,
    "scales",
    "Raw and log side by side",
    "Share of the variation that each term explains on the raw scale (open) and on the log scale "
    "(filled). Interactions that shrink on the log scale belong to factors that multiply.",
    draw_scales,
    scales_data,
    "checks",
)


# Box-Cox profile ----------------------------------------------------------------------------------


def draw_box_cox() -> alt.TopLevelMixin:
    """Draw the profile log-likelihood of the exponent, its interval, and the best value."""
    profile = alt.Chart(alt.NamedData("profile")).mark_line(color=PLAIN)
    span = alt.Chart(alt.NamedData("span"))
    return alt.layer(
        span.mark_rect(color=PLAIN, opacity=0.13).encode(x="low:Q", x2="high:Q"),
        profile.encode(
            x=alt.X(
                "exponent:Q",
                title="Exponent λ (0: logarithm, 1: none)",
                axis=alt.Axis(tickCount=5),
            ),
            y=alt.Y("loglik:Q", title="Log-likelihood", scale=alt.Scale(zero=False)),
            tooltip=hover("exponent", "loglik"),
        ),
        span.mark_rule(color=GREY).encode(x="exponent:Q"),
    ).properties(width=WIDTH, height=HEIGHT)


def box_cox_data(analysis: Analysis) -> ChartData | None:
    """Return the profile; None where the response is not positive or was transformed already."""
    profile = analysis.diagnostics.boxcox
    if profile is None:
        return None
    curve: list[Record] = [
        {"exponent": x, "loglik": y}
        for x, y in zip(profile.grid, profile.loglik, strict=True)
        if math.isfinite(y)
    ]
    ends = sorted([profile.exponent, *(float(row["exponent"] or 0.0) for row in curve)])
    low, high = max(profile.low, ends[0]), min(profile.high, ends[-1])
    span: list[Record] = [{"exponent": profile.exponent, "low": low, "high": high}]
    return ChartData({"profile": curve, "span": span})


BOX_COX = ResponseChart(
    90,
    "box-cox",
    "Box–Cox profile",
    "The likeliest power of the response with its interval (shaded).",
    draw_box_cox,
    of_analysis(box_cox_data),
    "checks",
)

CHARTS = (RESIDUALS, OBSERVED_PREDICTED, REPLICATE_SPREAD, SCALES, BOX_COX)
