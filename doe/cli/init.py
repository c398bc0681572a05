"""`doe init`: a first study file, from a script's options or from a few questions."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from doe.study.draft import Draft
    from doe.study.help_text import Option, Proposal
    from doe.study.values import Study


HELP_SECONDS = 120.0
WITHOUT_HELP = (
    "for a program without --help, write where its factors go: doe init --factor lr=0.1,1 -- "
    "PROGRAM lr={lr}"
)
NAMED_DEFAULTS = Path(__file__).parent / "named_defaults"
"""Makes argparse show the defaults in its help."""


def init(
    command: Annotated[
        list[str] | None,
        typer.Argument(help="After --: the program that trains, as in -- python train.py."),
    ] = None,
    backend: Annotated[
        str | None, typer.Option(help="A Python function instead: module:function.")
    ] = None,
    factor: Annotated[
        list[str] | None,
        typer.Option(
            help="NAME=LEVEL,LEVEL,…, NAME=LOW..HIGH:log, or NAME for proposed levels; repeatable."
        ),
    ] = None,
    metric: Annotated[
        list[str] | None,
        typer.Option(help="Metric that a run returns: NAME, or NAME=KEY; repeatable."),
    ] = None,
    goal: Annotated[str | None, typer.Option(help="Which direction is better: min or max.")] = None,
    metrics_file: Annotated[
        str | None,
        typer.Option(help="Where the command writes metrics: a .json or .csv, or stdout."),
    ] = None,
    replicates: Annotated[
        int | None, typer.Option("--replicates", "-n", min=1, help="Runs of each configuration.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="Name of the study.")] = None,
    out: Annotated[Path, typer.Option(help="The file to write.")] = Path("study.toml"),
) -> None:
    """Propose a study file; on a terminal, ask for what is not given."""
    from msgspec.structs import replace

    from doe.errors import DoeError
    from doe.study.draft import draft_text
    from doe.study.file import parse_study
    from doe.study.help_text import parse_factor

    if out.exists():
        raise DoeError(
            f"{out} already exists and is left unchanged; choose another file with --out"
        )
    if command and backend:
        raise DoeError("got both a program and --backend; give one of them")
    if goal not in (None, "min", "max"):
        raise DoeError(f"--goal {goal}: expected min or max")
    asked = [parse_factor(text) for text in factor or ()]
    words = command or []
    if not words and not backend:
        words, backend = _trainer()
    draft = _program(words, asked) if words else _function(backend or "", asked)
    draft = _answers(draft, words, metric or [], goal, metrics_file, replicates)
    draft = replace(draft, name=name or _default_name(draft, words))
    text = draft_text(draft)
    study = parse_study(text.encode(), source="the proposed study")
    try:
        with open(out, "x", encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise DoeError(f"cannot write {out}: {error.strerror}") from error
    _say(draft, study, out)


# What is studied --------------------------------------------------------------------------------


def _trainer() -> tuple[list[str], str]:
    """Ask for the trainer: the words of a command, or the name of a function."""
    import shlex
    import sys

    from doe.errors import DoeError

    if not sys.stdin.isatty():
        raise DoeError(
            "no program given; expected one, as in doe init -- python train.py, or "
            "--backend module:function"
        )
    answer = _ask(
        "Training program: a command such as python train.py, or module:function", "backend"
    )
    if re.fullmatch(r"[\w.]+:\w+", answer):
        return [], answer
    try:
        return shlex.split(answer), ""
    except ValueError as error:
        raise DoeError(f"{answer} cannot be split into words: {error}") from None


def _program(words: list[str], asked: list[Proposal | str]) -> Draft:
    from msgspec.structs import replace

    from doe.errors import DoeError
    from doe.study.draft import (
        draft_command,
        draft_placed,
        opens_relative,
        places_factors,
        script_of,
    )

    if places_factors(words, asked):
        draft = draft_placed(words, asked)
    else:
        draft = draft_command(words, options_of(words, script_of(words)), asked)
    if not draft.factors:
        raise DoeError(
            f"{' '.join(words)} has no option with a default that could be a factor; give factors "
            "with --factor NAME=LOW,HIGH"
        )
    script = script_of(words, (".py", ".sh"))
    relative = script and opens_relative(script, Path.cwd())
    return replace(draft, cwd="." if relative else "", python=_beside(words))


def _beside(words: list[str]) -> str:
    """Find the interpreter of an environment next to the script, if no other is active."""
    import os

    if words[0] not in ("python", "python3") or os.environ.get("VIRTUAL_ENV"):
        return ""
    paths = (f"{folder}/bin/python" for folder in (".venv", "venv", "env"))
    return next((path for path in paths if Path(path).exists()), "")


def options_of(words: list[str], script: Path | None) -> list[Option]:
    """Read a program's options: from Hydra's configuration, overridden globals, or its help."""
    from doe.errors import DoeError
    from doe.study.draft import (
        ASSIGN,
        ASSIGNS,
        CONFIGURATOR,
        HYDRA,
        global_options,
        hydra_options,
        reads_options,
    )

    source = script.read_text(errors="replace") if script else ""
    if script and HYDRA.search(source):
        return hydra_options(_answer([*words, "--cfg", "job"]), script)
    if CONFIGURATOR.search(source) or ASSIGNS.search(source):
        return global_options(words, source)
    if script and not reads_options(script):
        raise DoeError(
            f"{script} reads no options; add this line after its settings, and again after later "
            f"ones; they can then be set as NAME=VALUE. Then repeat: {ASSIGN}"
        )
    return read_help(words)


def read_help(words: list[str]) -> list[Option]:
    """Read the options from a program's help, or raise DoeError with the reason."""
    from doe.errors import DoeError
    from doe.study.draft import script_of
    from doe.study.help_text import read_options

    scripts = any(word.endswith((".py", ".sh")) for word in words)  # also one that does not exist
    interpreted = script_of(words) is not None or scripts
    calls = [[*words, "--help"]] if interpreted else [[words[0], "--help"], [words[0]]]
    if len(words) > 1 and words[1] in ("-m", "-c"):
        calls = [[*words, "--help"]]
    options: list[Option] = []
    while calls and not options:  # a program in C prints its usage when called without arguments
        options = read_options(_answer(calls.pop(0)))
    if not options:
        raise DoeError(f"`{' '.join(words)} --help` lists no option; {WITHOUT_HELP}")
    return options


def _answer(command: list[str]) -> str:
    """Return what a program prints; programs in C print their usage and fail."""
    import os
    import subprocess

    from doe.errors import DoeError

    # Wide and plain: neither wrapped lines nor boxes.
    plain = {"COLUMNS": "200", "TERM": "dumb", "NO_COLOR": "1", "TYPER_USE_RICH": "0"}
    paths = [str(NAMED_DEFAULTS), *filter(None, [os.environ.get("PYTHONPATH")])]
    plain["PYTHONPATH"] = os.pathsep.join(paths)
    try:
        done = subprocess.run(
            [_beside(command) or command[0], *command[1:]],
            env={**os.environ, **plain},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=HELP_SECONDS,
            check=False,
        )
    except OSError as error:
        raise DoeError(f"cannot start {command[0]!r}: {error.strerror}") from error
    except subprocess.TimeoutExpired:
        raise DoeError(
            f"`{' '.join(command)}` did not end within {HELP_SECONDS:g} s; does it support --help?"
        ) from None
    said = f"{done.stdout}\n{done.stderr}"
    failed = "Traceback (most recent call last)" in done.stderr
    if done.returncode == 0 or (re.search(r"(?im)^\s*(usage|options)\b", said) and not failed):
        return said
    last = (done.stderr or done.stdout).strip().splitlines()[-1:] or ["it printed nothing"]
    advice = "fix that first, in the environment that the command uses" if failed else WITHOUT_HELP
    raise DoeError(
        f"`{' '.join(command)}` ended with exit code {done.returncode}: {last[0]}; {advice}"
    )


def _function(backend: str, asked: list[Proposal | str]) -> Draft:
    from doe.study.draft import Draft, require_levels
    from doe.study.help_text import parse_factor

    if not asked:
        first = _ask("Factors, as in lr=0.001,0.01 aug=false,true", "factor")
        asked = [parse_factor(text) for text in first.split()]
    return Draft(name="", backend=backend, factors=require_levels(asked))


# What is asked ----------------------------------------------------------------------------------


def _ask(question: str, option: str, default: str | None = None) -> str:
    """Ask on a terminal; elsewhere take the default, or name the missing option."""
    import sys

    from doe.errors import DoeError

    if sys.stdin.isatty():
        return str(typer.prompt(question, default=default)).strip()
    if default is None:
        raise DoeError(f"--{option} is missing and input is not a terminal: {question}?")
    return default


def _answers(
    draft: Draft,
    words: list[str],
    metrics: list[str],
    goal: str | None,
    file: str | None,
    replicates: int | None,
) -> Draft:
    from msgspec.structs import replace

    from doe.errors import DoeError
    from doe.study.draft import only_prints, script_of

    if not metrics:
        answer = _ask("Metrics of a run, such as accuracy or loss", "metric")
        metrics = answer.replace(",", " ").split()
    goal = goal or _ask("Which direction is better, min or max", "goal", _likely_goal(metrics[0]))
    pairs = dict(_pair(text) for text in metrics)
    if draft.backend == "command":
        script, first = script_of(words), next(iter(pairs))
        file = file or _ask(
            "Where are they written: a .json or .csv in {run_dir}, or stdout",
            "metrics-file",
            "stdout"
            if script and only_prints(script.read_text(errors="replace"), first)
            else draft.file,
        )
    elif file:
        raise DoeError("--metrics-file applies to a program; a function returns its metrics")
    keys = {name: key for name, key in pairs.items() if key}
    goals = {name: _likely_goal(name, goal) for name in [*pairs][1:]}
    number = replicates or _number(_ask("Replicates", "replicates", "2"))
    return replace(
        draft,
        metrics=tuple(pairs),
        goal=goal,
        goals={name: likely for name, likely in goals.items() if likely != goal},
        file=file or draft.file,
        keys=keys,
        replicates=number,
    )


SMALLER = re.compile(r"loss|err(or)?|perplexity|ppl|rmse|mae|mse|nll|regret|time|seconds|logl")
"""Metrics of which less is better."""
LARGER = re.compile(
    r"acc|auc|f1|score|reward|return|psnr|ssim|iou|map|r2|ndcg|bleu|rouge|dice|precision|recall|[pr]@"
)
"""Metrics of which more is better."""


def _likely_goal(metric: str, other: str = "min") -> str:
    """Return which direction of a metric is better by its name; `other` if that says nothing."""
    if SMALLER.search(metric.lower()):
        return "min"
    return "max" if LARGER.search(metric.lower()) else other


def _pair(text: str) -> tuple[str, str]:
    name, _, key = text.partition("=")
    return name.strip(), key.strip()


def _number(text: str) -> int:
    from doe.errors import DoeError

    if not text.isdecimal() or text == "0":
        raise DoeError(f"--replicates {text}: expected a whole number of at least 1")
    return int(text)


def _default_name(draft: Draft, words: list[str]) -> str:
    scripts = [Path(word).stem for word in words if word.endswith((".py", ".sh"))]
    if not scripts and words:
        scripts = [Path(words[0]).stem]
    name = (scripts or [draft.backend.partition(":")[0]])[0]
    return re.sub(r"[^\w-]+", "-", name).strip("-.") or "study"


def _say(draft: Draft, study: Study, out: Path) -> None:
    from doe.study.command import command_doubts

    names = ", ".join(proposal.key for proposal in draft.factors)
    runs = draft.configurations * draft.replicates
    typer.echo(f"Wrote {out}: {names}; {draft.configurations} configurations, {runs} runs.")
    goals = ", ".join(f"{draft.goals.get(name, draft.goal)} {name}" for name in draft.metrics)
    typer.echo(f"Goal: {goals}.")
    for edit in draft.edits:
        typer.echo(f"Edit it first: {edit}.")
    for doubt in command_doubts(study):
        typer.echo(f"Warning: {doubt}.")
    file = "" if str(out) == "study.toml" else f" {out}"
    typer.echo(f"Next: check its levels, then doe try{file}, doe plan{file}, doe run, doe report.")


def schema() -> None:
    """Print the JSON schema of the study file, for editors."""
    from doe.study.schema import schema_text

    typer.echo(schema_text(), nl=False)
