"""Charts of the fitted model: cell means, residuals, Box–Cox profile, spread of replicates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import altair as alt

from doe.analysis.values import Analysis, Residual
from doe.results.cells import Spread
from doe.views.charts.model import ChartData, Drawing, Record
from doe.views.charts.shared import chosen_scale, hover, scale_type
from doe.views.charts.theme import BLUE, GREEN, GREY, HEIGHT, ORANGE, WIDTH

CELLS = 24
"""Configurations shown with their names, the best ones first."""
PANEL = (126, 100)


def draw_cells() -> alt.TopLevelMixin:
    """Means of the best configurations with intervals, over the band of the best."""
    base = alt.Chart(alt.NamedData("cells")).encode(
        y=alt.Y("config:N", title=None, sort=None, axis=alt.Axis(labelFontSize=9)),
        tooltip=hover("config", "mean", "ci_low", "ci_high", "runs"),
    )
    colour = alt.Color(
        "group:N",
        title=None,
        scale=alt.Scale(domain=["among the best", "worse"], range=[GREEN, GREY]),
    )
    band = alt.Chart(alt.NamedData("band")).mark_rect(color=GREEN, opacity=0.14)
    return alt.layer(
        band.encode(x="from:Q", x2="to:Q"),
        base.mark_rule(strokeWidth=1.4).encode(
            x=alt.X("from:Q", title="{mean}", scale=alt.Scale(zero=False)),
            x2="to:Q",
            color=colour,
        ),
        base.mark_circle(size=34, opacity=1).encode(x="mean:Q", color=colour),
    ).properties(width=WIDTH - 20, height=alt.Step(11))


def cells_data(analysis: Analysis) -> ChartData:
    """The best configurations on the response scale; those not told from the best make the band.

    Without an error estimate there are no intervals, and none can be told from the best.
    """
    cells, untold = analysis.best.cells, analysis.best.critical is None
    among = [cell.mean for cell in cells if cell.among_best or untold]
    rows: list[Record] = [
        {
            "config": cell.config,
            "mean": cell.mean,
            "ci_low": cell.ci_low,
            "ci_high": cell.ci_high,
            "from": cell.mean if cell.ci_low is None else cell.ci_low,
            "to": cell.mean if cell.ci_high is None else cell.ci_high,
            "runs": cell.n,
            "group": "among the best" if cell.among_best or untold else "worse",
        }
        for cell in cells[:CELLS]
    ]
    unit = f" ({analysis.unit})" if analysis.unit else ""
    shown = [cell.mean for cell in cells[:CELLS]]
    reach = [m for m in among if min(shown) <= m <= max(shown)] if shown else []
    band: list[Record] = [{"from": min(reach), "to": max(reach)}] if reach else []
    return ChartData({"cells": rows, "band": band}, {"mean": f"Mean {analysis.response}{unit}"})


# Residuals --------------------------------------------------------------------------------------


def draw_residuals() -> alt.TopLevelMixin:
    """Four panels: against fitted values, normal quantiles and run order, and their histogram."""
    width, height = PANEL
    base = alt.Chart(alt.NamedData("residuals")).properties(width=width, height=height)
    zero = alt.Chart(alt.NamedData("zero")).mark_rule(strokeDash=[3, 3]).encode(y="residual:Q")
    y = alt.Y("residual:Q", title="Residual", axis=alt.Axis(tickCount=5))
    what = hover("run", "config", "residual", "fitted", "studentized")

    def points(field: str, title: str) -> alt.Chart:
        x = alt.X(
            f"{field}:Q", title=title, scale=alt.Scale(zero=False), axis=alt.Axis(tickCount=5)
        )
        dots = base.mark_circle(size=14, color=BLUE, opacity=0.6)
        drawn: alt.Chart = dots.encode(x=x, y=y, tooltip=what)
        return drawn

    line = alt.Chart(alt.NamedData("normal")).mark_line(color=GREY, strokeWidth=1)
    histogram = base.mark_bar(color=BLUE, opacity=0.8).encode(
        x=alt.X(
            "residual:Q", bin=alt.Bin(maxbins=24), title="Residual", axis=alt.Axis(tickCount=5)
        ),
        y=alt.Y("count()", title="Runs"),
    )
    return alt.concat(
        alt.layer(zero, points("fitted", "Fitted")),
        alt.layer(line.encode(x="normal:Q", y="residual:Q"), points("normal", "Normal quantile")),
        alt.layer(zero, points("order", "Run order")),
        histogram,
        columns=2,
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
    slope = _root_mean_square(residuals)
    normal: list[Record] = [{"normal": x, "residual": slope * x} for x in ends]
    return ChartData({"residuals": rows, "zero": [{"residual": 0.0}], "normal": normal})


def _root_mean_square(residuals: Sequence[Residual]) -> float:
    return math.sqrt(math.fsum(r.residual**2 for r in residuals) / len(residuals))


# Box–Cox ----------------------------------------------------------------------------------------


def draw_box_cox() -> alt.TopLevelMixin:
    """Profile log-likelihood of the exponent, its interval, and the best value."""
    profile = alt.Chart(alt.NamedData("profile")).mark_line(color=BLUE)
    span = alt.Chart(alt.NamedData("span"))
    return alt.layer(
        span.mark_rect(color=BLUE, opacity=0.13).encode(x="low:Q", x2="high:Q"),
        profile.encode(
            x=alt.X("exponent:Q", title="Exponent λ (0 is the logarithm, 1 no transformation)"),
            y=alt.Y("loglik:Q", title="Log-likelihood", scale=alt.Scale(zero=False)),
            tooltip=hover("exponent", "loglik"),
        ),
        span.mark_rule(color=ORANGE).encode(x="exponent:Q"),
    ).properties(width=WIDTH, height=HEIGHT - 50)


def box_cox_data(analysis: Analysis) -> ChartData | None:
    """The profile; None where the response is not positive or was transformed already."""
    profile = analysis.diagnostics.boxcox
    if profile is None:
        return None
    curve: list[Record] = [
        {"exponent": x, "loglik": y}
        for x, y in zip(profile.grid, profile.loglik, strict=True)
        if math.isfinite(y)
    ]
    span: list[Record] = [{"exponent": profile.exponent, "low": profile.low, "high": profile.high}]
    return ChartData({"profile": curve, "span": span})


# Spread -----------------------------------------------------------------------------------------


def draw_spread() -> alt.TopLevelMixin:
    """Standard deviation between replicates against the mean, a point per configuration."""
    points = alt.Chart(alt.NamedData("spread")).mark_circle(size=34, color=BLUE, opacity=0.75)
    drawn: alt.Chart = points.encode(
        x=alt.X("mean:Q", title="{mean}", scale=chosen_scale()),
        y=alt.Y("std:Q", title="{std}", scale=chosen_scale()),
        tooltip=hover("config", "mean", "std"),
    )
    return drawn.properties(width=WIDTH, height=HEIGHT - 40)


def spread_data(name: str, unit: str, cells: Mapping[str, Spread]) -> ChartData | None:
    """Mean and standard deviation of each configuration that has two runs or more."""
    rows: list[Record] = [
        {"config": config, "mean": spread.mean, "std": spread.std}
        for config, spread in cells.items()
        if spread.std is not None
    ]
    suffix = f" ({unit})" if unit else ""
    words = {
        "mean": f"Mean {name}{suffix}",
        "std": f"Replicate std{suffix}",
        "scale": scale_type([row["mean"] for row in rows] + [row["std"] for row in rows]),
    }
    return ChartData({"spread": rows}, words) if rows else None


CELL_MEANS = Drawing(
    "cell-means",
    "Best configurations",
    "Means with intervals, the best first. Those in green, over the band, cannot be told from the "
    "best (Hsu).",
    draw_cells,
)
RESIDUALS = Drawing(
    "residuals",
    "Residuals",
    "A funnel against the fitted values asks for a transformation; a bent normal plot for robust "
    "methods; a trend over run order for a look at the machines.",
    draw_residuals,
)
BOX_COX = Drawing(
    "box-cox",
    "Box–Cox profile",
    "The likeliest power of the response with its interval (shaded).",
    draw_box_cox,
)
SPREAD = Drawing(
    "replicate-spread",
    "Spread between replicates",
    "Configurations high up differ most from seed to seed.",
    draw_spread,
)
