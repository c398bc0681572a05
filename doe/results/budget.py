"""Designs that fit a budget of hours or runs, each with what it can see."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec
import numpy as np

from doe.design.changes import with_overrides
from doe.design.fractions import resolution, roman
from doe.design.power import PowerQuestion, detectable_effect
from doe.design.runs import Run, make_design, stage_executions
from doe.errors import DoeError, counted
from doe.numbers import about
from doe.results.decision import decided_responses, decided_terms
from doe.results.designs import PlannedDesign, pilot_sigma, planned_design, power_by_stratum
from doe.results.looks import stopping_rule
from doe.store.files import StudyDir
from doe.store.plan import Plan, load_plan
from doe.store.scan import RunStatus, scan
from doe.store.stages import REUSED
from doe.study.checks import MOST_LOOKED_AT, MOST_PLANNED_RUNS, check_study, study_problems
from doe.study.values import (
    FACTORIAL,
    FIRST_LOOK,
    REPLICATE,
    Factor,
    Responses,
    Stopping,
    Study,
)

UNITS = {"s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0, "hours": 3600.0, "d": 86400.0}
UNITS |= {"minutes": 60.0, "days": 86400.0}
DURATION = re.compile(rf"(\d+\.?\d*|\.\d+)\s*({'|'.join(sorted(UNITS, key=len, reverse=True))})")
RUNS = re.compile(r"(\d+)\s*(runs)?")
POWERS = (0.8, 0.9)
CLEAR = 5
"""Resolution from which on main effects and two-factor interactions are told apart."""
MOST_REPLICATES = 99
"""Of a design that is offered."""
OWN = "as in the study"
"""The design that a study names itself, where it is no factorial."""


class Budget(NamedTuple):
    """Limit in time or runs."""

    seconds: float | None
    runs: int | None


class Known(NamedTuple):
    """Facts about a study before it is planned."""

    seconds: Callable[[Run], float] | None
    """How long a run or the execution of a stage takes; None where that is not known."""
    sigmas: dict[str, float]
    """Response -> standard deviation of single runs; empty to count in σ."""
    words: str
    """Where both come from."""
    places: int = 1
    """Runs at once."""
    logarithms: frozenset[str] = frozenset()
    """Responses whose σ is that of the logarithm, as they are analysed."""


class Offer(NamedTuple):
    """A design that fits the budget."""

    study: Study
    design: str
    runs: int
    hours: float | None
    detectable: tuple[float | None, ...]
    """Smallest effect seen with 80 and 90 %, in σ; None without an error to test against."""
    confounded: str
    resolution: float
    """Of a two-level fraction; infinite where nothing is confounded."""


def read_budget(text: str) -> Budget:
    """Read "40h", "90 min" or "200 runs"; a bare number is runs."""
    if (seconds := read_duration(text)) is not None:
        return Budget(seconds, None)
    if (match := RUNS.fullmatch(text.strip())) and int(match[1]) > 0:
        if int(match[1]) > MOST_PLANNED_RUNS:
            raise DoeError(f"budget {text!r}: a study has at most {MOST_PLANNED_RUNS} runs")
        return Budget(None, int(match[1]))
    raise DoeError(f"budget {text!r}: expected a time such as 40h, 90min or 2d, or runs: 200 runs")


def read_duration(text: str) -> float | None:
    """Seconds of a time such as "90s" or "2h"; None of another text."""
    match = DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * UNITS[match[2]] if match else 0.0
    return seconds if 0.0 < seconds < math.inf else None


def known_of(
    directory: Path | None, study: Study, run_time: str | None, sigma: float | None, places: int
) -> Known:
    """Return what finished runs of the study say of time and spread; what is declared takes
    precedence.
    """
    planned = directory is not None and StudyDir(directory).design.exists()
    plan = load_plan(directory) if directory is not None and planned else None
    if plan is not None and plan.study.factors != study.factors:
        plan = None
    seconds, words = _times(plan, run_time)
    sigmas: dict[str, float] = {}
    logarithms: frozenset[str] = frozenset()
    if sigma is not None:
        if not 0.0 < sigma < math.inf:
            raise DoeError(f"sigma {sigma:g}: expected a positive standard deviation of runs")
        sigmas = dict.fromkeys(study.responses.principal, sigma)
        words.append(f"σ = {sigma:g} as declared")
    elif plan is not None:
        scales = {name: study.responses.scale_of(name) for name in study.responses.principal}
        logarithms = frozenset(name for name, scale in scales.items() if scale == "log")
        for name in scales:
            try:
                sigmas[name] = pilot_sigma(plan, name, logarithm=name in logarithms)
            except DoeError:  # one replicate tells no spread
                continue
        words += ["σ from repeated runs"] if sigmas else []
    if places > 1:
        words.append(f"{places} runs at once")
    return Known(seconds, sigmas, ", ".join(words), places, logarithms)


def _times(
    plan: Plan | None, run_time: str | None
) -> tuple[Callable[[Run], float] | None, list[str]]:
    """Return how long runs and stages take, and where that comes from."""
    timed = [] if plan is None else _timed(plan.scan())
    stages: dict[str, list[float]] = {}
    for status in [] if plan is None else _timed(scan(plan.files, plan.stages)):
        if REUSED not in status.provenance:
            stages.setdefault(status.run.stage, []).append(status.seconds or 0.0)
    if run_time is not None:
        declared = read_duration(run_time)
        if declared is None:
            raise DoeError(f"the time of a run is {run_time!r}; expected it as in 90s or 2h")
        of_run: Callable[[Run], float] = lambda _: declared  # noqa: E731
        words = [f"{run_time} per run as declared"]
    elif timed:
        of_run = time_model(timed)
        words = [f"time from {counted(len(timed), 'finished run')}"]
    else:
        return None, []

    def seconds(run: Run) -> float:
        if not run.stage:
            return of_run(run)
        if run.stage not in stages:
            raise DoeError(
                f"the time of stage {run.stage} is not known before it has run once; give the "
                "budget in runs"
            )
        return sum(stages[run.stage]) / len(stages[run.stage])

    return seconds, words


def _timed(statuses: Sequence[RunStatus]) -> list[RunStatus]:
    """Runs that ended and say how long they took."""
    ended = [status for status in statuses if status.state in ("done", "diverged")]
    return [status for status in ended if status.seconds is not None]


def time_model(timed: Sequence[RunStatus]) -> Callable[[Run], float]:
    """Least squares of the seconds on the levels of every factor, which act additively."""
    levels = [s.run.levels for s in timed]
    names = sorted({(key, repr(value)) for own in levels for key, value in own.items()})
    at = {name: i for i, name in enumerate(names)}

    def row(own: dict[str, object]) -> np.ndarray:
        line = np.zeros(len(names))
        line[[at[k, repr(v)] for k, v in own.items() if (k, repr(v)) in at]] = 1.0
        return line

    y = np.array([s.seconds for s in timed], dtype=np.float64)
    mean = float(y.mean())
    X = np.stack([row(dict(own)) for own in levels])
    centre = X.mean(axis=0)
    coef = np.linalg.lstsq(X - centre, y - mean, rcond=1e-9)[0]
    least = float(y.min())
    return lambda run: max(mean + float((row(dict(run.levels)) - centre) @ coef), 0.5 * least)


def offers(study: Study, budget: Budget, known: Known) -> list[Offer]:
    """Designs of a study that fit, each with as many replicates as do, the clearest first.

    Among those that separate two-factor interactions, and among those that do not, the ones that
    detect the smallest effects come first; before all a design that the study names itself.

    Raises
    ------
    DoeError
        If nothing is known of the time of a run, or nothing fits.
    """
    if budget.seconds is not None and known.seconds is None:
        raise DoeError(
            "the time of a run is not known: declare it (run_time; `doe try` measures it), or give "
            "the budget in runs"
        )
    found: list[Offer] = []
    least = math.inf
    for name, one in _designs(study, budget, known):
        try:
            check_study(one)
            runs = make_design(one).runs
        except DoeError:
            continue  # a part that this study cannot have
        least = min(least, len(runs))
        found += _fitting(name, one, runs, budget, known)
    if not found:
        smallest = f"; the smallest takes {counted(int(least), 'run')}" if least < math.inf else ""
        raise DoeError(f"no design of this study fits the budget{smallest}")
    return sorted(
        found,
        key=lambda o: (
            not o.design.startswith(OWN),
            -min(o.resolution, CLEAR),
            o.detectable[0] or math.inf,
        ),
    )


def _designs(study: Study, budget: Budget, known: Known) -> Iterator[tuple[str, Study]]:
    """Yield one replicate of each design that is worth a look."""
    own = msgspec.structs.replace(study, stopping=None)
    own = with_overrides(own, None if own.streams else 1, None)
    plain = msgspec.structs.replace(own, design={}, fraction="")
    if own.kind != FACTORIAL:
        yield OWN, own
    yield "full factorial", plain
    doubled = tuple(1 << i for i in range(1, len(study.factors)))
    for part in doubled if study.two_level else (2, 3, 4, 6, 8, 9):
        if math.prod(study.sizes) // part > len(study.factors):
            try:
                yield f"1/{part} fraction", with_overrides(plain, None, f"1/{part}")
            except DoeError:
                continue
    size = 4 * (len(study.factors) // 4 + 1)
    if study.two_level and size & (size - 1):  # of a power of 2 it is a fraction
        yield "Plackett–Burman", msgspec.structs.replace(plain, design={"kind": "screening"})
    most = budget.runs
    if most is None:
        runs = make_design(plain).runs
        fixed, each = _seconds(plain, runs, known)
        most = int(((budget.seconds or 0.0) * known.places - fixed) / each * len(runs))
    width = sum(size - 1 for size in study.sizes)
    pairs = math.comb(len(study.sizes), 2)
    for model, columns in (("interactions", 1 + width + pairs), ("linear", 1 + width)):
        runs_of_it = min(most, 3 * columns)
        if columns < runs_of_it < math.prod(study.sizes) and not study.blocks:
            chosen = {"kind": "optimal", "runs": runs_of_it, "model": model}
            words = {"interactions": "with interactions", "linear": "for main effects"}[model]
            yield f"optimal {words}", msgspec.structs.replace(plain, design=chosen)


def _seconds(study: Study, runs: Sequence[Run], known: Known) -> tuple[float, float]:
    """Time of what is done once, whatever the replicates, and of a replicate.

    An execution of a stage counts once, however many runs share it.
    """
    assert known.seconds is not None
    stages = stage_executions(study, runs)
    once = [e for e in stages if study.stages[e.stage].seed != REPLICATE]
    each = [e for e in stages if study.stages[e.stage].seed == REPLICATE]
    return sum(map(known.seconds, once)), sum(map(known.seconds, (*runs, *each)))


def _fitting(
    name: str, one: Study, runs: Sequence[Run], budget: Budget, known: Known
) -> Iterator[Offer]:
    """Yield a design with the most replicates that fit, and stopping early where these are
    several.
    """
    each, fixed, seconds = len(runs), 0.0, 0.0
    if known.seconds is not None and (budget.seconds or not one.stages):
        fixed, seconds = (part / known.places for part in _seconds(one, runs, known))
    most = budget.runs // each if budget.runs else int(((budget.seconds or 0) - fixed) / seconds)
    most = (
        one.replicates
        if one.streams and most >= 1
        else min(most, MOST_PLANNED_RUNS // each, MOST_REPLICATES)
    )
    if most < 1:
        return

    def offer(replicates: int, words: str, rule: Stopping | None = None) -> Offer:
        study = with_overrides(one, None if one.streams else replicates, None)
        plan = Plan(Path(), study, make_design(study))
        design = planned_design(plan, order=_order(study, each))
        hours = (fixed + seconds * replicates) / 3600.0 if seconds else None
        if rule is None:
            effects = tuple(_detectable(plan, design, power) for power in POWERS)
        else:
            study = msgspec.structs.replace(study, stopping=rule)
            effects = tuple(_seen_by_looks(study, design, power) for power in POWERS)
        facts = (effects, _confounded(design), _resolution(study, design))
        return Offer(study, f"{name}, {words}", each * replicates, hours, *facts)

    yield offer(most, counted(most, "replicate"))
    looked = min(most, MOST_LOOKED_AT)
    if name == "full factorial" and looked >= FIRST_LOOK and not one.streams:
        stopping = offer(looked, f"at most {looked} replicates, until decided", Stopping(looked))
        if not study_problems(stopping.study):
            yield stopping


def _detectable(plan: Plan, design: PlannedDesign, power: float) -> float | None:
    """Return the smallest effect that every term is seen with at a power; None without an error."""
    if design.runs.stratified:
        strata = power_by_stratum(plan, PowerQuestion(target=power))
        seen = [line.detectable for line in strata]
        return None if None in seen else max((s for s in seen if s is not None), default=None)
    size = design.size
    return detectable_effect(1.0, size, target=power) if size.df_error >= 1 else None


def _seen_by_looks(study: Study, design: PlannedDesign, power: float) -> float:
    """Return the smallest effect that is called one by the last look, beside all other terms."""
    from doe.analysis.sequential import detectable

    rule, levels = stopping_rule(study), len(design.widest.levels)
    terms = decided_terms(study, design.runs)
    family = len(terms) * len(decided_responses(study))
    return detectable(design.first // rule.per_replicate, len(terms), family, rule, power, levels)


def _order(study: Study, runs: int) -> int | None:
    """Highest interactions of a model that leaves something of one replicate for the error; None
    for the usual model of a surface."""
    if study.kind == "surface":
        return None
    if study.kind == "screening" or study.design.get("model") == "linear":
        return 1
    wide = sum(size - 1 for size in study.sizes)
    columns = wide + math.comb(len(study.sizes), 2)
    return min(2, len(study.sizes)) if columns + 1 < runs * study.replicates else 1


def _resolution(study: Study, design: PlannedDesign) -> float:
    """Resolution of a regular fraction; between III and V of what else confounds something."""
    if study.kind == FACTORIAL and not study.parts:
        return resolution(study.generators) or math.inf
    return 3.5 if any(term.confounded for term in design.facts.terms) else 4.5


def _confounded(design: PlannedDesign) -> str:
    """Return what the design confounds, in a few words."""
    if design.regular:
        short = resolution(design.generators)
        if short is None or short > CLEAR:
            return "nothing up to 2-factor interactions"
        words = {
            3: "main effects with 2-factor interactions",
            4: "2-factor interactions with each other",
            5: "2-factor with 3-factor interactions",
        }
        return f"{words[short]} (resolution {roman(short)})"
    number = sum(bool(term.confounded) for term in design.facts.terms)
    if not number:
        return "nothing in its model"
    if design.order == 1:
        return "main effects partly with interactions"
    return f"{number} of {len(design.facts.terms)} terms partly, with others or left-out ones"


def two_levels(factors: int) -> Study:
    """Return a study of so many two-level factors, with the names of letters."""
    keys = "ABCDEFGHJKL"[:factors]
    levels = tuple(Factor(key=key, levels=("low", "high")) for key in keys)
    answers = Responses(metrics=("loss",))
    return Study(name="sketch", backend="train:run", factors=levels, responses=answers, seeds=(1,))


def suggestion(found: Sequence[Offer]) -> tuple[int, str]:
    """Return the number, from 0, of the design to take, and why."""
    tested = [o for o in found if o.detectable[0] is not None and o.study.stopping is None]
    best = (tested or list(found))[0]
    number = list(found).index(best)
    if best.detectable[0] is None:
        reason = "No design that fits leaves an error estimate; Lenth's method judges its effects"
    else:
        reason = (
            "Of the designs that confound least, it detects the smallest effects: "
            f"{about(best.detectable[0])} σ with 80 % power"
        )
    spare = max(offer.runs for offer in found) - best.runs
    left = f" It leaves {counted(spare, 'run')} to follow up what is confounded." * (
        spare > 0 and best.resolution < CLEAR
    )
    return number, f"{reason}. Confounded: {best.confounded}.{left}"
