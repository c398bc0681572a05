"""Model of a chart: a drawing that holds no number, and the data that fill it.

A drawing is made once by Altair and refers to its data by name and to its wording by ``{key}``. The
same drawing is filled here to be saved as PDF, SVG and PNG, and in the browser for whichever
response is selected, so there is one definition of each chart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from doe.analysis.analyze import Analysis
from doe.results.report import Report
from doe.views.charts.theme import config
from doe.views.figures import Spec

if TYPE_CHECKING:
    import altair as alt

Record = dict[str, str | int | float | bool | None]
Word = str | int | float | list[str] | list[float]
"""A text, its lines, or a number of a drawing."""


class ChartData(NamedTuple):
    """Content of a drawing: data by name, and words by key."""

    datasets: dict[str, list[Record]]
    words: Mapping[str, Word] = {}


class ResponseChart(NamedTuple):
    """A chart of one response: how it is drawn, and the function that fills it."""

    position: int
    """Order of charts."""
    name: str
    title: str
    caption: str
    """How to read it, in a sentence."""
    draw: Callable[[], alt.TopLevelMixin]
    data: Callable[[Report, str], ChartData | None]
    """None where the study has nothing to fill it."""
    section: Literal["response", "checks"] = "response"
    """Section of the page."""


class StudyChart(NamedTuple):
    """A chart of the whole study."""

    position: int
    section: Literal["first", "failures", "all", "runs", "files"]
    """Section of the page; a chart for files alone has another form there."""
    name: str
    title: str
    caption: str
    draw: Callable[[], alt.TopLevelMixin]
    data: Callable[[Report], ChartData | None]


Chart = ResponseChart | StudyChart


def of_analysis(
    data: Callable[[Analysis], ChartData | None],
) -> Callable[[Report, str], ChartData | None]:
    """Fill a chart from the analysis of a response, where there is one."""

    def filled_from(report: Report, response: str) -> ChartData | None:
        analysis = report.analyses.get(response)
        return None if analysis is None else data(analysis)

    return filled_from


def spec(chart: Chart) -> Spec:
    """Return the Vega-Lite form of a chart, without data and words."""
    from altair.utils.schemapi import debug_mode

    # Words stand where the schema wants names of scales; the filled form is what must be valid.
    with debug_mode(False):
        made = chart.draw().to_dict(validate=False)
    made.pop("datasets", None)
    made.pop("config", None)
    return made


def filled(drawing: Spec, data: ChartData) -> Spec:
    """Return a drawing with its data, words and look, complete for any Vega-Lite renderer."""
    worded: Spec = _with_words(drawing, data.words)
    return worded | {"datasets": data.datasets, "config": config(dark=False)}


def _with_words(part: Any, words: Mapping[str, Word]) -> Any:
    if isinstance(part, dict):
        return {key: _with_words(value, words) for key, value in part.items()}
    if isinstance(part, list):
        return [_with_words(value, words) for value in part]
    if isinstance(part, str) and part.startswith("{") and part.endswith("}"):
        return words.get(part[1:-1], part)
    return part
