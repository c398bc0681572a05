"""A first study file, with factors proposed from the options of a program or given by the user."""

from __future__ import annotations

import ast
import json
import math
import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path, PurePosixPath

import msgspec

from doe.errors import DoeError, nearest
from doe.study.command import EDIT
from doe.study.help_text import (
    COMPUTED,
    LENGTHS,
    OUTPUT,
    OWN,
    PROMISING,
    Option,
    Proposal,
    is_candidate,
    propose,
    rank,
)
from doe.study.values import PYTHON, Level

MOST_PROPOSED = 4
"""Factors in use in a draft, for 16 configurations; further ones are written as comments."""
LEAST_PROPOSED = 2
"""Factors in use even if none is known to matter."""


class Draft(msgspec.Struct, frozen=True):
    """Contents of a first study file."""

    name: str
    backend: str
    command: str = ""
    factors: tuple[Proposal, ...] = ()
    further: tuple[Proposal, ...] = ()
    """Factors written as comments, not in use."""
    settings: dict[str, Level] = {}
    metrics: tuple[str, ...] = ("loss",)
    goal: str = "min"
    goals: dict[str, str] = {}
    """Metrics of the other direction."""
    file: str = "metrics.json"
    keys: dict[str, str] = {}
    replicates: int = 2
    edits: tuple[str, ...] = ()
    """What the user must still fill in."""
    cwd: str = ""
    """Working directory of the command, unless each run has its own."""
    python: str = ""
    """Interpreter of an environment found next to the script."""

    @property
    def configurations(self) -> int:
        """Number of configurations of all levels."""
        return math.prod(max(len(proposal.levels), 2) for proposal in self.factors)


# From a program ---------------------------------------------------------------------------------


def draft_command(
    words: Sequence[str], options: Iterable[Option], asked: Sequence[Proposal | str] = ()
) -> Draft:
    """Draft the command, factors and settings of a study around a program and its options.

    `asked` names the factors that were chosen, with levels or as plain names; none leaves the
    choice to the names that usually matter.
    """
    fixed = {word.partition("=")[0].lstrip("+") for word in words}
    free = [option for option in options if not fixed & {f.rstrip("=") for f in option.flags}]
    settings: dict[str, Level] = {}
    edits: list[str] = []
    factors, further = _factors(free, asked)
    chosen = {proposal.key for proposal in factors}
    given: list[str] = []
    for option in free:
        key = propose(option).key
        if key in chosen or option.switch or COMPUTED.search(option.help.lower()):
            continue
        if option.name in OWN:
            given.append(option.given(f"{{{OWN[option.name]}}}"))
        elif OUTPUT.fullmatch(option.name):
            default = PurePosixPath(
                option.default
            )  # The path of a file such as model.pt, or of a directory.
            name = f"/{default.name}" if default.suffix else ""
            given.append(option.given(f"{{run_dir}}{shlex.quote(name) if name else ''}"))
        elif LENGTHS.fullmatch(option.name) and re.fullmatch(r"-?\d+", option.default):
            given.append(option.given(f"{{{key}}}"))
            settings[key] = int(option.default)
        elif option.required:
            given.append(option.given(EDIT))
            edits.append(f"{option.flag} is required: replace {EDIT} with its value")
        elif option.default and "/" in option.default and Path(option.default).exists():
            given.append(option.given(shlex.quote(option.default)))  # Found wherever it runs.
    edits += [
        f"the help does not give levels of {p.key}: write them" for p in factors if not p.levels
    ]
    command = [shlex.quote(word.replace("{", "{{").replace("}", "}}")) for word in words]
    given += [proposal.use for proposal in factors]
    place = _options_position(words)
    return Draft(
        name="",
        backend="command",
        command=" ".join([*command[:place], *given, *command[place:]]),
        factors=factors,
        further=further,
        settings=settings,
        edits=tuple(edits),
    )


def _options_position(words: Sequence[str]) -> int:
    """Return where options go: after all words, but before the files of a program that is not a
    script."""
    if len(words) > 1 and re.fullmatch(PYTHON, PurePosixPath(words[0]).name):
        return len(words)
    files = (i for i, word in enumerate(words[1:], 1) if Path(word).is_file())
    script = words[1:] and words[1].endswith((".py", ".sh"))
    return len(words) if script else next(files, len(words))


def places_factors(words: Sequence[str], asked: Sequence[Proposal | str]) -> bool:
    """Return whether a command places a factor itself, as in `python app.py opt.lr={lr}`."""
    keys = [factor if isinstance(factor, str) else factor.key for factor in asked]
    return any(re.search(rf"\{{{key}[:}}]", word) for key in keys for word in words)


def draft_placed(words: Sequence[str], asked: Sequence[Proposal | str]) -> Draft:
    """Draft a study around a command with placeholders, for a program without options."""
    plain = re.compile(r"[\w@%+=:,./{}-]+", re.ASCII)
    return Draft(
        name="",
        backend="command",
        command=" ".join(word if plain.fullmatch(word) else shlex.quote(word) for word in words),
        factors=require_levels(asked),
    )


def require_levels(asked: Iterable[Proposal | str]) -> tuple[Proposal, ...]:
    """Return factors of a function or of a command with placeholders, whose levels must be
    given."""
    factors = []
    for factor in asked:
        if isinstance(factor, str):
            raise DoeError(
                f"factor {factor}: its levels are not known; give them as {factor}=LOW,HIGH"
            )
        factors.append(factor)
    return tuple(factors)


def _factors(
    options: Sequence[Option], asked: Sequence[Proposal | str]
) -> tuple[tuple[Proposal, ...], tuple[Proposal, ...]]:
    """Return the factors in use and those written as comments, the most promising first."""
    known = {propose(option).key: propose(option) for option in options}
    if asked:
        return tuple(_proposal_of(factor, known) for factor in asked), ()
    candidates = [
        propose(option)
        for option in options
        if is_candidate(option)
        and option.name.removeprefix("no_") not in known.keys() - {option.name}
    ]
    required = {propose(option).key for option in options if option.required}
    candidates.sort(key=lambda proposal: (proposal.key not in required, rank(proposal.key)))
    complete = [proposal for proposal in candidates if proposal.levels]
    likely = [p for p in complete if p.key in required or rank(p.key) < len(PROMISING)]
    used = likely[:MOST_PROPOSED]
    used += [p for p in complete if p not in used][: max(LEAST_PROPOSED - len(used), 0)]
    if not used:
        used = [p for p in candidates if p.key in required][:MOST_PROPOSED]
    return tuple(used), tuple(proposal for proposal in candidates if proposal not in used)


def _proposal_of(factor: Proposal | str, known: dict[str, Proposal]) -> Proposal:
    key = factor if isinstance(factor, str) else factor.key
    if key not in known:
        raise DoeError(
            f"factor {key}: the program has no such option{nearest(key, known)}; it has "
            f"{', '.join(known) or 'none'}"
        )
    if isinstance(factor, str):
        if not known[key].levels:
            raise DoeError(f"factor {key}: the help does not give levels; write {key}=LOW,HIGH")
        return known[key]
    if "{" + key + ":" in known[key].use:
        raise DoeError(f"factor {key}: the levels of a switch are off and on; omit them")
    return factor._replace(use=known[key].use, remark=known[key].remark)


# The file ---------------------------------------------------------------------------------------


def draft_text(draft: Draft) -> str:
    """Write a draft as a commented study file."""
    lines = [f"# {edit}" for edit in (f"EDIT: {edit}." for edit in draft.edits)]
    lines += [f"name = {_toml(draft.name)}", f"backend = {_toml(draft.backend)}"]
    if draft.command:
        lines += [
            "# Started for each run without a shell: {name} is the level of a factor or a setting,",
            "# {name:TEXT} is TEXT where it is true; also {seed}, {run_dir}, {device}, {threads}.",
            f"command = {_toml(draft.command)}",
        ]
    if draft.python:
        lines.append(f"python = {_toml(draft.python)}  # the interpreter for the word python")
    if draft.cwd:
        lines.append(f"cwd = {_toml(draft.cwd)}  # the script opens files by relative names")
    runs = draft.configurations * draft.replicates
    lines.append(
        f"replicates = {draft.replicates}"
        f"  # {draft.configurations} configurations, {runs} runs; one seed per replicate"
    )
    if draft.settings:
        lines += ["", "[settings]", *(f"{k} = {_toml(v)}" for k, v in draft.settings.items())]
    for proposal in draft.factors:
        lines += ["", *_factor_lines(proposal)]
    if draft.further:
        lines += ["", "# Further factors: remove the # and add the words to the command."]
    for proposal in draft.further:
        lines += [
            f"# {line}" for line in [*_factor_lines(proposal), f"# in the command: {proposal.use}"]
        ]
    lines += ["", "[responses]", f"metrics = {_toml(list(draft.metrics))}"]
    lines += [f"goal = {_toml(draft.goal)}  # min or max: which is better"]
    if draft.goals:
        lines.append(f"goals = {_toml_table(draft.goals)}")
    if draft.backend == "command":
        lines += ["", *_metrics_lines(draft)]
    return "\n".join(lines) + "\n"


def _factor_lines(proposal: Proposal) -> list[str]:
    lines = [f"[factors.{proposal.key}]"]
    if proposal.remark:
        lines.append(f"# {proposal.remark}")
    levels = proposal.levels or (f"{EDIT}-LOW", f"{EDIT}-HIGH")
    if len(levels) == 2:
        lines += [f"low = {_toml(levels[0])}", f"high = {_toml(levels[1])}"]
    else:
        lines.append(f"levels = [{', '.join(map(_toml, levels))}]")
    return lines + ([f"scale = {_toml(proposal.scale)}"] if proposal.scale else [])


def _metrics_lines(draft: Draft) -> list[str]:
    lines = ["# Where the command leaves its numbers, in {run_dir}: JSON, CSV (the last row), or"]
    lines += ['# "stdout", where each follows its name.', "[metrics]"]
    lines.append(f"file = {_toml(draft.file)}")
    if draft.keys:
        lines.append(f"keys = {_toml_table(draft.keys)}")
    else:
        lines.append('# keys = { accuracy = "eval/accuracy" }  # if it has another name')
    return lines


def _toml_table(values: dict[str, str]) -> str:
    return f"{{ {', '.join(f'{name} = {_toml(value)}' for name, value in values.items())} }}"


def _toml(value: object) -> str:
    """Write a value as TOML, which equals JSON for text, numbers, booleans and lists of text."""
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False)


# Scripts without help -----------------------------------------------------------------------------


HYDRA = re.compile(r"@hydra\.main\b|\bhydra\.main\(")
NO_TRAINING = re.compile(r"(.*[./])?(callbacks?|logg(er|ing)|paths?|extras|hydra|_\w+_)([./].*)?")
"""Values and groups of a configuration that do not bear on the training, and what Hydra reads."""
CONFIGURATOR = re.compile(r"configurator\.py|globals\(\)\[\w+\]\s*=|globals\(\)\.update\(")
"""How a script lets --key=value override its globals."""
ASSIGNS = re.compile(r"^\s*[^#\n]*\bexec\(.*\bsys\.argv\b", re.MULTILINE)
"""How a script lets words such as key=value assign its globals."""
ASSIGN = 'import sys; exec("\\n".join(sys.argv[1:]))'
"""A line that does this, for a script whose settings are numbers in its text."""
READS_OPTIONS = re.compile(
    r"argv|parse|click|typer|tyro|\bfire\b|flags|absl|docopt|plac\b|defopt|sacred|\bgin\b|\bTap\b"
    r"|cyclopts|entrypoint|\bcli|CLI\b"
)
"""Names by which a Python script reads its command line."""


def reads_options(script: Path) -> bool:
    """Return whether a script may read its command line, itself or in a module next to it."""
    source = script.read_text(errors="replace")
    modules = re.findall(r"^\s*(?:from|import)\s+\.*(\w+)", source, re.MULTILINE)
    places = [script.parent / name for name in modules]
    local = any(place.is_dir() or place.with_suffix(".py").is_file() for place in places)
    return local or READS_OPTIONS.search(source) is not None


def script_of(words: Sequence[str], suffix: str | tuple[str, ...] = ".py") -> Path | None:
    """Return the script that a command starts, if the file exists."""
    return next((Path(w) for w in words if w.endswith(suffix) and Path(w).is_file()), None)


# Overridden globals -----------------------------------------------------------------------------


def global_options(words: Sequence[str], source: str) -> list[Option]:
    """Read the globals of a script as options; a further .py file of the command overrides some."""
    dashes = "" if ASSIGNS.search(source) else "--"
    values: dict[str, Option] = {}
    further = [Path(w) for w in words if w.endswith(".py") and "=" not in w][1:]
    for text in (source, *(path.read_text() for path in further if path.is_file())):
        lines, waiting, is_overridden = text.splitlines(), dict[str, Option](), False
        for node in ast.parse(text).body:
            if isinstance(node, ast.Expr) and "exec(" in lines[node.lineno - 1]:
                values, waiting, is_overridden = values | waiting, {}, True
            read = _names_read(node)
            waiting = {t: w for t, w in waiting.items() if re.findall(r"\w+", t)[0] not in read}
            for target, key, default in _constants(node, assigned=not dashes):
                comment = lines[node.lineno - 1].partition("#")[2].strip()
                flag = f"{dashes}{target}="
                waiting[target] = Option(
                    flag, False, default=default, help=comment, flags=(flag,), key=key
                )
        if not is_overridden:  # elsewhere, as in a loop, or by this very file
            values |= waiting
    return list(values.values())


def _names_read(node: ast.stmt) -> set[str]:
    """Return the names that a statement reads as it runs: no later override changes these."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        return set()
    names = [child for child in ast.walk(node) if isinstance(child, ast.Name)]
    return {name.id for name in names if isinstance(name.ctx, ast.Load)}


def _constants(node: ast.stmt, assigned: bool) -> Iterator[tuple[str, str, str]]:
    """Return target, name and value of each assigned constant; without text, which would need
    quotes, but with the entries of a dict, if words are assigned as they are."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return
    try:
        value = ast.literal_eval(node.value)
    except (ValueError, TypeError):
        return
    name = node.targets[0].id
    kinds = (int, float) if assigned else (int, float, str)
    if isinstance(value, kinds) and not name.startswith("_"):
        yield name, name.lower(), str(value)
    for key, entry in value.items() if assigned and isinstance(value, dict) else ():
        if isinstance(entry, kinds) and str(key).isidentifier():
            yield f"\"{name}['{key}']\"", key, str(entry)


# Hydra ------------------------------------------------------------------------------------------


def hydra_options(composed: str, script: Path) -> list[Option]:
    """Read values and groups of a configuration as `python app.py --cfg job` prints it."""
    groups = _groups(script)
    leaves = [
        (path, text)
        for path, text in _leaves(composed)
        if path not in groups and not NO_TRAINING.fullmatch(path)
    ]
    often = Counter(path.rpartition(".")[2] for path, _ in leaves)
    options = []
    for path, text in leaves:
        last = path.rpartition(".")[2]
        key = last if often[last] == 1 else path.replace(".", "_")
        options.append(Option(f"{path}=", False, default=text, flags=(f"{path}=",), key=key))
    for group, (chosen, choices) in groups.items():
        flags = (f"{group}=",)
        key = re.sub(r"\W", "_", group)
        options.append(Option(flags[0], False, "", choices, default=chosen, flags=flags, key=key))
    own = Option("hydra.run.dir=", False, flags=("hydra.run.dir=",), key="run_dir")
    return [*options, own]


def _leaves(text: str) -> Iterator[tuple[str, str]]:
    """Return dotted names and values of OmegaConf's block-style YAML, without lists."""
    path: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = re.fullmatch(r"( *)([\w/-]+):(?: (.*))?", line)
        if match is None:
            continue
        depth = len(match[1])
        path = [(at, name) for at, name in path if at < depth]
        value = (match[3] or "").strip("'\"")
        if match[3] is None:
            path.append((depth, match[2]))
        elif value not in ("", "null", "???", "{}", "[]") and "${" not in value:
            yield ".".join([*(name for _, name in path), match[2]]), value
        elif match[2] == "seed":
            yield ".".join([*(name for _, name in path), match[2]]), ""


def _groups(script: Path) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return each group of configurations next to a script: its default and all its members."""
    source = script.read_text(errors="replace")
    folder = re.search(r"config_path\s*=\s*['\"]([^'\"]+)", source)
    name = re.search(r"config_name\s*=\s*['\"]([^'\"]+)", source)
    if folder is None or name is None:
        return {}
    root = script.parent / folder[1]
    main = root / f"{name[1].removesuffix('.yaml')}.yaml"
    text = main.read_text(errors="replace") if main.is_file() else ""
    groups = {}
    for group, chosen in re.findall(r"^\s*- (?:override )?/?([\w/]+): ?(\w+)", text, re.MULTILINE):
        choices = tuple(sorted(path.stem for path in (root / group).glob("*.yaml")))
        if len(choices) > 1 and group != "trainer" and not NO_TRAINING.fullmatch(group):
            groups[group] = (chosen, choices)
    return groups


# Where its numbers go ---------------------------------------------------------------------------

WRITES = re.compile(r"json|csv|SummaryWriter|savetxt|wandb|mlflow|open\(")


def only_prints(source: str, metric: str) -> bool:
    """Return whether a script prints a metric by its name and writes no file that could contain
    it."""
    name = re.escape(metric).replace("_", r"[\W_]")
    printed = re.search(rf"print\(.*\b{name}\b", source)
    return bool(printed) and not WRITES.search(source)


# Where it runs ----------------------------------------------------------------------------------


def opens_relative(script: Path, start: Path) -> bool:
    """Return whether a script opens an existing file or directory by a relative path."""
    source = script.read_text(errors="replace")
    if script.suffix == ".sh":
        return any(
            Path(start, n).exists() for n in re.findall(r"(?<![\w/.}])\.?[\w-]*/[\w./-]+", source)
        )
    if HYDRA.search(source):  # Hydra finds its configuration next to the script.
        return False
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    names = [t for t in texts if isinstance(t, str) and re.fullmatch(r"\.?/?[\w-][\w./-]*", t)]
    return any((start / name).exists() for name in names if name not in ("runs", "out", "reports"))
