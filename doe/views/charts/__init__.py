"""Every chart, defined once: saved for a paper, interactive in the page."""

from __future__ import annotations

from doe.views.charts.across import HEATMAP
from doe.views.charts.effects import HALF_NORMAL, PARETO
from doe.views.charts.fitted import BOX_COX, CELL_MEANS, RESIDUALS, SPREAD
from doe.views.charts.means import INTERACTIONS, MAIN
from doe.views.charts.model import Drawing
from doe.views.charts.runs import CURVES, TIMELINE

BY_RESPONSE: tuple[Drawing, ...] = (
    HALF_NORMAL,
    PARETO,
    MAIN,
    INTERACTIONS,
    CELL_MEANS,
    RESIDUALS,
    CURVES,
    SPREAD,
    BOX_COX,
)
"""Charts of one response, in the order of reading."""
OF_STUDY: tuple[Drawing, ...] = (HEATMAP, TIMELINE)
"""Charts of the whole study."""
