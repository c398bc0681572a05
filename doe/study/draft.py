"""A first study file: factors proposed from the options of a program, or as they were given."""

from __future__ import annotations

import json
import math
import re
import shlex
from collections.abc import Iterable, Sequence
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec

from doe.errors import DoeError, nearest
from doe.study.command import EDIT, PLACEHOLDERS
from doe.study.help_text import Option
from doe.study.values import RUN_COLUMNS, STATE_COLUMNS, Level, is_name

MOST_PROPOSED = 4
"""Factors that a draft varies: 16 configurations; further ones stand there as comments."""

OUTPUT = re.compile(
    r"(out|output|save|log|run|work|result|results|exp|checkpoint)_?(dir|path|folder)?"
)
LENGTHS = re.compile(r"(max_|num_|n_|train_)?(epochs?|steps|iters|iterations)")
OWN = {"seed": "seed", "random_seed": "seed", "random_state": "seed", "manual_seed": "seed"} | {
    "device": "device",
    "threads": "threads",
    "num_threads": "threads",
}
"""Options that a placeholder fills."""
NO_FACTOR = re.compile(
    r"(.*_)?(no)?(cuda|mps|gpu|device|worker|thread|verbose|quiet|debug|dry_run|resume|data|dataset"
    r"|path|dir|file|port|host|interval|freq|frequency|print|log|save|name|id|config|tag|wandb"
    r"|project|download|plot|completion|load|test|eval|evaluate|checkpoint|accel|world_size|rank"
    r"|url|only|sample|logdir|outdir|filename|tensorboard|version)s?(_.*)?"
)
"""Whole words: width and ridge hold an id, and are none."""
LIKELY = re.compile(
    r"lr|learning_rate|batch_size|weight_decay|wd|optim.*|dropout|momentum|aug.*|scale|hidden.*|width"
    r"|depth|(num_|n_)?layers|components|penalty|gamma|l1|l2|alpha|beta\d?|warmup.*|schedul.*|norm.*"
)
RATES = re.compile(r".*(lr|rate|decay|penalty|eps|reg|alpha|lambda|l1|l2|wd).*")
TAKEN = {*RUN_COLUMNS, *STATE_COLUMNS, *PLACEHOLDERS, "I"}


class Proposal(NamedTuple):
    """A factor, and how the command hands its level to the program."""

    key: str
    low: Level | None
    high: Level | None
    use: str
    """Words of the command."""
    remark: str = ""

    @property
    def complete(self) -> bool:
        """Whether both levels are known."""
        return self.low is not None and self.high is not None


class Draft(msgspec.Struct, frozen=True):
    """All that a first study file says."""

    name: str
    backend: str
    command: str = ""
    factors: tuple[Proposal, ...] = ()
    further: tuple[Proposal, ...] = ()
    """Factors that the file shows and does not use."""
    settings: dict[str, Level] = {}
    metrics: tuple[str, ...] = ("loss",)
    goal: str = "min"
    file: str = "metrics.json"
    keys: dict[str, str] = {}
    replicates: int = 2
    edits: tuple[str, ...] = ()
    """What the person must still do."""


# Proposals --------------------------------------------------------------------------------------


def propose(option: Option) -> Proposal:
    """Two levels of an option around its default; None where the help does not tell."""
    key = option.name if option.name not in TAKEN else f"{option.name}_level"
    value = f"{option.flag} {{{key}}}"
    remark = ", ".join(filter(None, [option.help, option.default and f"default {option.default}"]))
    if option.switch:
        if option.negative and option.default.lower() in ("true", option.flag.lstrip("-").lower()):
            off = f"no_{key}"
            return Proposal(off, False, True, f"{{{off}:{option.negative}}}", remark)
        return Proposal(key, False, True, f"{{{key}:{option.flag}}}", remark)
    if option.choices:
        low = option.default if option.default in option.choices else option.choices[0]
        others = [choice for choice in option.choices if choice != low]
        if sorted(choice.lower() for choice in option.choices) == ["false", "true"]:
            low, others = "false", ["true"]
        remark = "; ".join(filter(None, [remark, f"one of {', '.join(option.choices)}"]))
        return Proposal(key, low, others[0] if others else None, value, remark)
    return Proposal(key, *around(option), value, remark)


def around(option: Option) -> tuple[Level | None, Level | None]:
    """Levels below and above a default that is a number, or both truths of a default that is one.

    A rate is divided and multiplied by about three, a share near 1 keeps its distance to 1 within a
    factor of two, any other number is halved and doubled.
    """
    text, name = option.default, option.name
    if text.lower() in ("true", "false"):
        return (False, True) if text.islower() else ("False", "True")
    try:
        number = float(text)
    except ValueError:
        return (text, None) if text else (None, None)
    if not math.isfinite(number):
        return None, None
    whole = re.fullmatch(r"[+-]?\d+", text) is not None and "FLOAT" not in option.metavar.upper()
    if whole:
        integer = int(number)
        if integer == -1:  # stands for none or all; there is nothing below or above
            return -1, None
        return (0, 1) if integer == 0 else (integer - abs(integer) // 2, integer + abs(integer))
    if number == 0:
        return 0.0, 0.1
    if RATES.fullmatch(name):
        return _rounded(0.3 * number), _rounded(3 * number)
    if 0.5 <= number < 1:
        return _rounded(1 - min(2 * (1 - number), 1 - number / 2)), _rounded((1 + number) / 2)
    return _rounded(number / 2), _rounded(2 * number)


def _rounded(number: float) -> float:
    return float(f"{number:.3g}")


# From a program ---------------------------------------------------------------------------------


def draft_command(
    words: Sequence[str], options: Iterable[Option], asked: Sequence[Proposal | str] = ()
) -> Draft:
    """Draft the command, factors and settings of a study around a program and its options.

    `asked` names the factors that were chosen, with levels or as plain names; none leaves the
    choice to the names that usually matter.
    """
    fixed = {word.partition("=")[0] for word in words if word.startswith("-")}
    free = [option for option in options if not fixed & set(option.flags)]
    command = [shlex.quote(word.replace("{", "{{").replace("}", "}}")) for word in words]
    settings: dict[str, Level] = {}
    edits: list[str] = []
    factors, further = _factors(free, asked)
    chosen = {proposal.key for proposal in factors}
    for option in free:
        key = propose(option).key
        if key in chosen or option.switch:
            continue
        if option.name in OWN:
            command.append(f"{option.flag} {{{OWN[option.name]}}}")
        elif OUTPUT.fullmatch(option.name):
            default = PurePosixPath(option.default)  # of a file, as in model.pt, or of a directory
            name = f"/{default.name}" if default.suffix else ""
            command.append(f"{option.flag} {{run_dir}}{shlex.quote(name) if name else ''}")
        elif LENGTHS.fullmatch(option.name) and re.fullmatch(r"-?\d+", option.default):
            command.append(f"{option.flag} {{{key}}}")
            settings[key] = int(option.default)
        elif option.required:
            command.append(f"{option.flag} {EDIT}")
            edits.append(f"{option.flag} is required: put its value in the place of {EDIT}")
    command += [proposal.use for proposal in factors]
    if not factors:
        edits.append("name at least one factor; the help shows none with a default")
    return Draft(
        name="",
        backend="command",
        command=" ".join(command),
        factors=factors,
        further=further,
        settings=settings,
        edits=tuple(edits),
    )


def places_factors(words: Sequence[str], asked: Sequence[Proposal | str]) -> bool:
    """Whether a command says itself where a factor goes, as in `python app.py opt.lr={lr}`."""
    keys = [factor if isinstance(factor, str) else factor.key for factor in asked]
    return any(re.search(rf"\{{{key}[:}}]", word) for key in keys for word in words)


def draft_placed(words: Sequence[str], asked: Sequence[Proposal | str]) -> Draft:
    """Draft a study around a command with its placeholders, as a program without options needs."""
    plain = re.compile(r"[\w@%+=:,./{}-]+", re.ASCII)
    return Draft(
        name="",
        backend="command",
        command=" ".join(word if plain.fullmatch(word) else shlex.quote(word) for word in words),
        factors=given_levels(asked),
    )


def given_levels(asked: Iterable[Proposal | str]) -> tuple[Proposal, ...]:
    """Factors of a function or of a command with placeholders, which propose no levels."""
    factors = []
    for factor in asked:
        if isinstance(factor, str):
            raise DoeError(
                f"factor {factor}: no help tells its levels; give them, {factor}=LOW,HIGH"
            )
        factors.append(factor)
    return tuple(factors)


def _factors(
    options: Sequence[Option], asked: Sequence[Proposal | str]
) -> tuple[tuple[Proposal, ...], tuple[Proposal, ...]]:
    """The factors that a draft uses, and those that it only shows."""
    known = {propose(option).key: propose(option) for option in options}
    if asked:
        return tuple(_asked(factor, known) for factor in asked), ()
    candidates = [
        propose(option)
        for option in options
        if not NO_FACTOR.fullmatch(option.name)
        and not LENGTHS.fullmatch(option.name)
        and not OUTPUT.fullmatch(option.name)
        and option.name not in OWN
        and not (option.required and not option.choices)
    ]
    complete = [proposal for proposal in candidates if proposal.complete]
    ranked = sorted(complete, key=lambda proposal: not LIKELY.fullmatch(proposal.key))
    used = ranked[:MOST_PROPOSED]
    return (
        tuple(proposal for proposal in candidates if proposal in used),
        tuple(proposal for proposal in candidates if proposal not in used),
    )


def _asked(factor: Proposal | str, known: dict[str, Proposal]) -> Proposal:
    key = factor if isinstance(factor, str) else factor.key
    if key not in known:
        raise DoeError(
            f"factor {key}: the program has no such option{nearest(key, known)}; it has "
            f"{', '.join(known) or 'none'}"
        )
    if isinstance(factor, str):
        if not known[key].complete:
            raise DoeError(f"factor {key}: its help names no levels; give them, {key}=LOW,HIGH")
        return known[key]
    if "{" + key + ":" in known[key].use:
        raise DoeError(f"factor {key}: a switch is off and on; leave the levels out")
    return factor._replace(use=known[key].use, remark=known[key].remark)


def parse_factor(text: str) -> Proposal | str:
    """Read NAME=LOW,HIGH, or a NAME alone."""
    key, equals, levels = text.partition("=")
    if not is_name(key):
        raise DoeError(f"factor {text}: expected NAME=LOW,HIGH with a name of letters and digits")
    if not equals:
        return key
    parts = [_level(part.strip()) for part in levels.split(",")]
    if len(parts) != 2 or "" in parts:
        raise DoeError(f"factor {text}: expected two levels, as in lr=0.001,0.01")
    return Proposal(key, parts[0], parts[1], "")


def _level(text: str) -> Level:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


# The file ---------------------------------------------------------------------------------------


def draft_text(draft: Draft) -> str:
    """Write a draft as a commented study file."""
    configurations = 2 ** len(draft.factors)
    lines = [f"# {edit}" for edit in (f"EDIT: {edit}." for edit in draft.edits)]
    lines += [f"name = {_toml(draft.name)}", f"backend = {_toml(draft.backend)}"]
    if draft.command:
        lines += [
            "# Started for each run without a shell: {name} is the level of a factor or a setting,",
            "# {name:TEXT} is TEXT where it is true; also {seed}, {run_dir}, {device}, {threads}.",
            f"command = {_toml(draft.command)}",
        ]
    runs = configurations * draft.replicates
    lines.append(
        f"replicates = {draft.replicates}"
        f"  # {configurations} configurations, {runs} runs; each replicate has a seed of its own"
    )
    if draft.settings:
        lines += ["", "[settings]", *(f"{k} = {_toml(v)}" for k, v in draft.settings.items())]
    for proposal in draft.factors:
        lines += ["", *_factor_lines(proposal)]
    if draft.further:
        lines += ["", "# Further factors: take away the # and add the words to the command."]
    for proposal in draft.further:
        lines += [
            f"# {line}" for line in [*_factor_lines(proposal), f"# in the command: {proposal.use}"]
        ]
    lines += ["", "[responses]", f"metrics = {_toml(list(draft.metrics))}"]
    lines += [f"goal = {_toml(draft.goal)}  # which way is better: min or max"]
    if draft.backend == "command":
        lines += ["", *_metrics_lines(draft)]
    return "\n".join(lines) + "\n"


def _factor_lines(proposal: Proposal) -> list[str]:
    lines = [f"[factors.{proposal.key}]"]
    if proposal.remark:
        lines.append(f"# {proposal.remark}")
    for side, level in (("low", proposal.low), ("high", proposal.high)):
        lines.append(f"{side} = {_toml(EDIT if level is None else level)}")
    return lines


def _metrics_lines(draft: Draft) -> list[str]:
    lines = ["# Where the command leaves its numbers, in {run_dir}: JSON, CSV (the last row), or"]
    lines += ['# "stdout", where each stands behind its name.', "[metrics]"]
    lines.append(f"file = {_toml(draft.file)}")
    if draft.keys:
        pairs = ", ".join(f"{name} = {_toml(key)}" for name, key in draft.keys.items())
        lines.append(f"keys = {{ {pairs} }}")
    else:
        lines.append('# keys = { accuracy = "eval/accuracy" }  # where its name is another')
    return lines


def _toml(value: object) -> str:
    """A value in TOML's form, which is JSON's for text, numbers, truths and lists of text."""
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)
