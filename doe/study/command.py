"""The command of a study: its words, its placeholders, and the checks of its sections."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from pathlib import Path
from shutil import which
from string import Formatter
from typing import Any, NamedTuple

from doe.errors import AddProblem, DoeError, nearest, short
from doe.study.values import (
    OWN,
    PYTHON,
    Level,
    MetricsSection,
    ProgressSection,
    Study,
    seed_placeholders,
)

PLACEHOLDERS = ("seed", "run_dir", "device", "threads")
"""Placeholders of a command besides the factors and the settings."""
FUNCTION = r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*"
"""How a function is written: package.module:function."""
STDOUT = "stdout"
"""Name of the metrics file that means the command's output."""
EDIT = "EDIT-ME"
"""Placeholder in a proposed study for a value that only the user knows."""
TOTAL, STEP = "total", "step"
REQUEST, RESULT, LEASE = "request.json", "result.json", "lease.json"
LOG, PROGRESS = "log.txt", "progress.jsonl"
OUT = "out"
"""Default working directory of a command: the run's own directory."""

SIGN = "[-+\u2212]"
NUMBER = (
    rf"{SIGN}?(?:(?:\d+\.?\d*|\.\d+)(?:e{SIGN}?\d+)?|nan|inf(?:inity)?)"
    r"(?!\w|[.,:\-\u2212]\d)"  # not part of a longer number or word: 1,203.5, 5M
)
"""A number as programs print it, whatever follows: 1.2e-3; or [371.] or 9812/10000 or 0.91%."""
UNREADABLE = rf"{SIGN}?\.?\d[\w.,:\-\u2212]*\w"
"""A word that starts like a number but may be 1,203.5 or 5M; no earlier value may be used
instead."""
GAP = rf"(?:[^\w+\-\u2212.@#]|\.(?!\d)|(?<![:=])(?<![:=]\s){SIGN}(?=[\s>\-]))+"
"""Separators between a name and its number; a sign belongs to the number."""
WRAPPER = r"(?:[^\W\d][\w.]*[(\[]+)?"
"""As in np.float64(0.5), tensor(0.5, …); of 0.25(0.30) the first number is meant."""


class Piece(NamedTuple):
    """A literal text and the placeholder that follows it, if any."""

    literal: str
    name: str | None
    text: str
    """Text that a switch inserts when it is on; empty for a plain placeholder."""


def split_command(text: str, add: AddProblem, key: str = "command") -> list[str]:
    """Split a command line into words as a shell would, keeping each placeholder in one piece."""
    held: list[str] = []

    def hold(match: re.Match[str]) -> str:
        held.append(match[0])
        return f"\0{len(held) - 1}\0"

    safe = re.sub(r"\{[A-Za-z_][\w.]*:[^{}]*\}", hold, text.replace("\0", " "))
    try:
        words = shlex.split(safe)
    except ValueError as error:
        add(f"{key} = {short(text)}: {str(error).lower()}; close the quote or escape it")
        return ["unreadable"]
    return [re.sub(r"\0(\d+)\0", lambda m: held[int(m[1])], word) for word in words]


def pieces(word: str) -> list[Piece]:
    """Parse a word of a command; raise ValueError with what is wrong with its braces."""
    parts = []
    for literal, name, text, conversion in Formatter().parse(word):
        if conversion or (name is not None and not re.fullmatch(r"[A-Za-z_][\w.]*", name)):
            raise ValueError("expected placeholders such as {seed} or {augment:--augment}")
        parts.append(Piece(literal, name, text or ""))
    return parts


def printed_name(name: str) -> str:
    """Return a pattern for a metric's name as programs print it: test_loss as in `Test loss`."""
    return r"[\W_]*".join(re.escape(word) for word in name.split("_") if word)


def printed_pattern(key: str) -> re.Pattern[str]:
    """Return a pattern with one group, the number: `key` itself if it has one, else after `key`."""
    compiled = re.compile(key)
    if compiled.groups:
        return compiled
    value = rf"(?![\[(/]){GAP}{WRAPPER}({NUMBER}|{UNREADABLE})(?![\s\])}}]*[:=])"
    return re.compile(rf"(?<!\w)(?:{key}){value}", re.IGNORECASE)


def printed_step() -> re.Pattern[str]:
    """Return a pattern with one group, the step that a line reports: `step 250: …`."""
    names = "(?:global[_ ])?step|iter(?:ation)?|epoch|episode"
    return re.compile(rf"(?<!\w)(?:{names}){GAP}({NUMBER})", re.IGNORECASE)


def printed_number(text: str) -> float | None:
    """Return the number at the start of a text, without brackets and units; None if there is
    none."""
    match = re.match(rf"[\s(\[{{\"'=:]*{WRAPPER}({NUMBER})", text, re.IGNORECASE)
    return float(match[1].replace("\u2212", "-")) if match else None


def flat_settings(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Level]:
    """Return settings that are single values, nested ones by their dotted names."""
    values: dict[str, Level] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            values |= flat_settings(value, f"{prefix}{key}.")
        elif isinstance(value, (bool, int, float, str)):
            values[f"{prefix}{key}"] = value
    return values


def check_program(study: Study, start: Path) -> None:
    """Refuse a command that cannot start: its program or script is not there, or not named yet.

    Raises
    ------
    DoeError
        If so; says where it was looked for.
    """
    commands = [study.started(stage.command) for stage in study.stages.values()]
    commands += [study.words] if study.backend == "command" else []
    levels = (str(level) for factor in study.factors for level in factor.levels)
    if commands and any(EDIT in word for word in (*chain(*commands), *levels)):
        raise DoeError(
            f"the study still contains {EDIT}; replace it with the value that belongs there"
        )
    for words in filter(None, commands):
        _check_words(words, start if study.cwd in (OWN, "") else start / study.cwd)


def _check_words(words: tuple[str, ...], base: Path) -> None:
    program, *rest = words
    here = os.sep in program
    if "{" not in program and not (os.access(base / program, os.X_OK) if here else which(program)):
        place = "no such file" if here else "not found on the PATH"
        if here and (base / program).exists():
            place = "it is not executable; run chmod +x on it"
        raise DoeError(f"command: cannot start {program!r}: {place}")
    scripts = (word for word in rest if re.fullmatch(r"[^-{}=][^{}=]*\.(py|sh|R|jl|js|pl)", word))
    script = next(scripts, None)
    if script is not None and not (base / script).is_file():
        raise DoeError(
            f"command: no {script} in {base}; start doe in the script's directory, or write its "
            "path"
        )


# Doubts -----------------------------------------------------------------------------------------


def has_copies(study: Study) -> bool:
    """Return whether replicates are copies of each other: the command does not receive the seed."""
    repeated = study.replicates > 1 or any(step.seeds for step in study.augment)
    names = {str(piece.name) for piece in used_pieces(study.command, study.env, lambda _: None)}
    told = any(name.partition(".")[0] == "seed" for name in names)
    return study.backend == "command" and repeated and not told


def command_doubts(study: Study) -> list[str]:
    """List possible mistakes in a command that is otherwise valid, one sentence each."""
    doubts = []
    if has_copies(study):
        doubts.append(
            "the command does not use {seed}: unless the program draws its own seed, its "
            "replicates are identical copies without any error to test against; put {seed} where "
            "the seed belongs"
        )
    for name, pattern in study.metrics.keys.items() if study.metrics.file == STDOUT else ():
        group = re.search(r"(?<!\\)\((?!\?)([^()]*)\)", pattern)
        if group and not all(re.fullmatch(group[1], text) for text in ("nan", "-1.5e-3")):
            doubts.append(
                f"metrics.keys.{name}: its group ({group[1]}) cannot read every number, among nan "
                "and -1.5e-3, so an earlier value would be recorded; remove the group to read the "
                "number that follows"
            )
    return doubts


# Checks -----------------------------------------------------------------------------------------


def check_command(study: Study, add: AddProblem) -> None:
    """List everything that is wrong with a command, its placeholders and its sections."""
    if not study.command or not study.command[0]:
        add('command: missing; backend = "command" needs the program and its arguments')
        return
    settings = flat_settings(study.settings)
    own = (*PLACEHOLDERS, *seed_placeholders(study.streams), *stage_placeholders(study.stages))
    for key in sorted(settings.keys() & {*study.keys, *own}):
        add(
            f"settings.{key}: {{{key}}} in a command already has another meaning; rename the "
            "setting"
        )
    made = {name: f.key for f in study.factors for values in f.sets.values() for name in values}
    known = [*study.keys, *settings, *made, *own]
    unreadable: list[str] = []
    used = list(used_pieces(study.command, study.env, unreadable.append))
    for problem in unreadable:
        add(problem)
    for piece in used:
        if piece.name not in known:
            add(
                f"command: placeholder {{{piece.name}}} is unknown{nearest(str(piece.name), known)}"
                f"; known are {', '.join(known)}"
            )
        elif piece.text:
            _check_switch(str(piece.name), study, settings, add)
    names = {piece.name for piece in used}
    names |= {key for name, key in made.items() if name in names}
    idle = [key for key in study.keys if key not in {*names, *study.staged_factors}]
    if idle and not unreadable and all(piece.name in known for piece in used):
        add(
            f"command: it does not use {', '.join(idle)}, so this factor would have no effect; "
            f"put {{{idle[0]}}} where its level belongs, or remove factors.{idle[0]}"
        )
    _check_seeds_used(study, names, add)
    for name, key in made.items():
        if key in names and name not in names and key not in {piece.name for piece in used}:
            add(
                f"command: it does not use {name}, which the levels of {key} set; put {{{name}}} in"
            )
    _check_cwd(study.cwd, add)
    if study.python and not re.fullmatch(PYTHON, study.command[0]):
        add(f"python = {short(study.python)}: the command starts {study.command[0]!r}, not python")
    for name in study.env:
        if not re.fullmatch(r"[A-Za-z_]\w*", name):
            add(f"env: {short(name)} is not a valid variable name; expected letters, digits, _")
    _check_metrics(study.metrics, study, add)
    check_progress(study.progress, [*study.keys, *settings, *made], add)


def _check_seeds_used(study: Study, names: set[str | None], add: AddProblem) -> None:
    """Check that the command uses every stream of seeds; `{seed}` is the first stream's."""
    known = seed_placeholders(study.streams)
    names |= set(seed_placeholders(stage.seed for stage in study.stages.values()))
    idle = [p for i, p in enumerate(known) if p not in names and (i > 0 or "seed" not in names)]
    if idle:
        add(
            f"command: it does not use {{{idle[0]}}}, so this stream of seeds would have no "
            f"effect; add it, or remove seeds.{idle[0].removeprefix('seed.')}"
        )


def used_pieces(
    command: Iterable[str], env: Mapping[str, Level], add: AddProblem, key: str = "command"
) -> Iterator[Piece]:
    """Return the placeholders of a command and of its environment."""
    for word in (*command, *(value for value in env.values() if isinstance(value, str))):
        try:
            yield from (piece for piece in pieces(word) if piece.name is not None)
        except ValueError as error:
            add(f"{key}: {short(word)}: {error}; write a literal brace as {{{{ or }}}}")


def stage_placeholders(stages: Iterable[str]) -> tuple[str, ...]:
    """Return the placeholder for the directory of each stage: `{stage.tokens}`."""
    return tuple(f"stage.{name}" for name in stages)


def _check_switch(name: str, study: Study, settings: Mapping[str, Level], add: AddProblem) -> None:
    levels: tuple[object, ...] = (settings.get(name),)
    for factor in study.factors:
        if factor.key == name:
            levels = factor.levels
        elif any(name in values for values in factor.sets.values()):
            levels = tuple(values[name] for values in factor.sets.values())
    if not all(isinstance(level, bool) for level in levels):
        add(
            f"command: {{{name}:…}} is a switch, so {name} must be true or false; got "
            f"{' and '.join(short(level) for level in levels)}"
        )


def _check_cwd(cwd: str, add: AddProblem) -> None:
    if cwd != OWN and (cwd.startswith(("/", "~")) or "{" in cwd):
        add(
            f'cwd = {short(cwd)}: expected "{OWN}", each run\'s own directory, or a path '
            'relative to where `doe run` is started, such as "."'
        )


def _check_metrics(section: MetricsSection, study: Study, add: AddProblem) -> None:
    answers = study.responses
    own = (*answers.metrics, *answers.further)
    for name in section.keys:
        if name not in own:
            add(f"metrics.keys.{name}: no such metric{nearest(name, own)}")
    for name, how in (section.reduce or {}).items():
        if name not in own:
            add(f"metrics.reduce.{name}: no such metric{nearest(name, own)}")
        if not re.fullmatch(r"last|best|min|max|mean [1-9]\d*|at \d+(\.\d+)?", how):
            add(
                f"metrics.reduce.{name} = {short(how)}: expected last, best, mean K as in "
                "'mean 20', or at STEP as in 'at 1000'"
            )
    _check_inside(section.file, "metrics.file", add)
    if section.file != STDOUT:
        return
    for name, pattern in section.keys.items():
        compiled = _compiled(pattern, f"metrics.keys.{name}", add)
        if compiled is not None and compiled.groups > 1:
            add(
                f"metrics.keys.{name} = {short(pattern)}: got {compiled.groups} groups; expected "
                "the words before the number, or one group, the number, as in 'accuracy: (\\S+)'"
            )


def check_progress(
    section: ProgressSection, known: list[str], add: AddProblem, key: str = "progress"
) -> None:
    """List everything that is wrong with the section on progress."""
    if section.pattern and section.file:
        add(f"{key}: got a pattern and a file; expected one of them")
    if section != ProgressSection() and not section.pattern and not section.file:
        add(f"{key}: expected a pattern on the output, or the file of a CSV")
    groups: Mapping[str, int] = {}
    if section.pattern:
        compiled = _compiled(section.pattern, f"{key}.pattern", add)
        if compiled is None:
            return
        groups = compiled.groupindex
        if STEP not in groups:
            add(f"{key}.pattern: expected a group (?P<step>\\d+)")
    if section.file:
        _check_inside(section.file, f"{key}.file", add)
        groups = {TOTAL: 0} if section.total else {}
    if isinstance(section.total, str) and section.total not in known:
        add(
            f"{key}.total = {short(section.total)}: neither a factor nor a setting"
            f"{nearest(section.total, known)}; expected one of them, or a number"
        )
    if (section.pattern or section.file) and TOTAL not in groups and not section.total:
        add(f"{key}.total: missing; expected the number of steps, or a group (?P<total>\\d+)")


def _check_inside(file: str, key: str, add: AddProblem) -> None:
    if not file or file.startswith(("/", "~")) or ".." in file.split("/"):
        add(f"{key} = {short(file)}: expected a path inside the run's directory, {{run_dir}}")


def _compiled(pattern: str, key: str, add: AddProblem) -> re.Pattern[str] | None:
    try:
        return re.compile(pattern)
    except re.error as error:
        add(f"{key} = {short(pattern)}: not a valid regular expression: {error}")
        return None
