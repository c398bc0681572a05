"""The options of a program, read from what its `--help` prints (argparse, click, typer, tyro)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

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
"""Ways in which a help names the range of a number."""


UNIX = re.compile(r"-\w( \w+)?\s*:\s|\s*--(\[no\])?\w+:\s")
"""An entry of a program in C, -c cost : set the parameter C, or of absl, --[no]fast: go fast."""


class Option(NamedTuple):
    """An option of a program."""

    flag: str
    """As it is written, preferably in its long form."""
    switch: bool
    """Whether it stands alone, without a value."""
    negative: str = ""
    """The flag that turns a switch off, as --no-augment; empty if there is none."""
    choices: tuple[str, ...] = ()
    metavar: str = ""
    default: str = ""
    """As the help writes it; empty where it does not."""
    required: bool = False
    help: str = ""
    flags: tuple[str, ...] = ()
    """All its forms."""
    limits: tuple[float, float] | None = None
    """The range that the help names."""
    key: str = ""
    """Its name where the flag is none, as in -c cost or optimizer.lr=."""

    @property
    def name(self) -> str:
        """The option as a name: --batch-size is batch_size."""
        return self.key or re.sub(r"\W", "_", self.flag.lstrip("-"))

    def given(self, value: str) -> str:
        """The words that hand over a value."""
        return f"{self.flag}{value}" if self.flag.endswith("=") else f"{self.flag} {value}"


def read_options(text: str) -> list[Option]:
    """Find the options in a help text, in its order; help and version are left out."""
    required = _required_in_usage(text)
    options = []
    for head, description in _entries(text):
        option = _option(head, description, required)
        if option is not None and not {"--help", "--version", "-h"} & set(option.flags):
            options.append(option)
    return options


def _entries(text: str) -> Iterator[tuple[str, str]]:
    """Flags with their values, and the description, of each entry of a help text."""
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
    # Of further columns, those that hold nothing but flags or the name of a value belong to them.
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
    """The range that a text names; an open end is moved inwards by a hundredth."""
    for pattern in LIMITS:
        if match := pattern.search(text):
            low, high = float(match[2]), float(match[3])
            if low < high:
                inwards = (high - low) / 100
                return low + inwards * (match[1] == "("), high - inwards * (match[4] == ")")
    return None


def _sentence(description: str) -> str:
    """The description without its notes in brackets."""
    text = re.sub(r"[(\[]\s*(?:defaults?|required)\b[^()\[\]]*[)\]]", "", description)
    return " ".join(re.sub(r"\[[^\[\]]*(?:default|required)[^\[\]]*\]", "", text).split())


def _required_in_usage(text: str) -> set[str]:
    """Flags that stand outside brackets in argparse's usage."""
    match = re.search(r"^usage:(.*?)(?:\n\s*\n|\Z)", text, re.DOTALL | re.MULTILINE)
    if not match:
        return set()
    usage = match[1]
    for _ in range(3):  # brackets within brackets
        usage = re.sub(r"\[[^\[\]]*\]", " ", usage)
    return set(FLAG.findall(usage))
