"""One look for all charts: colours that colour-blind readers can distinguish, quiet axes."""

from __future__ import annotations

from typing import Any

HELPS, HARMS, NEITHER, PLAIN = "#00559A", "#E0752A", "#B9BEC6", "#627387"
"""One meaning each on the whole page, whatever the goal: better, worse, neither, and plain data.

They differ for colour-blind readers and, since no two are equally light, in grey.
"""
BEST = ("#00335E", HELPS, "#2F7FC1", "#6AA9DA", "#9CC8EA")
"""The best configurations, the very best first; dashes distinguish them as well."""
LEVELS = ("#A98BCB", "#6A3D9A")
"""The low and the high level of a factor."""
SEVERAL = ("#6A3D9A", "#0AA67B", "#CC79A7", "#E8B000", "#A98BCB", "#627387")
"""Levels of factors that may have more than two."""
GREY = "#8A8F98"
"""Lines that help to read and mean nothing."""
STATES = {
    "done": PLAIN,
    "diverged": "#E8B000",
    "failed": "#7A0A2E",
    "running": "#0AA67B",
    "pending": "#DADDE2",
}
DIVERGING = ("#A84A00", "#F0A66B", "#F2F2F2", "#6BAED6", "#00467F")
"""From worse to better, by t."""
RANKS = {
    "light": ("#F7B27A", "#C9AD98", "#8E9AA6", "#4A7BA6", "#0B5A8E"),
    "dark": ("#9A5420", "#8F7563", "#8595A5", "#6AAFE0", "#A6DBFF"),
}
"""From the worst run to the best, ever darker, or ever lighter on a dark ground."""
INK, PAPER = "#111111", "#FFFFFF"
"""Marks on pale and on deep colours."""

ON_DARK = {
    HELPS: "#8ACBF7",
    HARMS: "#C05A14",
    NEITHER: "#4C545E",
    PLAIN: "#8494A6",
    BEST[0]: "#C6E6FC",
    BEST[2]: "#5FA6DB",
    BEST[3]: "#3F7FB0",
    BEST[4]: "#2C5C82",
    LEVELS[0]: "#D9C8F0",
    LEVELS[1]: "#A47FD6",
    STATES["diverged"]: "#E0AC1E",
    STATES["failed"]: "#FFD9E2",
    STATES["running"]: "#12875F",
    STATES["pending"]: "#343B44",
    DIVERGING[0]: "#F08A3C",
    DIVERGING[1]: "#8A4B1C",
    DIVERGING[2]: "#2A3038",
    DIVERGING[3]: "#2F6E9E",
    DIVERGING[4]: "#8DCDF9",
    INK: "#F2F2F2",
    PAPER: "#14171B",
}
"""What takes a colour's place on a dark ground, where what matters is light."""

FONT = "Helvetica Neue, Helvetica, Arial, Liberation Sans, sans-serif"
WIDTH, HEIGHT = 300, 230
"""Plot area in pixels; with its axes about 360 wide, so that 12 px text is 8 pt in a column."""
FULL = 360
STEP = 16
"""Pixels from one labelled row to the next."""
FIT: Any = {"type": "fit-x", "contains": "padding"}
"""For charts whose labels may be long: the width with all of them, and the plot takes the rest."""


def config(*, dark: bool) -> dict[str, Any]:
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
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "titlePadding": 6,
            "domainColor": rule,
            "tickColor": rule,
            "tickSize": 4,
            "gridColor": faint,
            "labelLimit": 160,
            "labelSeparation": 5,
        },
        "legend": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 12,
            "titleFontSize": 12,
            "titleFontWeight": "normal",
            "orient": "top",
            "offset": 8,
            "symbolSize": 60,
        },
        "header": {
            "labelColor": ink,
            "titleColor": ink,
            "labelFontSize": 12,
            "labelFontWeight": 600,
            "labelPadding": 4,
            "title": None,
        },
        "title": {"color": ink, "fontSize": 12, "fontWeight": "normal", "anchor": "start"},
        "text": {"color": ink, "fontSize": 12},
        "rule": {"color": rule},
        "point": {"filled": True, "size": 36, "opacity": 0.9},
        "range": {"diverging": list(DIVERGING)},
    }
