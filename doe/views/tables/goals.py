"""Several goals: the Pareto front, the best within limits, desirability and its weights."""

from __future__ import annotations

from collections.abc import Sequence

from doe.analysis.desirability import Desirability, Desirable
from doe.analysis.goals import GoalMean, ParetoPoint, WithinLimits
from doe.analysis.trade_off import TradeOff
from doe.numbers import confidence, with_interval
from doe.results.report import Report
from doe.views.table import Column, Mark, Row, Table, rows_of
from doe.views.tables import StudyTables

ORDER = {"front": 0, "undecided": 1, "dominated": 2}
KEEPS = {"yes": "within the limits", "no": "beyond them", "unclear": "possibly beyond them"}
EXTREMES = {"min": "Smallest", "max": "Largest"}


def goal_sentences(trade: TradeOff) -> list[str]:
    """Return what several responses say together."""
    sentences = [trade.sentence]
    sentences += [_within_sentence(best) for best in trade.within_limits]
    wanted = trade.desirability
    if wanted is not None:
        sentences.append(wanted.sentence)
        if wanted.model is not None and wanted.model.overall > 0:
            model = wanted.model
            value = _span(model.overall, model.ci_low, model.ci_high)
            sentences.append(
                f"The models predict the highest desirability at {wanted.model.config}: {value}, "
                f"{_means(wanted.model.means)}; not yet run."
            )
    return sentences


def _within_sentence(best: WithinLimits) -> str:
    limits = " and ".join(best.constraints)
    who = "configuration that ran" if best.ran else "configuration of the models"
    if not best.config:
        return f"No {who} meets {limits}: loosen the limit, or try other levels."
    certain = KEEPS[best.keeps or "unclear"]
    where = "" if best.ran else " by the models, not yet run"
    return (
        f"{EXTREMES[best.goal]} {best.response} with {limits}{where}: {best.config}, "
        f"{_means(best.means)}; it is {certain} by its intervals."
    )


def _means(means: Sequence[GoalMean]) -> str:
    return ", ".join(
        f"{mean.response} {_span(mean.mean, mean.ci_low, mean.ci_high)}" for mean in means
    )


def _span(value: float, low: float | None, high: float | None) -> str:
    """Return a value with its interval: "82.1 (81.9 to 82.4)"."""
    text, *ends = with_interval(value, low, high)
    return f"{text} ({' to '.join(ends)})" if ends else text


def goal_tables(trade: TradeOff, top: int | None = None) -> list[Table]:
    """Return the tables of several goals."""
    tables = [front_table(trade, top)]
    if trade.within_limits:
        tables.append(within_table(trade))
    if trade.desirability is not None:
        tables.append(desirability_table(trade.desirability, trade.alpha, top))
        tables.append(weights_table(trade.desirability))
    return tables


def _columns(names: Sequence[str]) -> tuple[Column, ...]:
    """Return the mean of each response, and the ends of its interval beside it."""
    return tuple(
        Column(f"{name}_{end}" if end else name, end or name, "num", keep=not end and i < 4)
        for i, name in enumerate(names)
        for end in ("", "low", "high")
    )


def _values(means: Sequence[GoalMean]) -> tuple[float | None, ...]:
    return tuple(value for mean in means for value in (mean.mean, mean.ci_low, mean.ci_high))


def front_table(trade: TradeOff, top: int | None = None) -> Table:
    """Configurations by their place: on the front, undecided, dominated."""
    limited = any(point.keeps for point in trade.pareto)
    columns = (
        Column("config", "Configuration"),
        Column("place", "Place"),
        *((Column("keeps", "Within limits"),) if limited else ()),
        *_columns(trade.responses),
        Column("dominated_by", "Dominated by", keep=False),
    )
    sign = -1.0 if trade.goals[0] == "max" else 1.0
    points = sorted(trade.pareto, key=lambda p: (ORDER[p.place], sign * p.means[0].mean))
    rows = tuple(_front_row(point, limited) for point in points[:top])
    notes = [
        f"{trade.sentence} Dominated: another is better in every response; intervals and places "
        "allow for all configurations and responses. Marked: no other has better means in all."
    ]
    if top is not None and len(points) > top:
        notes.append(f"{len(points) - top} further configurations with --csv or --json.")
    return Table("pareto", "Pareto front", columns, rows, tuple(notes), essence=True)


def _front_row(point: ParetoPoint, limited: bool) -> Row:
    keeps = (point.keeps,) if limited else ()
    marks: dict[str, Mark] = {"config": "strong"} if point.estimated else {}
    values = (point.config, point.place, *keeps, *_values(point.means), point.dominated_by)
    return Row(values, marks=marks)


def within_table(trade: TradeOff) -> Table:
    """Return the best by each response within the limits, of those that ran and of the models."""
    columns = (
        Column("response", "Response"),
        Column("config", "Configuration"),
        Column("source", "Source"),
        Column("keeps", "Within limits"),
        *_columns(trade.responses),
    )
    empty = (None,) * (3 * len(trade.responses))
    rows = tuple(
        Row(
            (
                best.response,
                best.config or "none",
                "runs" if best.ran else "models",
                best.keeps,
                *(_values(best.means) or empty),
            )
        )
        for best in trade.within_limits
    )
    limits = ", ".join(trade.within_limits[0].constraints)
    title = f"Best configurations with {limits}"
    return Table("within limits", title, columns, rows, ())


def desirability_table(wanted: Desirability, alpha: float, top: int | None = None) -> Table:
    """Configurations by their overall desirability, the best of the models first."""
    columns = (
        Column("config", "Configuration"),
        Column("source", "Source"),
        Column("overall", "D", "fixed2"),
        Column("low", f"{confidence(alpha)} low", "fixed2"),
        Column("high", "high", "fixed2"),
        Column("share", "best in", "percent", keep=False),
        *(Column(f"d_{name}", f"d {name}", "fixed2", keep=False) for name in wanted.responses),
    )
    shown = [*([wanted.model] if wanted.model else []), *wanted.configs[:top]]
    notes = [
        wanted.sentence,
        "Intervals: bootstrap of whole runs, of each configuration alone; best in: share of the "
        "samples in which it is the most desirable that ran. Not yet confirmed with new seeds.",
    ]
    if top is not None and len(wanted.configs) > top:
        notes.append(f"{len(wanted.configs) - top} further configurations with --csv or --json.")
    rows = tuple(_desirable_row(d) for d in shown)
    return Table("desirability", "Overall desirability", columns, rows, tuple(notes))


def _desirable_row(d: Desirable) -> Row:
    share = None if d.share is None else 100.0 * d.share
    source = "runs" if d.ran else "models"
    return Row((d.config, source, d.overall, d.ci_low, d.ci_high, share, *d.single))


def weights_table(wanted: Desirability) -> Table:
    """Return what becomes the most desirable where one weight is halved or doubled."""
    columns = (
        Column("response", "Response"),
        Column("weight", "Weight", "short"),
        Column("config", "Most desirable"),
        Column("overall", "D", "fixed2"),
        Column("same", "unchanged"),
    )
    rows = rows_of(columns, wanted.weights)
    return Table("weights", "Sensitivity to the weights", columns, rows)


def _tables(report: Report) -> list[Table]:
    return [] if report.trade_off is None else goal_tables(report.trade_off)


ENTRIES = (StudyTables(15, "all", _tables, files="paper"),)
