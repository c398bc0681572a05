"""The documents: commands do what the pages say, and every page is in the site."""

import re
from pathlib import Path

import pytest

from tests.pages import alike, run_page

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = [
    page
    for folder in ("tutorial", "how-to")
    for page in sorted((DOCS / folder).glob("*.md"))
    if "\n$ " in page.read_text(encoding="utf-8").replace("    $ ", "$ ")
]
NAVIGATION = (ROOT / "mkdocs.yml").read_text(encoding="utf-8").partition("nav:")[2]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_commands_of_a_page_do_what_it_says(page, tmp_path):
    commands = run_page(page.read_text(encoding="utf-8"), tmp_path)
    assert len(commands) >= 2
    for command in commands:
        assert command.as_said, f"{command.line}\n{command.printed}"


def test_pages_agree_but_for_the_last_digits():
    assert alike("lr raises it by 0.1796  │██ ***", "lr raises it by 0.1793 │█ ***")
    assert not alike("lr raises it by 0.1796", "lr raises it by 0.24")
    assert not alike("lr raises it by 0.1796", "wd raises it by 0.1796")
    assert not alike("9 of 15 are tied", "8 of 15 are tied")
    assert not alike("by −0.09 px", "by 0.09 px")


def test_every_page_is_in_the_navigation():
    pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")}
    made = {"reference/command-line.md", "reference/study-file.md"}
    assert set(re.findall(r": ([\w/-]+\.md)", NAVIGATION)) == pages | made
