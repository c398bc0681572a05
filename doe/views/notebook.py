"""Results in a notebook: sentences and tables as on the terminal, DataFrames, charts."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec
from markupsafe import Markup, escape
from rich.console import Console

from doe.analysis.analyze import Analysis
from doe.analysis.censored import CensoredAnalysis
from doe.analysis.trade_off import TradeOff
from doe.errors import DoeError, nearest
from doe.numbers import Value, cell_text
from doe.results.report import Report
from doe.views.headlines import headlines
from doe.views.table import Column, Table
from doe.views.tables import screen_tables
from doe.views.tables.goals import goal_sentences, goal_tables
from doe.views.tables.lost import censored_table
from doe.views.terminal import print_list, print_sentences, print_table
from doe.views.words import quantity

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

WIDTH = 80
TOP = 20
"""Rows of a table of configurations."""


class ResponseResult:
    """The analysis of one response, as a notebook shows it.

    Printed, it is what `doe analyze` prints; alone in a cell, tables in HTML. `analysis` holds
    every number as a frozen value. Each chart of the report is a method, as in `half_normal()`.
    """

    def __init__(self, report: Report, response: str) -> None:
        self.report, self.response = report, response
        self.analysis: Analysis = report.analyses[response]

    @property
    def effects(self) -> pd.DataFrame:
        """Effects with their errors, intervals and p-values, a row per term."""
        return _frame(self.analysis.effects)

    @property
    def anova(self) -> pd.DataFrame:
        """The analysis of variance, a row per source."""
        return _frame(self.analysis.anova.rows)

    @property
    def best(self) -> pd.DataFrame:
        """Means of the configurations, the best first."""
        ranked = self.analysis.best
        if ranked is None:
            raise DoeError(f"{self.response} has no goal; give it one, min or max")
        return _frame(ranked.cells)

    @property
    def charts(self) -> tuple[str, ...]:
        """Names of the charts that this response has."""
        from doe.views.charts import response_charts

        return tuple(_method(name) for name in response_charts(self.report, self.response))

    def chart(self, name: str) -> alt.TopLevelMixin:
        """Return a chart of the report, as an Altair object."""
        import altair as alt

        from doe.views.charts import catalogue, response_charts
        from doe.views.charts.model import filled, spec

        data = {_method(n): d for n, d in response_charts(self.report, self.response).items()}
        if name not in data:
            raise DoeError(
                f"{self.response} has no chart {name!r}{nearest(name, data)}; it has "
                f"{', '.join(data)}"
            )
        drawing = next(spec(chart) for chart in catalogue() if _method(chart.name) == name)
        made: alt.TopLevelMixin = alt.Chart.from_dict(filled(drawing, data[name]))
        return made

    def contour_chart(self, across: str, up: str) -> alt.TopLevelMixin:
        """Return the contour map of two factors, as an Altair object."""
        import altair as alt

        from doe.views.charts.model import filled, spec
        from doe.views.charts.surface import CONTOURS, contour_data

        data = contour_data(self.analysis, (across, up))
        if data is None:
            raise DoeError(f"{self.response} has no surface of two numbers to map")
        made: alt.TopLevelMixin = alt.Chart.from_dict(filled(spec(CONTOURS), data))
        return made

    def __getattr__(self, name: str) -> Callable[[], alt.TopLevelMixin]:
        if name not in _chart_methods():
            raise AttributeError(
                f"a result has no {name!r}{nearest(name, (*_chart_methods(), *dir(type(self))))}"
            )
        return partial(self.chart, name)

    def __dir__(self) -> Iterable[str]:
        return [*super().__dir__(), *_chart_methods()]

    def __repr__(self) -> str:
        return _printed(partial(print_sentences, self.analysis))

    def __str__(self) -> str:
        parts = [_printed(partial(print_table, t)) for t in screen_tables(self.analysis)]
        return "\n\n".join([repr(self), *parts])

    def _repr_html_(self) -> str:
        return str(Markup("\n").join([sentences_html(self.analysis), *self._tables_html()]))

    def _tables_html(self) -> list[Markup]:
        return [table_html(table) for table in screen_tables(self.analysis)]


class BoundsResult:
    """Bounds of the effects on a response with limits such as >50, as a notebook shows them."""

    def __init__(self, bounds: CensoredAnalysis) -> None:
        self.response, self.analysis = bounds.response, bounds

    @property
    def effects(self) -> pd.DataFrame:
        """The ends between which each effect lies, a row per term."""
        return _frame(self.analysis.effects)

    def __repr__(self) -> str:
        return _printed(partial(print_table, censored_table(self.analysis)))

    def _repr_html_(self) -> str:
        return str(table_html(censored_table(self.analysis)))


Result = ResponseResult | BoundsResult


class Results(Mapping[str, Result]):
    """Results by response."""

    def __init__(self, results: Iterable[Result]) -> None:
        self._results = {result.response: result for result in results}

    def __getitem__(self, response: str) -> Result:
        if response not in self._results:
            raise DoeError(
                f"{response!r} was not analysed{nearest(response, self._results)}; there are "
                f"{', '.join(self._results)}"
            )
        return self._results[response]

    def __iter__(self) -> Iterator[str]:
        return iter(self._results)

    def __len__(self) -> int:
        return len(self._results)

    @property
    def effects(self) -> pd.DataFrame:
        """Effects on every response, with a column that names it."""
        return self._joined("effects")

    @property
    def anova(self) -> pd.DataFrame:
        """The analyses of variance of every response."""
        return self._joined("anova")

    @property
    def best(self) -> pd.DataFrame:
        """Means of the configurations for every response, the best first."""
        return self._joined("best")

    @property
    def trade_off(self) -> TradeOff:
        """Every number of the responses together, as a frozen value."""
        trade = self._trade_off()
        if trade is None:
            raise DoeError("there is no trade-off; analyse at least two responses that have a goal")
        return trade

    @property
    def pareto(self) -> pd.DataFrame:
        """The place of each configuration among the goals, with its means."""
        trade = self.trade_off
        means = [{m.response: m.mean for m in point.means} for point in trade.pareto]
        return _frame(trade.pareto).drop(columns="means").join(_frame_of(means))

    @property
    def desirability(self) -> pd.DataFrame:
        """Configurations that ran by their overall desirability, the best first."""
        wanted = self.trade_off.desirability
        if wanted is None:
            raise DoeError("there is no desirability; give desires=['seconds=60..10', …]")
        return _frame(wanted.configs).drop(columns=["means", "single", "ran"])

    def trade_off_chart(self, across: str, up: str) -> alt.TopLevelMixin:
        """Two responses against each other with their front, as an Altair object."""
        import altair as alt

        from doe.views.charts.model import filled, spec
        from doe.views.charts.trade_off import TRADE_OFF, pair_data

        known = self.trade_off.responses
        for name in (across, up):
            if name not in known:
                raise DoeError(
                    f"{name!r} has no desirability{nearest(name, known)}; "
                    f"there are {', '.join(known)}"
                )
        report = self._analysed[0].report
        data = pair_data(report, across, up)
        assert data is not None
        made: alt.TopLevelMixin = alt.Chart.from_dict(filled(spec(TRADE_OFF), data))
        return made

    def _joined(self, what: str) -> pd.DataFrame:
        import pandas as pd

        frames: dict[str, pd.DataFrame] = {
            name: getattr(result, what)
            for name, result in self._results.items()
            if what == "effects" or isinstance(result, ResponseResult)
        }
        return pd.concat(frames, names=["response", None]).reset_index("response")

    def __repr__(self) -> str:
        parts = [repr(result) for result in self._results.values()]
        if (trade := self._trade_off()) is not None:
            title, lines = " and ".join(trade.responses), goal_sentences(trade)
            parts.append(_printed(lambda screen: print_list(title, lines, screen)))
        return "\n\n".join(parts)

    def _repr_html_(self) -> str:
        parts = [
            sentences_html(result.analysis)
            if isinstance(result, ResponseResult)
            else Markup(result._repr_html_())
            for result in self._results.values()
        ]
        if (trade := self._trade_off()) is not None:
            parts.append(list_html(" and ".join(trade.responses), goal_sentences(trade)))
            parts += [table_html(table) for table in goal_tables(trade, TOP)]
        return str(Markup("\n").join(parts))

    def _trade_off(self) -> TradeOff | None:
        return self._analysed[0].report.trade_off if self._analysed else None

    @property
    def _analysed(self) -> list[ResponseResult]:
        return [result for result in self._results.values() if isinstance(result, ResponseResult)]


def _chart_methods() -> tuple[str, ...]:
    """Names of all charts of a response, as methods."""
    from doe.views.charts import catalogue
    from doe.views.charts.model import ResponseChart

    return tuple(_method(c.name) for c in catalogue() if isinstance(c, ResponseChart))


def _method(name: str) -> str:
    return name.replace("-", "_")


def _frame(rows: Iterable[msgspec.Struct]) -> pd.DataFrame:
    return _frame_of([msgspec.to_builtins(row) for row in rows])


def _frame_of(rows: list[Any]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(rows)


def _printed(draw: Callable[[Console], None]) -> str:
    console = Console(file=io.StringIO(), width=WIDTH, highlight=False)
    draw(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip()


# HTML -------------------------------------------------------------------------------------------


def sentences_html(analysis: Analysis) -> Markup:
    """Return what a response says, as a list."""
    parts = headlines(analysis)
    lines = [*parts.effects, parts.best, *(f"Fragile: {doubt}" for doubt in parts.fragile)]
    return list_html(quantity(analysis), lines)


def list_html(title: str, lines: Iterable[str]) -> Markup:
    """Sentences below their title."""
    items = Markup("").join(Markup("<li>{}</li>").format(line) for line in lines)
    return Markup("<p><b>{}</b></p><ul>{}</ul>").format(title, items)


def table_html(table: Table) -> Markup:
    """Return a table with its written cells; bars, which repeat a number, are left out."""
    shown = [i for i, column in enumerate(table.columns) if column.format != "bar"]
    head = Markup("").join(Markup("<th>{}</th>").format(table.columns[i].title) for i in shown)
    rows = []
    for row in table.rows:
        if row.style == "section":
            rows.append(
                Markup('<tr><th colspan="{}">{}</th></tr>').format(len(shown), row.values[0])
            )
            continue
        cells = [(table.columns[i], row.values[i]) for i in shown]
        rows.append(Markup("<tr>{}</tr>").format(Markup("").join(_cell(*cell) for cell in cells)))
    notes = Markup("").join(Markup("<p><small>{}</small></p>").format(n) for n in table.notes)
    return Markup(
        '<table class="dataframe"><caption>{}</caption><thead><tr>{}</tr></thead>'
        "<tbody>{}</tbody></table>{}"
    ).format(table.title, head, Markup("").join(rows), notes)


def _cell(column: Column, value: Value) -> Markup:
    side = "right" if column.numeric else "left"
    return Markup('<td style="text-align:{}">{}</td>').format(
        side, escape(cell_text(value, column.format))
    )
