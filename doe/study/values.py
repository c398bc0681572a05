"""The study as frozen values. Its TOML form is in `file`, its checks are in `checks`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from functools import cache
from typing import Any, Literal, TypeVar

import msgspec

from doe.goals import Desire
from doe.terms import Generator, fraction_parts, parse_blocks, parse_generators

ENGINES = {
    "local": "doe.running.engines.local",
    "slurm": "doe.running.engines.slurm",
    "ray": "doe.running.engines.ray",
}
"""Modules of the engines by name; a study file may have a table for each."""
OWN = "{run_dir}"
"""Working directory of a command: a subdirectory of each run's own."""
FACTORIAL = "factorial"
"""Default kind of design."""
STUDY_FILE = "study.toml"
"""Name of a study file, as written by hand and as frozen in the directory of its plan."""
PYTHON = r"python[\d.]*"
"""Words for Python at the start of a command."""
NAME = "[A-Za-z][A-Za-z0-9_]*"
"""Valid keys of factors and names of responses and of streams of seeds."""
Level = bool | int | float | str
"""A factor level: any TOML scalar except a date."""
Goal = Literal["min", "max"]
ResponseScale = Literal["raw", "log", "logit", "auto"]
Setting = TypeVar("Setting", bound=str)
Default = TypeVar("Default", bound=str | None)

FIGURES = 4
"""Significant figures of a level between others, of its value or relative to its range."""
RUN_COLUMNS = ("run_id", "run_order", "row", "replicate", "block", "seed", "config")
"""Columns of design.csv and of the results before the factors."""
STATE_COLUMNS = ("state", "reason", "slot", "host", "started", "ended", "seconds", "imported")
"""Columns of the results between the factors and the responses."""
RECORDED = ("seconds", "gpu_memory")
"""Responses that are measured without being returned: the duration of a run, and the peak GPU
memory of its process in MB if torch reports it. A metric returned under these names takes
precedence."""


def is_name(text: str) -> bool:
    """Return whether a text can be a key or a name: a letter, or letters, digits and _."""
    return re.fullmatch(NAME, text) is not None


def covariate_step(text: str) -> tuple[str, float | None]:
    """Split "loss at 0" into a covariate's name and step; the step is None for a metric."""
    match = re.fullmatch(r"(.+) at (\d+)", text)
    return (match[1], float(match[2])) if match else (text, None)


def seed_columns(streams: Iterable[str]) -> tuple[str, ...]:
    """Return the columns with the seed of each stream, if a study has several."""
    return tuple(f"seed_{name}" for name in streams)


def seed_placeholders(streams: Iterable[str]) -> tuple[str, ...]:
    """Return the placeholder of each stream's seed in a command: `{seed.data}`."""
    return tuple(f"seed.{name}" for name in streams)


WHOLE_PLOT = "whole_plot"
"""Column of design.csv and of the results if some factors are hard to change."""


def coded_columns(keys: Iterable[str]) -> tuple[str, ...]:
    """Return the columns with levels coded around zero: −1 and +1 of two."""
    return tuple(f"{key}_coded" for key in keys)


class Factor(msgspec.Struct, frozen=True):
    """A factor with its levels, known by its key in terms, labels and tables."""

    key: str
    levels: tuple[Level, ...]
    """Two or more levels in order; `low` and `high` are the form for two."""
    name: str = ""
    description: str = ""
    scale: Literal["linear", "log"] = "linear"
    """Scale on which numeric levels have their middle, and on which their line and curve are
    fitted."""
    sets: dict[str, dict[str, Level]] = {}
    """Level -> the settings that it makes, if `levels` is a table of tables."""
    role: Literal["choice", "condition"] = "choice"
    """"condition" for what is given rather than chosen, such as a dataset: the best is sought over
    choices only."""
    hard: bool = False
    """Hard to change: runs that share its level in a replicate form a whole plot, run together, and
    the factor is tested against the variation between whole plots."""
    random: bool = False
    """For a condition: its levels are a sample of a population, and effects are tested against
    their variation over these levels."""
    when: str = ""
    """Level of another factor with which this one matters, as in "kernel=rbf"; with its other
    levels this one has its first."""
    listed: bool = False
    """Whether two numbers were given as `levels`, so that no value between them can run."""

    @property
    def ranged(self) -> bool:
        """Whether any number from `low` to `high` can run if the kind of design uses it."""
        return self.numeric and len(self.levels) == 2 and not self.listed

    @property
    def low(self) -> Level:
        """The first level."""
        return self.levels[0]

    @property
    def high(self) -> Level:
        """The last level."""
        return self.levels[-1]

    @property
    def numeric(self) -> bool:
        """Whether every level is a number; switches are not."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.levels)

    @property
    def centre(self) -> Level:
        """Middle of the scale between the smallest and the largest numeric level."""
        numbers = [float(level) for level in self.levels]
        low, high = min(numbers), max(numbers)
        middle = math.sqrt(low) * math.sqrt(high) if self.scale == "log" else low / 2 + high / 2
        middle = float(f"{middle:.12g}")
        return int(middle) if self.integer and middle.is_integer() else middle

    @property
    def integer(self) -> bool:
        """Whether every level is a whole number."""
        return self.numeric and all(isinstance(level, int) for level in self.levels)

    def position(self, level: Level) -> float:
        """Return where a number lies on the scale: −1 at the first level, +1 at the last."""
        at = math.log if self.scale == "log" else float
        low, high, value = (at(float(number)) for number in (self.low, self.high, level))
        return 2 * (value - low) / (high - low) - 1

    def level_at(self, position: float) -> Level:
        """Return the number at a position of the scale, rounded sensibly for its range.

        The ends and the middle are exact; between whole numbers it is the nearest one.
        """
        low, high = float(self.low), float(self.high)
        if position in (-1, 1) or (position == 0 and not self.integer):
            return (self.low, self.centre, self.high)[int(position) + 1]
        share = (position + 1) / 2
        if self.scale == "log":
            value = float(f"{low ** (1 - share) * high**share:.{FIGURES}g}")
        else:
            value = low + share * (high - low)
            value = round(value, FIGURES - 1 - math.floor(math.log10(abs(high - low))))
        return round(value) if self.integer else value


class Responses(msgspec.Struct, frozen=True):
    """The responses of a run, and which direction is better."""

    metrics: tuple[str, ...]
    """Metrics of `--response all`; every run must return them."""
    further: tuple[str, ...] = ()
    """Metrics that are collected, and analysed on request only."""
    averages: dict[str, tuple[str, ...]] = {}
    """Derived responses: the plain mean of some metrics."""
    goal: Goal | None = "min"
    """Which direction is better, min or max, for every response not in `goals`; None for a bare
    table."""
    unit: str = ""
    """Unit of the metrics, shown with effects."""
    units: dict[str, str] = {}
    """Units of single responses that differ from `unit`."""
    goals: dict[str, Goal] = {}
    """Goals of single responses that differ from `goal`."""
    scale: ResponseScale = "raw"
    """Scale of the analysis: raw values, logarithms, log odds of shares (0 to 1, or to 100 with the
    unit "%"), or auto, the transformation that Box–Cox suggests."""
    scales: dict[str, ResponseScale] = {}
    """Scales of single responses that differ from `scale`."""
    of: int | dict[str, int] = 0
    """Number of items of which responses on the log odds scale are shares, for all or for single
    responses."""
    matters: dict[str, float] = {}
    """The smallest effect on a response that is worth knowing."""
    titles: dict[str, str] = {}
    """Titles of responses in sentences and in the tables of a paper: "validation error"."""
    constraints: tuple[str, ...] = ()
    """Limits that a configuration has to meet to be chosen, as in "seconds <= 60"."""
    covariates: tuple[str, ...] = ()
    """Covariates, measured in each run before its factors act: a metric, or the value first
    reported, as in "loss at 0". Effects are adjusted for them."""

    @property
    def returned(self) -> tuple[str, ...]:
        """Metrics that every run must return, without those that are measured anyway."""
        return tuple(name for name in self.metrics if name not in RECORDED)

    @property
    def optional(self) -> tuple[str, ...]:
        """Metrics that a run may return."""
        return (*(name for name in self.metrics if name in RECORDED), *self.further)

    @property
    def names(self) -> tuple[str, ...]:
        """All responses: metrics, averages, further metrics."""
        return (*self.metrics, *self.averages, *self.further)

    @property
    def headline(self) -> tuple[str, ...]:
        """The first responses of a report: the averages, else the first two metrics."""
        return tuple(self.averages) or self.metrics[:2]

    @property
    def principal(self) -> tuple[str, ...]:
        """The default responses of an analysis: the averages, else all metrics."""
        return tuple(self.averages) or self.metrics

    def unit_of(self, name: str) -> str:
        """Return the unit of one response; for an average, the common unit of its metrics."""
        return self._of(name, self.units, self.unit)

    def goal_of(self, name: str) -> Goal | None:
        """Return which direction is better for one response; for an average, as for its metrics."""
        return self._of(name, self.goals, self.goal)

    def scale_of(self, name: str) -> ResponseScale:
        """Return the scale on which one response is analysed."""
        return self.scales.get(name, self.scale)

    def items_of(self, name: str) -> int:
        """Return the number of items of which a response is a share; for an average, of all its
        metrics."""
        if isinstance(self.of, int):
            counted = dict.fromkeys((*self.metrics, *self.further), self.of)
            counted = counted if self.scale_of(name) == "logit" else {}
        else:
            counted = self.of
        if name in counted or name not in self.averages:
            return counted.get(name, 0)
        items = [counted.get(part, 0) for part in self.averages[name]]
        return sum(items) if all(items) else 0

    def matters_of(self, name: str) -> float | None:
        """Return the smallest effect on one response that is worth knowing; None if not given."""
        return self.matters.get(name)

    def title_of(self, name: str) -> str:
        """Return the title of one response, or its name without one."""
        return self.titles.get(name, name)

    def _of(self, name: str, single: dict[str, Setting], every: Default) -> Setting | Default:
        """Look up a response, or else the metrics that it averages, or else the value for all."""
        if name not in single and name in self.averages:
            name = next((part for part in self.averages[name] if part in single), name)
        return single.get(name, every)


class Augment(msgspec.Struct, frozen=True):
    """Runs added to a planned study as new blocks: replicates, a fold-over, or further points."""

    seeds: tuple[int, ...] = ()
    """Seeds of further replicates of everything planned so far."""
    flip: tuple[str, ...] = ()
    """Factors whose levels are exchanged to give another part of the full factorial."""
    part: int = 0
    """Number, from 2, of a further part of a design that was planned as 1/N."""
    axial: float = 0.0
    """Distance of axial points from the centre; 1 for the ends of the ranges."""
    runs: int = 0
    """Number of runs of an optimal design added to the plan."""
    model: str = ""
    """The model for which an optimal design is made."""
    confirm: tuple[str, ...] = ()
    """Configurations to run again, with fresh seeds only: the best, the runner-up, the baseline."""
    response: str = ""
    """Response whose best configuration is confirmed."""
    points: tuple[tuple[Level, ...], ...] = ()
    """Levels of every factor: a path of steepest ascent, or with `confirm` the optimum."""


FIRST_LOOK = 2
"""The fewest replicates that leave an error to test against."""


class Stopping(msgspec.Struct, frozen=True):
    """Stopping rule of a study, applied at interim looks after each replicate or half replicate."""

    max_replicates: int
    """The last replicate, whether decided or not."""
    terms: tuple[str, ...] = ()
    """Terms to decide; by default the main effects and two-factor interactions."""
    responses: tuple[str, ...] = ()
    """Responses to decide them for; by default the averages, else all metrics."""
    spending: Literal["quadratic", "obrien-fleming", "pocock"] = "quadratic"
    """Error spending over the looks: with the square of the runs, mostly at the end, or evenly."""
    alpha: float = 0.05
    """Probability of any wrong statement, over all looks, terms and responses."""
    after: int = 0
    """Number of replicates complete when this was declared."""
    within: float = 0.0
    """Stop when a configuration is known to be this close to the best, in the unit of the response;
    0 to decide terms."""
    futility: float = 0.1
    """Stop when no open term has this probability of being decided by the end; 0 to continue."""
    rule: Literal[1, 2] = 2
    """Version of the rule. 1, for plans without this key: after whole replicates from the second
    on, with one interval for effects and for negligible terms."""


class Group(msgspec.Struct, frozen=True):
    """Responses that share a table of the report."""

    name: str
    """Short name, part of file names."""
    title: str
    responses: tuple[str, ...]
    effects: str = ""
    """Title of the table of effects on these responses; empty for no table."""
    baseline: dict[str, Level] = {}
    """Levels of the baseline configurations; empty for none."""


class ReportSection(msgspec.Struct, frozen=True):
    """Layout of the runs as the tables of a paper."""

    groups: tuple[Group, ...] = ()
    """One table of best configurations each; by default one per average."""
    further: Group | None = None
    """Metrics outside the groups, in a last table of best configurations."""
    split: str = ""
    """Factor whose levels split each table into parts."""
    drop: tuple[str, ...] = ()
    """Factors whose terms are omitted from the tables of effects."""
    prefix: str = ""
    """Prefix of the names of configuration tables."""
    capped: bool = False
    """In the table of all configurations, write a mean above 10, 20 or 50 as >10, >20, >50."""


class MetricsSection(msgspec.Struct, frozen=True):
    """Place where a command writes its metrics."""

    file: str = "metrics.json"
    """File in the run's directory: JSON, JSON lines, CSV or TensorBoard events; or "stdout"."""
    keys: dict[str, str] = {}
    """Response -> key (dots lead into nested objects), column, tag, or the words before the
    number."""
    reduce: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """Response -> which of several values counts: last, best, mean K or at STEP."""


class ProgressSection(msgspec.Struct, frozen=True):
    """Progress of a command, from its output or from the CSV that it writes."""

    pattern: str = ""
    """Regular expression for its output: groups `step` and `total`, other names are metrics."""
    file: str = ""
    """A CSV in the run's directory, a row per step."""
    step: str = ""
    """Column of the step; by default `step` or `epoch`."""
    total: int | str = 0
    """Number of steps, or the setting or factor that holds it, if no group gives it."""


REPLICATE, NO_SEED = "replicate", "none"
"""Values of a stage's `seed` besides the name of a stream of seeds."""


class Stage(msgspec.Struct, frozen=True):
    """Work that several runs share, done once before the first of them."""

    factors: tuple[str, ...] = ()
    """Factors on whose levels it depends; they are hard to change, because each level needs its own
    execution."""
    command: tuple[str, ...] = ()
    """Program and arguments; what it writes to `{stage_dir}` is passed to runs as
    `{stage.NAME}`."""
    function: str = ""
    """Instead of a command, package.module:function; it writes to `request.run_dir`, and runs find
    that in `request.stages["NAME"]`."""
    needs: tuple[str, ...] = ()
    """Stages that precede this one and are passed to it in the same way."""
    seed: str = REPLICATE
    """Executed for each "replicate", with its seed; for each seed of a stream, by the stream's
    name; or once without a seed, "none"."""
    reuse: bool = False
    """Whether to reuse the output of another study in the same directory that did the same work."""
    timeout: float = 0.0
    """Time limit of an execution in seconds, 0 for none; `--timeout` is for runs only."""
    settings: dict[str, Any] = {}
    """Settings of the stage, as those of the study are for runs."""
    env: dict[str, Level] = {}
    """Variables added to the environment of its command."""
    progress: ProgressSection = ProgressSection()
    """Progress of its command."""
    engines: dict[str, dict[str, Any]] = {}
    """Engine -> resources of its jobs where they differ from those of runs, as in
    [stages.NAME.slurm]."""


class Study(msgspec.Struct, frozen=True):
    """A factorial study of training runs, complete: it determines the design."""

    name: str
    backend: str
    factors: tuple[Factor, ...]
    responses: Responses
    description: str = ""
    command: tuple[str, ...] = ()
    """Program and arguments if `backend` is "command"."""
    cwd: str = OWN
    """Working directory of a command: "{run_dir}" for each run's own, or a path relative to where
    `doe run` was started, such as "."; empty in plans of versions without this key."""
    python: str = ""
    """Interpreter that the word python in a command stands for, as a path relative to the working
    directory of `doe`."""
    env: dict[str, Level] = {}
    """Variables added to the environment of a command, with placeholders as in the command."""
    metrics: MetricsSection = MetricsSection()
    progress: ProgressSection = ProgressSection()
    replicates: int = 1
    seeds: tuple[int, ...] = ()
    """One per replicate, shared by all configurations, so that a replicate is a block; or a table
    of several streams, such as `init`, `data`, `order`: one of each per replicate, or all
    combinations."""
    streams: dict[str, tuple[int, ...]] = {}
    """Stream -> its seed in each replicate, if `seeds` is a table; `seeds` is then empty."""
    order_seed: int = 42
    fraction: str = ""
    """Generators such as "E=ABC, F=BCD", or "1/3" of a design with more levels; empty for all."""
    exclude: tuple[str, ...] = ()
    """Combinations of levels that cannot run, as in "optimizer=sgd, amsgrad=on"."""
    centre: int = 0
    """Centre runs in each replicate, with every factor at the middle of its scale."""
    blocks: str = ""
    """Interactions confounded with blocks within each replicate, as in "ABC, CDE"."""
    design: dict[str, Any] = {}
    """The kind of design and its settings; by default the factorial given by `fraction`."""
    threads: int = 1
    """Threads of each run; another number sums in another order and changes the last digits."""
    settings: dict[str, Any] = {}
    """Passed to the backend unread."""
    stages: dict[str, Stage] = {}
    """Work that several runs share: pre-training, tokenising, building a data set."""
    augment: tuple[Augment, ...] = ()
    stopping: Stopping | None = None
    """When the study may stop early; without it, as planned."""
    desirability: dict[str, Desire] = {}
    """Response -> desirability of its values, to weigh several responses against each other."""
    engines: dict[str, dict[str, Any]] = {}
    """Engine -> the settings in its table of the study file, as in [slurm]."""
    report: ReportSection = ReportSection()

    @property
    def words(self) -> tuple[str, ...]:
        """The command as started, with the study's interpreter."""
        return self.started(self.command)

    def started(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """Replace python in a command with the study's interpreter."""
        if self.python and command and re.fullmatch(PYTHON, command[0]):
            return (self.python, *command[1:])
        return command

    @property
    def keys(self) -> tuple[str, ...]:
        """Factor keys in order, the first one fastest in standard order."""
        return tuple(factor.key for factor in self.factors)

    @property
    def kind(self) -> str:
        """The kind of design, a module of `doe.design.kinds`."""
        return str(self.design.get("kind", FACTORIAL))

    @property
    def generators(self) -> tuple[Generator, ...]:
        """Generators of a two-level fraction, empty if none; DoeError if they cannot be read."""
        return () if self.parts else _generators(self.fraction, self.keys)

    @property
    def parts(self) -> int:
        """N if one part in N of all combinations runs, written "1/N"; else 0."""
        return fraction_parts(self.fraction)

    @property
    def two_level(self) -> bool:
        """Whether every factor has two levels."""
        return all(len(factor.levels) == 2 for factor in self.factors)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of candidates of each factor."""
        return tuple(len(factor.levels) for factor in self.factors)

    @property
    def whole_plot_factors(self) -> tuple[str, ...]:
        """Keys, in order, of the factors whose levels are shared by all runs of a whole plot."""
        staged = self.staged_factors
        return tuple(f.key for f in self.factors if f.hard or f.key in staged)

    @property
    def staged_factors(self) -> set[str]:
        """Keys of the factors on which stages depend."""
        return {key for stage in self.stages.values() for key in stage.factors}

    @property
    def block_words(self) -> tuple[int, ...]:
        """Interactions confounded with blocks within a replicate; DoeError if they cannot be."""
        return parse_blocks(self.blocks, self.keys, self.generators)


@cache
def _generators(fraction: str, keys: tuple[str, ...]) -> tuple[Generator, ...]:
    return parse_generators(fraction, keys)
