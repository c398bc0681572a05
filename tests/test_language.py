"""The words of messages, tables, charts and documents: the field's, not phrases to be decoded."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SOURCES = sorted([*(ROOT / "doe").rglob("*.py"), *(ROOT / "pit_model").rglob("*.py")])
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
STUMBLES = re.compile(
    r"\bstands? (?!for `)|\b(is|are) told\b|\btold apart|asked of|who does not see|makes much of"
    r"|80 % sees|cannot be told|(can|do(es)?) not tell\b|what is fragile|has but|know the looks"
    r"|makes? no sure|act on their own|asks for a (look|power|transformation)|goes with the"
    r"|nobody said|none of ours|whoever looks|before confirmation|errs more often"
    r"|beyond chance|for the better, the",
    re.IGNORECASE,
)


def strings(source: str) -> Iterator[tuple[int, str]]:
    """Return line and text of all strings that are no docstrings."""
    tree = ast.parse(source)
    expressions = [node for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    docstrings = {id(node.value) for node in expressions}
    for node in ast.walk(tree):
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in docstrings:
            yield node.lineno, node.value


def test_phrases_that_a_reader_would_stumble_over_are_found():
    for phrase in ("its p values know the looks", "10 cannot be told from it", "What is fragile"):
        assert STUMBLES.search(phrase)
    assert not STUMBLES.search("10 others are statistically tied with it")


def test_no_message_makes_a_reader_stumble():
    found = [
        f"{path.relative_to(ROOT)}:{line} {text}"
        for path in SOURCES
        for line, text in strings(path.read_text(encoding="utf-8"))
        if STUMBLES.search(text)
    ]
    assert not found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_no_document_makes_a_reader_stumble(page):
    text = " ".join(page.read_text(encoding="utf-8").split())
    assert not [text[m.start() - 30 : m.end() + 30] for m in STUMBLES.finditer(text)]


def test_docstrings_begin_with_a_verb_or_a_noun():
    openers = r"(The same|It|Its|Who|Of|So|That|They|Told)\b"
    found = []
    for path in SOURCES:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            is_documented = isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
            if is_documented and re.match(openers, ast.get_docstring(node) or ""):
                found.append(f"{path.relative_to(ROOT)}: {ast.get_docstring(node)}")
    assert not found
