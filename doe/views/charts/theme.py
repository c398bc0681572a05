"""One look for all charts: colours that colour-blind readers can tell apart, quiet axes."""

from __future__ import annotations

from typing import Any

BLUE = "#0072B2"
ORANGE = "#D55E00"
GREEN = "#009E73"
YELLOW = "#E69F00"
SKY = "#56B4E9"
PINK = "#CC79A7"
GREY = "#8A8F98"
"""Okabe and Ito's colours; helps is blue and harms is orange in every view."""

HELPS, HARMS, NEUTRAL = BLUE, ORANGE, GREY
CATEGORIES = (BLUE, ORANGE, GREEN, PINK, YELLOW, SKY, "#7F5AB6", GREY)
STATES = {
    "done": BLUE,
    "diverged": YELLOW,
    "failed": ORANGE,
    "running": GREEN,
    "pending": GREY,
}
DIVERGING = ("#0B5A8E", "#6BAED6", "#F2F2F2", "#F4A261", "#B34700")
"""Blue for effects that lower the response, orange for those that raise it."""

ON_DARK = {BLUE: "#4BA3DA", ORANGE: "#EE7D3C", "#111111": "#0B0D10"}
"""Colours that are too dim on a dark ground, and what takes their place there."""

FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
WIDTH, HEIGHT = 300, 220
"""Plot area in pixels; with its axes about 360 wide, so that 10 px text is 6.6 pt in a column."""


def config(dark: bool = False) -> dict[str, Any]:
    """Vega-Lite configuration, on a light or a dark ground."""
    ink = "#D8DCE2" if dark else "#24292F"
    faint = "#2A3038" if dark else "#E4E7EB"
    rule = "#6B7280" if dark else "#9AA1AB"
    return {
        "background": None if dark else "white",
        "font": FONT,
        "view": {"stroke": None},
        "axis": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 10,
            "titleFontSize": 11,
            "titleFontWeight": "normal",
            "titlePadding": 6,
            "domainColor": rule,
            "tickColor": rule,
            "tickSize": 4,
            "gridColor": faint,
            "labelLimit": 160,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 10,
            "titleFontSize": 10,
            "titleFontWeight": "normal",
            "orient": "top",
            "offset": 4,
            "symbolSize": 60,
        },
        "header": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 10,
            "labelPadding": 4,
            "title": None,
        },
        "title": {"color": ink, "fontSize": 11, "fontWeight": "normal", "anchor": "start"},
        "text": {"color": ink, "fontSize": 10},
        "rule": {"color": rule},
        "point": {"filled": True, "size": 36, "opacity": 0.9},
        "range": {"category": list(CATEGORIES), "diverging": list(DIVERGING)},
    }
