"""Tables in LaTeX with booktabs, ready to `\\input`; nothing here rounds or computes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from doe.numbers import cell_text
from doe.views.table import Column, Row, Table, slug

LINES_PER_FLOAT = 40
"""A longer table goes on in further floats, so that none is too large for a page."""
PARAGRAPH, CAPTION = 24, 70
"""Characters in a line of a paragraph column, and of a caption or a note, rather too few."""
NARROW = 60
"""Characters up to which a table is set in one column of a two-column paper."""
WIDEST = 90
"""Characters that are still readable when scaled to the width of a page."""
LONG_TEXT = 34
"""Text columns with longer cells are set as paragraphs."""
LONG_WORD = 20
BREAK = "\u200b"
"""Zero-width space: a line may break here."""
PACKAGES = ("array", "booktabs", "graphicx")
Layout = Mapping[int, bool]
"""Columns that are shown -> whether each is set as a paragraph."""

GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "η": "eta",
    "θ": "theta",
    "λ": "lambda",
    "μ": "mu",
    "ν": "nu",
    "π": "pi",
    "ρ": "rho",
    "σ": "sigma",
    "τ": "tau",
    "φ": "phi",
    "χ": "chi",
    "ω": "omega",
    "Δ": "Delta",
    "Σ": "Sigma",
    "Ω": "Omega",
}
SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "{$<$}",
    ">": "{$>$}",
    "|": "{$|$}",
    '"': "''",
    "`": r"\textasciigrave{}",
    "−": "$-$",
    "±": r"$\pm$",
    "×": r"$\times$",
    "÷": r"$\div$",
    "·": r"$\cdot$",
    "∞": r"$\infty$",
    "≤": r"$\le$",
    "≥": r"$\ge$",
    "≠": r"$\ne$",
    "≈": r"$\approx$",
    "→": r"$\to$",
    "√": r"$\surd$",
    "²": "$^2$",
    "³": "$^3$",
    "⁴": "$^4$",
    "⁵": "$^5$",
    "⁶": "$^6$",
    "½": r"$\frac12$",
    "–": "--",
    "—": "---",
    "…": r"\dots{}",
    "“": "``",
    "”": "''",
    "‘": "`",
    "’": "'",
    "\u00a0": "~",
    BREAK: r"\hspace{0pt}",
    "\n": " ",
    "\t": " ",
} | {letter: f"$\\{name}$" for letter, name in GREEK.items()}

_EXPONENT = re.compile(r"^([−+]?[\d.]+)e([+-])0*(\d+)$")
_WRAPS = {
    "best": r"\underline",
    "strong": r"\textbf",
    "good": r"\textbf",
    "bad": r"\textbf",
}


def escape(text: str) -> str:
    """Make any text safe for LaTeX: special characters, signs, Greek letters.

    Any other character beyond Latin-1 is written as its code point, U+4E2D, so that a document
    compiles whatever a study is called.
    """
    return text.translate(_ESCAPES)


class _Escapes(dict[int, str]):
    """Code point -> how it is written; a character is looked at when it first occurs."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        plain = " " <= character <= "~" or "À" <= character <= "ÿ"
        written = SPECIAL.get(character, character if plain else f"U+{code:04X}")
        self[code] = written
        return written


_ESCAPES = _Escapes()


def render(table: Table) -> str:
    """Write a table as one or more floats with caption, label, tabular and notes.

    A table wider than the page is scaled down to it, after the columns that may give way have
    been left out and named. Bars are left out too: they repeat a number of the same row.
    """
    shown = [i for i, column in enumerate(table.columns) if column.format != "bar"]
    left_out: list[str] = []
    widths = _widths(table)
    while sum(widths[i] for i in shown) > WIDEST and (
        loose := [i for i in shown if not table.columns[i].keep]
    ):
        shown.remove(loose[-1])
        left_out.insert(0, table.columns[loose[-1]].title)
    if left_out:
        note = f"Left out for width: {', '.join(left_out)}."
        table = table._replace(notes=(*table.notes, note))
    wide = sum(widths[i] for i in shown) > NARROW
    layout = {i: _is_long(table, i) for i in shown}
    chunks = list(_chunks(table, layout))
    floats = [
        _float(table, layout, wide, chunk, first=i == 0, last=i == len(chunks) - 1)
        for i, chunk in enumerate(chunks)
    ]
    return "\n".join([f"% needs \\usepackage{{{','.join(PACKAGES)}}}", *floats])


def document(names: Sequence[str]) -> str:
    """Return a document that inputs tables by file name: a proof that they compile, and a
    print-out.
    """
    packages = "".join(f"\\usepackage{{{name}}}\n" for name in PACKAGES)
    inputs = "\n".join(f"\\input{{{name}}}\n\\clearpage" for name in names)
    return (
        "\\documentclass{article}\n\\usepackage[T1]{fontenc}\n"
        "\\IfFileExists{lmodern.sty}{\\usepackage{lmodern}}{}% outlines instead of bitmaps\n"
        f"{packages}\\begin{{document}}\n{inputs}\n\\end{{document}}\n"
    )


def _chunks(table: Table, layout: Layout) -> Iterator[Sequence[Row]]:
    """Rows of each float; a caption or notes of more than two lines take room from them."""
    texts = sum(-(-len(text) // CAPTION) for text in (table.title, *table.notes))
    room = max(LINES_PER_FLOAT - max(texts - 2, 0), 8)
    chunk: list[Row] = []
    used = 0
    for row in table.rows:
        lines = _row_lines(row, layout)
        if chunk and used + lines > room:
            yield chunk
            chunk, used = [], 0
        chunk.append(row)
        used += lines
    yield chunk


def _row_lines(row: Row, layout: Layout) -> int:
    if row.style == "section":
        return 1
    longest = [len(str(row.values[i])) for i, is_long in layout.items() if is_long]
    return max([1, *(-(-letters // PARAGRAPH) for letters in longest)])


def _float(
    table: Table, layout: Layout, wide: bool, rows: Sequence[Row], first: bool, last: bool
) -> str:
    starred = "*" if wide else ""
    title = escape(_breakable(table.title)) + ("" if first else " (continued)")
    label = f"\\label{{tab:{slug(table.name)}}}\n" if first else ""
    notes = "".join(_note(note) for note in table.notes) if last else ""
    return (
        f"\\begin{{table{starred}}}[tbp]\n\\centering\\small\n\\caption{{{title}}}\n{label}\\smallskip\n"
        "\\resizebox{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}{!}{%\n"
        f"{_tabular(table, layout, rows)}}}\n{notes}\\end{{table{starred}}}\n"
    )


def _tabular(table: Table, layout: Layout, rows: Sequence[Row]) -> str:
    alignment = "".join(_alignment(table.columns[i], is_long) for i, is_long in layout.items())
    titles = {i: table.columns[i].title for i in layout}
    heads = [_breakable(titles[i]) if is_long else titles[i] for i, is_long in layout.items()]
    lines = [
        f"\\begin{{tabular}}{{{alignment}}}",
        "\\toprule",
        " & ".join(map(escape, heads)) + r" \\",
        "\\midrule",
    ]
    for i, row in enumerate(rows):
        if i and _ruled(rows[i - 1], row):
            lines.append("\\midrule")
        lines.append(_line(table, layout, row))
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}%\n"])


def _ruled(above: Row, row: Row) -> bool:
    """Return whether a rule parts two rows: before a section, after a baseline, before the
    totals.
    """
    if row.style == "section":
        return True
    return row.style != above.style and (above.style == "baseline" or row.style == "total")


def _line(table: Table, layout: Layout, row: Row) -> str:
    if row.style == "section":
        text = escape(str(row.values[0]))
        return f"\\multicolumn{{{len(layout)}}}{{l}}{{\\emph{{{text}}}}} \\\\"
    cells = [
        _cell(row, table.columns[i], cell_text(row.values[i], table.columns[i].format), is_long)
        for i, is_long in layout.items()
    ]
    return " & ".join(cells) + r" \\"


def _cell(row: Row, column: Column, text: str, is_long: bool) -> str:
    written = _number(text)
    if column.format == "text":
        written = escape(_breakable(text) if is_long else text)
    wraps = [_WRAPS[row.marks[column.key]]] if column.key in row.marks else []
    if row.style == "baseline":
        wraps.append(r"\textit")
    for wrap in wraps:
        written = f"{wrap}{{{written}}}"
    return written


def _breakable(text: str) -> str:
    """Let long words break: after a separator, or anywhere if they have none."""
    return re.sub(rf"\S{{{LONG_WORD + 1},}}", lambda word: _broken(word[0]), text)


def _broken(word: str) -> str:
    word = re.sub(r"([,:=/_])(?=\S)", r"\1" + BREAK, word)
    return re.sub(rf"([^{BREAK}]{{{LONG_WORD}}})(?=[^{BREAK}])", r"\1" + BREAK, word)


def _number(text: str) -> str:
    """Return a written number with its spread small and its power of ten as such."""
    if power := _EXPONENT.match(text):
        sign = "-" if power[2] == "-" else ""
        return f"{escape(power[1])}$\\times$10$^{{{sign}{power[3]}}}$"
    mean, plus_minus, std = text.partition("±")
    return escape(mean) + (f"{{\\footnotesize$\\,\\pm\\,${std}}}" if plus_minus else "")


def _note(note: str) -> str:
    text = escape(_breakable(note))
    return f"\\par\\smallskip\\parbox{{\\linewidth}}{{\\footnotesize\\raggedright {text}}}\n"


def _alignment(column: Column, is_long: bool) -> str:
    if is_long:
        return r">{\raggedright\arraybackslash}p{0.45\linewidth}"
    return "r" if column.numeric else "l"


def _is_long(table: Table, i: int) -> bool:
    if table.columns[i].format != "text":
        return False
    return any(len(str(row.values[i])) > LONG_TEXT for row in table.data_rows)


def _widths(table: Table) -> list[int]:
    """Width of each column in characters, with two to the next one."""
    columns = zip(*(row.values for row in table.data_rows), strict=True) if table.data_rows else ()
    widths = [2 + len(column.title) for column in table.columns]
    for i, values in enumerate(columns):
        form = table.columns[i].format
        longest = max(len(cell_text(value, form)) for value in values)
        widths[i] = max(widths[i], 2 + (PARAGRAPH if _is_long(table, i) else longest))
    return widths
