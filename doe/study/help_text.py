"""Options of a program, read from its `--help` (argparse, click, typer, tyro)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import NamedTuple

from doe.errors import DoeError
from doe.study.command import PLACEHOLDERS
from doe.study.values import RUN_COLUMNS, STATE_COLUMNS, Level, is_name

BOX = re.compile(r"[│┃|╭╮╰╯├┤┌┐└┘║]|[─━═]{2,}")
ENTRY = re.compile(r"\s*(?:\*\s*)?(-{1,2}[A-Za-z][\w-]*)")
FLAG = re.compile(r"(?<![\w-])--?[A-Za-z][\w.-]*")
CHOICES = re.compile(r"\{([^{}]+,[^{}]+)\}|[\[<(]([^\[\]<>()|]+(?:\|[^\[\]<>()|]+)+)[\]>)]")
METAVAR = re.compile(r"<?[A-Z][A-Z0-9_]*(?:\s+RANGE)?>?(?:\s*\[.*\])?|\{.*\}|[\[<(].*[\]>)]")
DEFAULT = re.compile(
    r"""[(\[][^()\[\]]*\bdefaults?(?:\s+to)?\s*[:=]?\s*(?P<inside>"[^"]*"|'[^']*'|[^\s;,()\[\]:=][^\s;,()\[\]]*)
    |\bdefaults?(?:\s+to\s+|\s*[:=]\s*)(?P<bare>"[^"]*"|'[^']*'|[^\s;,()\[\]]+)""",
    re.VERBOSE | re.IGNORECASE,
)


WORD = r"[A-Za-z][A-Za-z_]{2,}"
NUMERAL = r"([-+]?\d*\.?\d+(?:[eE][-+]?\d+)?)"
LIMITS = (
    re.compile(rf"([\[(])\s*{NUMERAL}\s*,\s*{NUMERAL}\s*([\])])"),
    re.compile(rf"(){NUMERAL}\s*<=?\s*\w+\s*<=?\s*{NUMERAL}()"),
    re.compile(rf"between()\s+{NUMERAL}\s+and\s+{NUMERAL}()"),
    re.compile(rf"(?:range|from)\b():?\s*{NUMERAL}\s*(?:to|-|\.\.)\s*{NUMERAL}()"),
)
"""Ways in which help texts give the range of a number."""


UNIX = re.compile(r"-\w( \w+)?\s*:\s|\s*--(\[no\])?\w+:\s")
"""An entry of a program in C, -c cost : set the parameter C, or of absl, --[no]fast: go fast."""


class Option(NamedTuple):
    """An option of a program."""

    flag: str
    """The flag as written, preferably in its long form."""
    switch: bool
    """Whether it takes no value."""
    negative: str = ""
    """The flag that turns a switch off, such as --no-augment; empty if none."""
    choices: tuple[str, ...] = ()
    metavar: str = ""
    default: str = ""
    """Default as the help writes it; empty if not given."""
    required: bool = False
    help: str = ""
    flags: tuple[str, ...] = ()
    """All its flags."""
    limits: tuple[float, float] | None = None
    """Range given in the help."""
    key: str = ""
    """Its name where the flag is not one, as in -c cost or optimizer.lr=."""

    @property
    def name(self) -> str:
        """The option as a name: --batch-size is batch_size."""
        return self.key or re.sub(r"\W", "_", self.flag.lstrip("-"))

    def given(self, value: str) -> str:
        """Return the words that pass a value."""
        return f"{self.flag}{value}" if self.flag.endswith("=") else f"{self.flag} {value}"


def read_options(text: str) -> list[Option]:
    """Find the options in a help text, in order, without help and version."""
    required = _required_in_usage(text)
    options = []
    for head, description in _entries(text):
        option = _option(head, description, required)
        if option is not None and not {"--help", "--version", "-h"} & set(option.flags):
            options.append(option)
    return options


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Return flags with values, and the description, of each entry of a help text."""
    head, description = "", ""
    for raw in text.splitlines():
        framed = bool(re.match(r"\s*[│┃║]", raw))
        line = BOX.sub(lambda m: m[0] if m[0] == "|" else " ", raw) if framed else raw
        if framed and line.rstrip().endswith("|"):
            line = line.rstrip()[:-1]
        indented = line[:1].isspace()
        if (indented and ENTRY.match(line)) or UNIX.match(line):
            if head:
                yield head, description
            head, description = _columns(line)
        elif head and indented and line.strip():
            description = f"{description} {line.strip()}"
        elif head and not line.strip():
            continue
        elif head:
            yield head, description
            head, description = "", ""
    if head:
        yield head, description


def _columns(line: str) -> tuple[str, str]:
    """Split an entry's first line into its flags with their values, and the description."""
    if UNIX.match(line):
        flag, _, text = line.strip().partition(":")
        if flag.startswith("--[no]"):
            return f"--{flag[6:]} --no{flag[6:]}", text.strip()
        return (f"{flag} VALUE" if flag.startswith("--") else flag), text.strip()
    columns = re.split(r"\s{2,}", line.strip().lstrip("*").strip())
    head = [columns.pop(0)]
    # Further columns belong to the flags if they hold only flags or the name of a value.
    while columns and (
        columns[0].startswith("-")
        or (
            METAVAR.fullmatch(columns[0]) and not re.match(r"[\[(](?:default|required)", columns[0])
        )
    ):
        head.append(columns.pop(0))
    return " ".join(head), " ".join(columns)


def _option(head: str, description: str, required: set[str]) -> Option | None:
    choice = CHOICES.search(head)
    limits = re.sub(r"\[[^\[\]]*[<>]=?[^\[\]]*\]", " ", CHOICES.sub(" ", head))  # [x>=1]
    values = re.sub(r"[\[\]<>{}()/,|=]", " ", FLAG.sub(" ", limits)).split()
    flags = FLAG.findall(CHOICES.sub(" ", head))
    # -e EPOCHS, --epochs EPOCHS names its value twice; several values differ or end in dots.
    if len(set(values)) > 2 or "..." in head:
        return None
    values = [value for value in values if value != "RANGE"]
    longs = [flag for flag in flags if flag.startswith("--")]
    if not flags:
        return None
    flag = (longs or flags)[0]
    choices = tuple(re.split(r"\s*[,|]\s*", choice[1] or choice[2])) if choice else ()
    negative = next((f for f in longs[1:] if f in (f"--no-{flag[2:]}", f"--no{flag[2:]}")), "")
    match = DEFAULT.search(description)
    default = (match["inside"] or match["bare"]).strip("'\".") if match else ""
    switch = not values and not choices
    asked = "[required]" in description or "(required)" in description
    return Option(
        flag=flag,
        switch=switch,
        negative=negative,
        choices=choices,
        metavar=values[0] if values else "",
        default="" if default.lower() in ("none", "dynamic") else default,
        required=asked or bool(required & set(flags)),
        help=_sentence(description),
        flags=tuple(flags),
        limits=None if switch or choices else _limits(f"{head} {description}"),
        key=values[0].lower()
        if values and len(flag) == 2 and re.fullmatch(WORD, values[0])
        else "",
    )


def _limits(text: str) -> tuple[float, float] | None:
    """Return the range in a text; an open end is moved inwards by a hundredth."""
    for pattern in LIMITS:
        if match := pattern.search(text):
            low, high = float(match[2]), float(match[3])
            if low < high:
                inwards = (high - low) / 100
                return low + inwards * (match[1] == "("), high - inwards * (match[4] == ")")
    return None


def _sentence(description: str) -> str:
    """Return the description without its notes in brackets."""
    text = re.sub(r"[(\[]\s*(?:defaults?|required)\b[^()\[\]]*[)\]]", "", description)
    return " ".join(re.sub(r"\[[^\[\]]*(?:default|required)[^\[\]]*\]", "", text).split())


def _required_in_usage(text: str) -> set[str]:
    """Return flags outside brackets in argparse's usage."""
    match = re.search(r"^usage:(.*?)(?:\n\s*\n|\Z)", text, re.DOTALL | re.MULTILINE)
    if not match:
        return set()
    usage = match[1]
    for _ in range(3):  # Nested brackets.
        usage = re.sub(r"\[[^\[\]]*\]", " ", usage)
    return set(FLAG.findall(usage))


# Options as factors ------------------------------------------------------------------------------


LOG = "log"


class Promising(NamedTuple):
    """A kind of option that matters in training."""

    names: str
    """Regular expression."""
    typical: tuple[Level, Level] | None = None
    """Levels if the program gives no default."""
    scale: str = ""


PROMISING = (
    Promising(r"((?!.*anneal).*_)?(lr|learning_rate|step_size|eta)(_init)?\d?", (0.001, 0.01), LOG),
    Promising(r"(.*_)?batch_?size|batch", (32, 128)),
    Promising(r"(.*_)?(weight_decay|wd|l2|c|cost|reg.*|alpha|penalty)", (0.0001, 0.01), LOG),
    Promising(r"(.*_)?optim(izer)?|solver|algo(rithm)?"),
    Promising(r"(.*_)?dropout.*|.*_drop", (0.0, 0.2)),
    Promising(r"aug.*|.*_aug.*|mixup|flip|label_smoothing"),
    Promising(r"(n_|num_|max_)?(depth|layers?|blocks|(hidden|n)_layers?)", (2, 4)),
    Promising(
        r"(.*_)?(hidden.*|width|units|channels|n_?hid|n_embd|em_?size|num_leaves|dim)", (64, 256)
    ),
    Promising(r"momentum|beta_?\d?|gamma|discount|gae_lambda|tau|subsample|colsample.*"),
    Promising(r"warm_?up.*|.*schedul.*|.*anneal.*|.*norm.*|activation|.*_coef|.*clip.*"),
    Promising(r"scale|components|kernel.*|(n_|num_)?(estimators|neighbors|heads?|envs)"),
)
"""The most promising first."""
RATES = re.compile(r"(.*_)?(decay|eps(ilon)?|lambda\w*|l1|tol.*|ent_coef)")
"""Further numbers on logarithmic scales."""
SHARES = re.compile(
    r".*subsample.*|colsample.*|tau|beta_?\d?|momentum|discount|(.*_)?(fraction|ratio)(_.*)?"
)
"""Numbers of at most 1, also where the default is 1.0."""
LENGTHS = re.compile(
    r"(max_|num_|n_|train_|total_|num_train_)?(epochs?|steps|iters|iterations|timesteps|rounds)"
    r"|(n|num)_?rounds?|num_boost_round"
)
OUTPUT = re.compile(
    r"(out|output|save|log|run|work|result|results|exp|checkpoint|ckpt|model)_?(dir|path|folder)"
    r"|out|output|save|outf|logdir|outdir"
)
OWN = {"seed": "seed", "random_seed": "seed", "random_state": "seed", "manual_seed": "seed"} | {
    **dict.fromkeys(("rng_seed", "seed_everything"), "seed"),
    "device": "device",
    **dict.fromkeys(("threads", "num_threads", "nthread", "n_threads"), "threads"),
}
"""Options filled by a placeholder."""
NO_FACTOR = re.compile(
    r"(.*_)?(no)?(cuda|mps|gpu|device|worker|thread|verbose|verbosity|quiet|silent|debug|dry_run|resume"
    r"|data|dataset|path|dir|file|folder|port|host|interval|freq|frequency|print|log|logging|save|name|id"
    r"|config|tag|wandb|project|entity|track|render|capture|vid\w*|deterministic|determinism|download|plot"
    r"|completion|load|test|eval|evaluate|checkpoint|ckpt|accel|world_size|rank|url|only|sample|logdir|outdir"
    r"|outf|filename|tensorboard|version|seed|job|backend|dtype|compile|amp|fp16|bf16|precision|profile|hub|token"
    r"|cache|overwrite|timeout|progress|init_from|pretrained|always|env|task|mode|entrypoint|format"
    r"|push|report|classes|accelerator|check|ignore|input_size|output_size|strategy|num_workers|pin_memory|cudnn|cachesize|memory|probability"
    r"|find|ddp|fsdp|deepspeed|dataloader|tqdm|cpu|tf32|trust|revision|better|kwarg|arg|unused"
    r"|checkpointing|tokenizer|predict)s?(_.*)?"
)
"""Whole words only: width and ridge contain "id" but do not count."""
COMPUTED = re.compile(
    r"\b(computed|calculated|derived|filled|determined|set)\b[^.;]*"
    r"\b(runtime|run time|automatically)\b"
)
"""Phrases in a help text for a value that the program sets itself."""
TAKEN = {*RUN_COLUMNS, *STATE_COLUMNS, *PLACEHOLDERS, "I"}


class Proposal(NamedTuple):
    """A factor, and how the command passes its level to the program."""

    key: str
    levels: tuple[Level, ...]
    """Empty if unknown."""
    use: str = ""
    """Words for the command."""
    remark: str = ""
    scale: str = ""


def rank(key: str) -> int:
    """Rank a factor by its name, 0 for the most promising."""
    name = key.lower().removeprefix("no_")
    places = (i for i, kind in enumerate(PROMISING) if re.fullmatch(kind.names, name))
    return next(places, len(PROMISING))


def is_candidate(option: Option) -> bool:
    """Return whether an option can be a factor at all."""
    name = option.name.lower().replace("per_device_", "")
    return not (
        NO_FACTOR.fullmatch(name)
        or LENGTHS.fullmatch(name)
        or OUTPUT.fullmatch(name)
        or name in OWN
        or COMPUTED.search(option.help.lower())
        or "/" in option.default
    )


def propose(option: Option) -> Proposal:
    """Return levels of an option around its default; none if the help gives no hint."""
    key = option.name if option.name not in TAKEN else f"{option.name}_level"
    value = option.given(f"{{{key}}}")
    remark = ", ".join(filter(None, [option.help, option.default and f"default {option.default}"]))
    if option.switch:
        if option.negative and option.default.lower() in ("true", option.flag.lstrip("-").lower()):
            off = f"no_{key}"
            return Proposal(off, (False, True), f"{{{off}:{option.negative}}}", remark)
        return Proposal(key, (False, True), f"{{{key}:{option.flag}}}", remark)
    if option.choices:
        first = option.default if option.default in option.choices else option.choices[0]
        levels: tuple[Level, ...] = (first, *(c for c in option.choices if c != first))[:2]
        if sorted(choice.lower() for choice in option.choices) == ["false", "true"]:
            levels = ("false", "true")
        remark = "; ".join(filter(None, [remark, f"one of {', '.join(option.choices)}"]))
        return Proposal(key, levels if len(levels) > 1 else (), value, remark)
    levels = _within(around(option), option)
    place = rank(option.name)
    if not levels and option.required and place < len(PROMISING):
        levels = PROMISING[place].typical or ()
    positive = bool(levels) and all(isinstance(v, float | int) and v > 0 for v in levels)
    scale = LOG if positive and _is_rate(option.name, float(levels[0])) else ""
    return Proposal(key, levels, value, remark, scale)


def _is_rate(name: str, number: float) -> bool:
    """Return whether a number belongs on a logarithmic scale; a share near 1 does not."""
    place = rank(name)
    if place < len(PROMISING) and PROMISING[place].scale == LOG:
        return True
    return number < 0.5 and RATES.fullmatch(name) is not None


def around(option: Option) -> tuple[Level, ...]:
    """Return levels below and above a default that is a number, or both truths of a default that is
    one.

    A rate is divided and multiplied by about three. A share stays between 0 and 1, its distance to
    the nearer end halved and doubled. Any other number is halved and doubled.
    """
    text, name = option.default, option.name
    if text.lower() in ("true", "false"):
        return (False, True) if text.islower() else ("False", "True")
    try:
        number = float(text)
    except ValueError:
        return ()
    whole = re.fullmatch(r"[+-]?\d+", text) is not None and "FLOAT" not in option.metavar.upper()
    if not math.isfinite(number) or number < 0:  # -1 means none or all.
        return ()
    if whole and not _is_rate(name, number):
        integer = int(number)
        return (0, 1) if integer == 0 else (integer - integer // 2, 2 * integer)
    if number == 0:
        return (0.0, 0.01 if RATES.fullmatch(name) or rank(name) == 2 else 0.1)
    if _is_rate(name, number):
        return _rounded(0.3 * number), _rounded(3 * number)
    if number == 1 and SHARES.fullmatch(name):
        return (0.5, 1.0)
    if number < 1:
        low = number / 2 if number <= 0.5 else 1 - min(2 * (1 - number), 1 - number / 2)
        return _rounded(low), _rounded(min(2 * number, (1 + number) / 2))
    return _rounded(number / 2), _rounded(2 * number)


def _within(levels: tuple[Level, ...], option: Option) -> tuple[Level, ...]:
    """Keep levels within the range given in the help."""
    if option.limits is None or not levels or isinstance(levels[0], bool | str):
        return levels
    low, high = option.limits
    inside = [min(max(float(level), low), high) for level in levels]
    kept = tuple(
        int(v) if isinstance(level, int) else v for v, level in zip(inside, levels, strict=True)
    )
    return kept if len({*kept}) == len(kept) else ()


def _rounded(number: float) -> float:
    return float(f"{number:.3g}")


# Given by the user --------------------------------------------------------------------------------


def parse_factor(text: str) -> Proposal | str:
    """Read NAME=LEVEL,LEVEL,… or NAME=LOW..HIGH[:log], or a NAME alone."""
    key, equals, levels = text.partition("=")
    if not is_name(key):
        raise DoeError(f"factor {text}: expected NAME=LOW,HIGH with a name of letters and digits")
    if not equals:
        return key
    levels, colon, scale = levels.partition(":")
    ranged = ".." in levels
    parts = [_level(part.strip()) for part in levels.split(".." if ranged else ",")]
    numbers = all(isinstance(part, int | float) and not isinstance(part, bool) for part in parts)
    if (ranged or colon) and not (numbers and scale in ("", "log", "linear")):
        raise DoeError(f"factor {text}: expected a range of numbers, as in lr=1e-4..1e-1:log")
    if len(parts) < 2 or "" in parts or (ranged and len(parts) != 2):
        raise DoeError(f"factor {text}: expected two levels or more, as in lr=0.001,0.01")
    return Proposal(key, tuple(parts), scale="" if scale == "linear" else scale)


def _level(text: str) -> Level:
    if text in ("true", "false"):
        return text == "true"
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text
