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
"""What executes runs, and the module of each; a study file may have a table of any."""
OWN = "{run_dir}"
"""As the working directory of a command: one of its own in the run's."""
FACTORIAL = "factorial"
"""The kind of design of a study that names none."""
STUDY_FILE = "study.toml"
"""A study as it is written by hand, and frozen in the directory of its plan."""
PYTHON = r"python[\d.]*"
"""How a command asks for Python."""
NAME = "[A-Za-z][A-Za-z0-9_]*"
"""What keys of factors and names of responses and of streams of seeds look like."""
Level = bool | int | float | str
"""A factor level: any TOML scalar but a date."""
Goal = Literal["min", "max"]
ResponseScale = Literal["raw", "log", "logit", "auto"]
Setting = TypeVar("Setting", bound=str)
Default = TypeVar("Default", bound=str | None)

FIGURES = 4
"""Figures of a level between others, of its own or of its range."""
RUN_COLUMNS = ("run_id", "run_order", "row", "replicate", "block", "seed", "config")
"""Columns of design.csv and of the results before the factors'."""
STATE_COLUMNS = ("state", "reason", "slot", "host", "started", "ended", "seconds", "imported")
"""Columns of the results between the factors' and the responses'."""
RECORDED = ("seconds", "gpu_memory")
"""Responses that need not be returned: how long a run took, and the most MB of its GPU that its
process held, where torch tells. What a run returns by these names counts instead."""


def is_name(text: str) -> bool:
    """Whether a text can be a key or a name: a letter, or a word of letters, digits and _."""
    return re.fullmatch(NAME, text) is not None


def covariate_step(text: str) -> tuple[str, float | None]:
    """Name of a covariate and the step at which it is taken; None of a metric: "loss at 0"."""
    match = re.fullmatch(r"(.+) at (\d+)", text)
    return (match[1], float(match[2])) if match else (text, None)


def seed_columns(streams: Iterable[str]) -> tuple[str, ...]:
    """Columns that hold the seed of each stream, where a study has several."""
    return tuple(f"seed_{name}" for name in streams)


def seed_placeholders(streams: Iterable[str]) -> tuple[str, ...]:
    """What the seed of each stream is called in a command: `{seed.data}`."""
    return tuple(f"seed.{name}" for name in streams)


WHOLE_PLOT = "whole_plot"
"""Column of design.csv and of the results where some factors are hard to change."""


def coded_columns(keys: Iterable[str]) -> tuple[str, ...]:
    """Columns that hold the levels as numbers around zero: −1 and +1 of two."""
    return tuple(f"{key}_coded" for key in keys)


class Factor(msgspec.Struct, frozen=True):
    """A factor with its levels, known by its key in terms, labels and tables."""

    key: str
    levels: tuple[Level, ...]
    """Two or more levels in their order; `low` and `high` are the form for two."""
    name: str = ""
    description: str = ""
    scale: Literal["linear", "log"] = "linear"
    """Where the middle of numeric levels lies, and along which their line and curve are fitted."""
    sets: dict[str, dict[str, Level]] = {}
    """Level -> the settings that it makes, where `levels` is a table of tables."""
    role: Literal["choice", "condition"] = "choice"
    """A condition is met and not chosen, as a dataset is: the best is sought over choices alone."""
    hard: bool = False
    """Hard to change: runs that share its level in a replicate are a whole plot, done together, and
    it is tested against what varies between whole plots."""
    random: bool = False
    """Of a condition: its levels are a sample of those to come, and effects are tested against how
    they vary over them."""
    when: str = ""
    """Level of another factor beside which this one matters, as in "kernel=rbf"; beside its other
    levels this one has its first."""
    listed: bool = False
    """Whether two numbers were given as `levels`, so that nothing between them can run."""

    @property
    def ranged(self) -> bool:
        """Whether any number from `low` to `high` can run where the kind of design asks for it."""
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
        """Whether every level is a number; a switch is none."""
        return all(isinstance(v, int | float) and not isinstance(v, bool) for v in self.levels)

    @property
    def centre(self) -> Level:
        """The middle of the scale between the least and the greatest level of numbers."""
        numbers = [float(level) for level in self.levels]
        low, high = min(numbers), max(numbers)
        middle = math.sqrt(low) * math.sqrt(high) if self.scale == "log" else low / 2 + high / 2
        middle = float(f"{middle:.12g}")
        return int(middle) if self.whole and middle.is_integer() else middle

    @property
    def whole(self) -> bool:
        """Whether every level is a whole number."""
        return self.numeric and all(isinstance(level, int) for level in self.levels)

    def position(self, level: Level) -> float:
        """Where a number lies on the scale: −1 at the first level, +1 at the last."""
        at = math.log if self.scale == "log" else float
        low, high, value = (at(float(number)) for number in (self.low, self.high, level))
        return 2 * (value - low) / (high - low) - 1

    def level_at(self, position: float) -> Level:
        """The number at a position of the scale, rounded to what matters in its range.

        The ends and the middle are exact; between whole numbers it is the nearest one.
        """
        low, high = float(self.low), float(self.high)
        if position in (-1, 1) or (position == 0 and not self.whole):
            return (self.low, self.centre, self.high)[int(position) + 1]
        share = (position + 1) / 2
        if self.scale == "log":
            value = float(f"{low ** (1 - share) * high**share:.{FIGURES}g}")
        else:
            value = low + share * (high - low)
            value = round(value, FIGURES - 1 - math.floor(math.log10(abs(high - low))))
        return round(value) if self.whole else value


class Responses(msgspec.Struct, frozen=True):
    """What a run answers with, and which way is better."""

    metrics: tuple[str, ...]
    """Metrics that `--response all` analyses; every run must return them."""
    further: tuple[str, ...] = ()
    """Metrics that are collected and analysed on request only."""
    averages: dict[str, tuple[str, ...]] = {}
    """Responses made here: the plain mean of some metrics."""
    goal: Goal | None = "min"
    """Which way is better, of every response that `goals` does not name; None of a mere table."""
    unit: str = ""
    """Unit of the metrics, shown beside effects."""
    units: dict[str, str] = {}
    """Units of single responses where they differ from `unit`."""
    goals: dict[str, Goal] = {}
    """Goals of single responses where they differ from `goal`."""
    scale: ResponseScale = "raw"
    """What is analysed: raw values, their logarithms, log odds of shares (from 0 to 1, with the
    unit "%" to 100), or what Box and Cox's interval says."""
    scales: dict[str, ResponseScale] = {}
    """Scales of single responses where they differ from `scale`."""
    of: int | dict[str, int] = 0
    """Of how many items responses on the scale of log odds are shares, or single responses are."""
    matters: dict[str, float] = {}
    """The smallest effect on a response that is worth knowing."""
    titles: dict[str, str] = {}
    """What responses are called in sentences and in the tables of a paper: "validation error"."""
    constraints: tuple[str, ...] = ()
    """Limits that a configuration has to keep to be chosen, as in "seconds <= 60"."""
    covariates: tuple[str, ...] = ()
    """What is measured of each run before its factors act, and is adjusted for: the name of a
    metric, or what was reported first, as in "loss at 0"."""

    @property
    def returned(self) -> tuple[str, ...]:
        """Metrics that every run must return: those that are not recorded anyway."""
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
        """What a report begins with: the averages, else the first two metrics."""
        return tuple(self.averages) or self.metrics[:2]

    @property
    def principal(self) -> tuple[str, ...]:
        """What is analysed unless somebody asks otherwise: the averages, else all metrics."""
        return tuple(self.averages) or self.metrics

    def unit_of(self, name: str) -> str:
        """Unit of one response; of an average, what its metrics share."""
        return self._of(name, self.units, self.unit)

    def goal_of(self, name: str) -> Goal | None:
        """Which way is better for one response; for an average, as for its metrics."""
        return self._of(name, self.goals, self.goal)

    def scale_of(self, name: str) -> ResponseScale:
        """The scale on which one response is analysed."""
        return self.scales.get(name, self.scale)

    def items_of(self, name: str) -> int:
        """Of how many items one response is the share; an average counts those of its metrics."""
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
        """The smallest effect on one response that is worth knowing; None where nobody said."""
        return self.matters.get(name)

    def title_of(self, name: str) -> str:
        """What one response is called: its title, else its name."""
        return self.titles.get(name, name)

    def _of(self, name: str, single: dict[str, Setting], every: Default) -> Setting | Default:
        """What is said of a response itself, of the metrics that it averages, or of all."""
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
    """Distance of axial points from the centre, 1 for the ends of the ranges."""
    runs: int = 0
    """Runs of an optimal design beside what is planned."""
    model: str = ""
    """The model that an optimal design is made for."""
    confirm: tuple[str, ...] = ()
    """Configurations to run again with fresh seeds alone: the best, the runner-up, the baseline."""
    response: str = ""
    """Response whose best configuration is confirmed."""
    points: tuple[tuple[Level, ...], ...] = ()
    """Levels of every factor: a path of steepest ascent, or with `confirm` the optimum."""


FIRST_LOOK = 2
"""Replicates without which there is no error to test against."""


class Stopping(msgspec.Struct, frozen=True):
    """When a study may stop: it is looked at after each complete replicate, or half of one."""

    max_replicates: int
    """Where it ends, decided or not."""
    terms: tuple[str, ...] = ()
    """Terms to decide; by default the main effects and two-factor interactions."""
    responses: tuple[str, ...] = ()
    """Responses to decide them for; by default the averages, else all metrics."""
    spending: Literal["quadratic", "obrien-fleming", "pocock"] = "quadratic"
    """How the error is spent over the looks: with the square of the runs, mostly at the end, or
    evenly."""
    alpha: float = 0.05
    """Chance of any wrong statement, over all looks, terms and responses."""
    after: int = 0
    """Replicates that were complete when this was declared."""
    within: float = 0.0
    """Stop when a configuration is known to be this close to the best, in the unit of the response;
    0 to decide terms."""
    futility: float = 0.1
    """Stop when no open term has this chance of being decided by the end; 0 to go on."""
    rule: Literal[1, 2] = 2
    """How it is looked at. 1, of plans that do not say: after whole replicates from the second on,
    with one interval for effects and for what is negligible."""


class Group(msgspec.Struct, frozen=True):
    """Responses that share a table of the report."""

    name: str
    """Short, for the names of files."""
    title: str
    responses: tuple[str, ...]
    effects: str = ""
    """Title of the table of effects on these responses; empty for none."""
    baseline: dict[str, Level] = {}
    """Levels that mark the baseline configurations; empty for none."""


class ReportSection(msgspec.Struct, frozen=True):
    """How the runs become the tables of a paper."""

    groups: tuple[Group, ...] = ()
    """One table of best configurations each; by default one per average."""
    further: Group | None = None
    """A last table of best configurations, of metrics outside the groups."""
    split: str = ""
    """Factor whose levels make the parts of each table."""
    drop: tuple[str, ...] = ()
    """Factors whose terms are left out of the tables of effects."""
    prefix: str = ""
    """Begins the names of the tables of configurations."""
    capped: bool = False
    """In the table of all configurations, a mean above 10, 20 or 50 is written as >10, >20, >50."""


class MetricsSection(msgspec.Struct, frozen=True):
    """Where a command leaves its metrics."""

    file: str = "metrics.json"
    """In the run's directory: JSON, JSON lines, CSV or TensorBoard events; or "stdout"."""
    keys: dict[str, str] = {}
    """Response -> key (dots lead into nested objects), column, tag, or words before the number."""
    reduce: dict[str, str] | msgspec.UnsetType = msgspec.UNSET
    """Response -> which of several values counts: last, best, mean K or at STEP."""


class ProgressSection(msgspec.Struct, frozen=True):
    """How far a command is, from what it prints or from the CSV that it writes."""

    pattern: str = ""
    """Regular expression on its output: groups `step` and `total`, other names are metrics."""
    file: str = ""
    """A CSV in the run's directory, a row per step."""
    step: str = ""
    """Column of the step; by default `step` or `epoch`."""
    total: int | str = 0
    """Number of steps, or the setting or factor that holds it, where no group says it."""


REPLICATE, NO_SEED = "replicate", "none"
"""What a stage is done once for, besides the name of a stream of seeds."""


class Stage(msgspec.Struct, frozen=True):
    """Work that several runs share, done once before the first of them."""

    factors: tuple[str, ...] = ()
    """Factors on whose levels it depends; they are hard to change, as each level takes a stage."""
    command: tuple[str, ...] = ()
    """Program and arguments; runs are handed what it leaves in `{stage_dir}` as `{stage.NAME}`."""
    function: str = ""
    """Instead of a command, package.module:function; it writes to `request.run_dir`, and runs find
    that in `request.stages["NAME"]`."""
    needs: tuple[str, ...] = ()
    """Stages that come before this one, handed to it in the same way."""
    seed: str = REPLICATE
    """Done for each "replicate", with its seed; for each seed of a stream by its name; or once
    without a seed, "none"."""
    reuse: bool = False
    """Whether it is taken over from another study beside this one that has done the same."""
    timeout: float = 0.0
    """Seconds that an execution may take, 0 for no limit; `--timeout` is for runs alone."""
    settings: dict[str, Any] = {}
    """Its own settings, as those of the study are the runs'."""
    env: dict[str, Level] = {}
    """Added to the environment of its command."""
    progress: ProgressSection = ProgressSection()
    """How far its command is."""
    engines: dict[str, dict[str, Any]] = {}
    """Engine -> what its jobs ask for instead of what runs do, as in [stages.NAME.slurm]."""


class Study(msgspec.Struct, frozen=True):
    """A factorial study of training runs, complete: the design follows from it alone."""

    name: str
    backend: str
    factors: tuple[Factor, ...]
    responses: Responses
    description: str = ""
    command: tuple[str, ...] = ()
    """Program and arguments when `backend` is "command"."""
    cwd: str = OWN
    """Where a command runs: "{run_dir}", a directory of its own in each run's, or a path from where
    `doe run` was started, as in "."; empty in plans of versions that had no such directory."""
    python: str = ""
    """What the word python of a command starts: an interpreter, as a path from where it starts."""
    env: dict[str, Level] = {}
    """Added to the environment of a command, with placeholders as in the command."""
    metrics: MetricsSection = MetricsSection()
    progress: ProgressSection = ProgressSection()
    replicates: int = 1
    seeds: tuple[int, ...] = ()
    """One per replicate, shared by all configurations, so that a replicate is a block; or a table
    of several streams, as in `init`, `data`, `order`: one of each per replicate, or all
    combinations."""
    streams: dict[str, tuple[int, ...]] = {}
    """Stream -> its seed in each replicate, where `seeds` is a table; `seeds` is then empty."""
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
    """The kind of design and its settings; by default the factorial that `fraction` asks for."""
    threads: int = 1
    """Threads that each run computes with; sums in another order end in other last digits."""
    settings: dict[str, Any] = {}
    """Handed to the backend unread."""
    stages: dict[str, Stage] = {}
    """Work that several runs share: pre-training, tokenising, building a data set."""
    augment: tuple[Augment, ...] = ()
    stopping: Stopping | None = None
    """When the study may stop early; as planned without it."""
    desirability: dict[str, Desire] = {}
    """Response -> how desirable its values are, where several are weighed against each other."""
    engines: dict[str, dict[str, Any]] = {}
    """Engine -> the settings in its table of the study file, as in [slurm]."""
    report: ReportSection = ReportSection()

    @property
    def words(self) -> tuple[str, ...]:
        """The command as it is started, with the interpreter that the study names."""
        return self.started(self.command)

    def started(self, command: tuple[str, ...]) -> tuple[str, ...]:
        """A command with the interpreter that the study names."""
        if self.python and command and re.fullmatch(PYTHON, command[0]):
            return (self.python, *command[1:])
        return command

    @property
    def keys(self) -> tuple[str, ...]:
        """Factor keys in their order, the first one fastest in standard order."""
        return tuple(factor.key for factor in self.factors)

    @property
    def kind(self) -> str:
        """The kind of design, a module of `doe.design.kinds`."""
        return str(self.design.get("kind", FACTORIAL))

    @property
    def generators(self) -> tuple[Generator, ...]:
        """Generators of a two-level fraction, else none; DoeError if they cannot be read."""
        return () if self.parts else _generators(self.fraction, self.keys)

    @property
    def parts(self) -> int:
        """N where one part in N of all combinations runs, asked for as "1/N"; else 0."""
        return fraction_parts(self.fraction)

    @property
    def two_level(self) -> bool:
        """Whether every factor has two levels."""
        return all(len(factor.levels) == 2 for factor in self.factors)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of levels of each factor."""
        return tuple(len(factor.levels) for factor in self.factors)

    @property
    def whole_plot_factors(self) -> tuple[str, ...]:
        """Keys of the factors whose levels all runs of a whole plot share, in their order."""
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
