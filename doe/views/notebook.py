"""Results in a notebook: sentences and tables as on the terminal, DataFrames, charts."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from markupsafe import Markup, escape
from rich.console import Console

from doe.analysis.analyze import Analysis
from doe.errors import DoeError, nearest
from doe.numbers import Value, cell_text
from doe.results.report import Report
from doe.views.headlines import headlines
from doe.views.table import Column, Table
from doe.views.tables import screen_tables
from doe.views.terminal import print_sentences, print_table
from doe.views.words import quantity

if TYPE_CHECKING:
    import altair as alt
    import pandas as pd

WIDTH = 80


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
            raise DoeError(f"nobody said which way {self.response} is better; give it a goal")
        return _frame(ranked.cells)

    @property
    def charts(self) -> tuple[str, ...]:
        """Names of the charts that this response has."""
        from doe.views.charts import response_charts

        return tuple(_method(name) for name in response_charts(self.report, self.response))

    def chart(self, name: str) -> alt.TopLevelMixin:
        """A chart of the report, as an Altair object; of several levels, the chart for these."""
        import altair as alt

        from doe.views.charts import catalogue, response_charts
        from doe.views.charts.model import filled, spec

        data = {_method(n): d for n, d in response_charts(self.report, self.response).items()}
        name = name if name in data or f"level_{name}" not in data else f"level_{name}"
        if name not in data:
            raise DoeError(
                f"{self.response} has no chart {name!r}{nearest(name, data)}; it has "
                f"{', '.join(data)}"
            )
        drawing = next(spec(chart) for chart in catalogue() if _method(chart.name) == name)
        made: alt.TopLevelMixin = alt.Chart.from_dict(filled(drawing, data[name]))
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


class Results(Mapping[str, ResponseResult]):
    """Results by response."""

    def __init__(self, results: Iterable[ResponseResult]) -> None:
        self._results = {result.response: result for result in results}

    def __getitem__(self, response: str) -> ResponseResult:
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

    def _joined(self, what: str) -> pd.DataFrame:
        import pandas as pd

        frames: dict[str, pd.DataFrame] = {
            name: getattr(result, what) for name, result in self._results.items()
        }
        return pd.concat(frames, names=["response", None]).reset_index("response")

    def __repr__(self) -> str:
        return "\n\n".join(map(repr, self._results.values()))

    def _repr_html_(self) -> str:
        return "\n".join(str(sentences_html(r.analysis)) for r in self._results.values())


def _chart_methods() -> tuple[str, ...]:
    """Names of all charts of a response, as methods."""
    from doe.views.charts import catalogue
    from doe.views.charts.model import ResponseChart

    return tuple(_method(c.name) for c in catalogue() if isinstance(c, ResponseChart))


def _method(name: str) -> str:
    return name.replace("-", "_")


def _frame(rows: Iterable[msgspec.Struct]) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame([msgspec.to_builtins(row) for row in rows])


def _printed(draw: Callable[[Console], None]) -> str:
    console = Console(file=io.StringIO(), width=WIDTH, highlight=False)
    draw(console)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip()


# HTML -------------------------------------------------------------------------------------------


def sentences_html(analysis: Analysis) -> Markup:
    """What a response says, as a list."""
    parts = headlines(analysis)
    lines = [*parts.effects, parts.best, *(f"Fragile: {doubt}" for doubt in parts.fragile)]
    items = Markup("").join(Markup("<li>{}</li>").format(line) for line in lines)
    return Markup("<p><b>{}</b></p><ul>{}</ul>").format(quantity(analysis), items)


def table_html(table: Table) -> Markup:
    """A table with its written cells; bars, which repeat a number, are left out."""
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
