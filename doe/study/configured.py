"""Options of scripts that have no help to speak of: Hydra's configuration, overridden globals."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from doe.study.help_text import Option

HYDRA = re.compile(r"@hydra\.main\b|\bhydra\.main\(")
CONFIGURATOR = re.compile(r"configurator\.py|globals\(\)\[\w+\]\s*=|globals\(\)\.update\(")
"""How a script lets --key=value override its globals."""


def script_of(words: Sequence[str]) -> Path | None:
    """The Python script that a command starts, if it is there."""
    return next((Path(w) for w in words if w.endswith(".py") and Path(w).is_file()), None)


# Overridden globals -----------------------------------------------------------------------------


def global_options(words: Sequence[str], source: str) -> list[Option]:
    """The globals of a script as options; a further .py of the command sets some of them anew."""
    values: dict[str, Option] = {}
    further = [Path(w) for w in words if w.endswith(".py") and "=" not in w][1:]
    for text in (source, *(path.read_text() for path in further if path.is_file())):
        lines = text.splitlines()
        for node in ast.parse(text).body:
            if isinstance(node, ast.Expr) and "exec(" in lines[node.lineno - 1]:
                break
            for name, default in _constants(node):
                comment = lines[node.lineno - 1].partition("#")[2].strip()
                flag = f"--{name}="
                values[name] = Option(
                    flag, False, default=default, help=comment, flags=(flag,), key=name
                )
    return list(values.values())


def _constants(node: ast.stmt) -> Iterator[tuple[str, str]]:
    """Names and values of an assignment of plain constants."""
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return
    try:
        value = ast.literal_eval(node.value)
    except (ValueError, TypeError):
        return
    name = node.targets[0].id
    if (
        isinstance(value, (bool, int, float, str))
        and not name.startswith("_")
        and not name.isupper()
    ):
        yield name, str(value)


# Hydra ------------------------------------------------------------------------------------------


def hydra_options(composed: str, script: Path) -> list[Option]:
    """Values of a composed configuration as `python app.py --cfg job` prints it, and its groups."""
    groups = _groups(script)
    leaves = [(path, text) for path, text in _leaves(composed) if path not in groups]
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
    """Dotted names and values of the block form of YAML that OmegaConf writes; no lists."""
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
    """Groups of configurations beside a script: the one that is the default, and all of them."""
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
        if len(choices) > 1 and "hydra" not in group:
            groups[group] = (chosen, choices)
    return groups


# Where its numbers go ---------------------------------------------------------------------------

WRITES = re.compile(r"json|csv|SummaryWriter|savetxt|wandb|mlflow|open\(")


def only_prints(source: str, metric: str) -> bool:
    """Whether a script prints a metric by its name and writes no file that could hold it."""
    name = re.escape(metric).replace("_", r"[\W_]")
    printed = re.search(rf"print\(.*\b{name}\b", source)
    return bool(printed) and not WRITES.search(source)


# Where it runs ----------------------------------------------------------------------------------


def opens_relative(source: str, start: Path) -> bool:
    """Whether a script names a file or directory that is there, relative to where it is started."""
    if HYDRA.search(source):  # its configuration is found beside it
        return False
    try:
        tree = ast.parse(source)
    except SyntaxError:
        return False
    texts = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant)}
    names = [t for t in texts if isinstance(t, str) and re.fullmatch(r"\.?/?[\w-][\w./-]*", t)]
    return any((start / name).exists() for name in names if name not in ("runs", "out", "reports"))
