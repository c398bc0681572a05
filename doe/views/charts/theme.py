"""One look for all charts: colours that colour-blind readers can tell apart, quiet axes."""

from __future__ import annotations

from typing import Any

BLUE = "#0072B2"
ORANGE = "#D55E00"
YELLOW = "#E69F00"
SKY = "#56B4E9"
PINK = "#CC79A7"
GREEN = "#009E73"
GREY = "#8A8F98"
SLATE = "#5A6C80"
PURPLE, LILAC = "#6A3D9A", "#A98BCB"

HELPS, HARMS, NEITHER, PLAIN = BLUE, ORANGE, GREY, SLATE
"""One meaning each on the whole page, whatever the goal: better, worse, neither, and plain data.

Okabe and Ito's blue and orange differ for colour-blind readers and, being dark and light, in grey.
"""
LEVELS = (LILAC, PURPLE)
"""The low and the high level of a factor."""
CATEGORIES = (PURPLE, GREEN, PINK, YELLOW, SKY, SLATE, LILAC, GREY)
"""Things that are neither better nor worse, such as configurations."""
STATES = {
    "done": SLATE,
    "diverged": YELLOW,
    "failed": ORANGE,
    "running": GREEN,
    "pending": "#C3C8CF",
}
DIVERGING = ("#B34700", "#F4A261", "#F2F2F2", "#6BAED6", "#0B5A8E")
"""From worse to better."""

ON_DARK = {
    BLUE: "#4BA3DA",
    ORANGE: "#EE7D3C",
    SLATE: "#94A6BA",
    PURPLE: "#A47FD6",
    LILAC: "#D9C8F0",
    "#F2F2F2": "#2A3038",
    "#111111": "#F2F2F2",
}
"""Colours that are too dim on a dark ground, and what takes their place there."""

FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
WIDTH, HEIGHT = 300, 230
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
