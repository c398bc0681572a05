"""The responses of a study or a table that are weighed against each other."""

from __future__ import annotations

from doe.analysis.analyze import fit_response
from doe.analysis.dataset import Dataset
from doe.analysis.fitted import FittedResponse
from doe.analysis.options import AnalysisOptions
from doe.analysis.trade_off import TradeOff, trade_off
from doe.errors import DoeError
from doe.goals import check_constraints, check_desires, parse_constraint, parse_desire
from doe.results.subject import Subject, study_datasets


def trade_off_of(subject: Subject, options: AnalysisOptions) -> TradeOff | None:
    """Weigh the responses that were read, and those that a constraint or desirability names.

    Averages stand for their metrics. None where nothing is to be weighed: one response, or no goal.

    Raises
    ------
    DoeError
        If a constraint or desirability was asked for that names no response or cannot be met.
    """
    known = subject.responses
    constraints = [*known.constraints, *options.constraints]
    desires = subject.desirability | dict(map(parse_desire, options.desires))
    names = known.names if subject.state else tuple(subject.data)
    problems: list[str] = []
    check_constraints(options.constraints, names, problems.append)
    if options.desires:
        goals = {name: known.goal_of(name) for name in names}
        check_desires(desires, names, goals, problems.append)
    for problem in problems:
        raise DoeError(problem)
    limits = [parse_constraint(text) for text in constraints]
    wanted = {*_weighed(subject), *(c.response for c in limits), *desires}
    asked = bool(options.constraints or options.desires)
    ordered = dict.fromkeys(name for name in (*subject.data, *names) if name in wanted)
    fits = _fits(subject, tuple(ordered), options, asked)
    present = {fitted.data.response for fitted in fits}
    limits = [limit for limit in limits if limit.response in present]
    desires = desires if present.issuperset(desires) else {}
    try:
        return trade_off(fits, limits, desires, subject.excluded, everywhere=_is_open(subject))
    except DoeError:
        if asked:
            raise
        return None


def _weighed(subject: Subject) -> list[str]:
    """Responses that were read, without metrics of an average and further ones, where others are.

    Where the study says how desirable its responses are, these alone.
    """
    averages = subject.responses.averages
    parts = {part for name, parts in averages.items() if name in subject.data for part in parts}
    own = [name for name in subject.data if name not in parts and name not in subject.desirability]
    if set(subject.desirability) & set(subject.data):
        return []
    first = [name for name in own if name not in subject.responses.further]
    return first if len(first) > 1 else own


def _fits(
    subject: Subject, names: tuple[str, ...], options: AnalysisOptions, asked: bool
) -> list[FittedResponse]:
    data: dict[str, Dataset] = dict(subject.data)
    absent = [name for name in names if name not in data]
    if absent and subject.state is not None:
        data |= study_datasets(subject.state.study, subject.state.statuses, absent)
    fits = []
    for name in names:
        if data[name].goal is None and not asked:
            continue
        try:
            fits.append(fit_response(data[name], options))
        except DoeError:
            if asked:
                raise
    return fits


def _is_open(subject: Subject) -> bool:
    """Whether configurations without runs can run: nothing restricts factors but exclusions."""
    if subject.state is None:
        return True
    study = subject.state.study
    return not study.design.get("constraints") and not any(f.when for f in study.factors)
