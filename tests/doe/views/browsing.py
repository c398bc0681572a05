"""A browser without a window, for the tests that look at the page."""

import shutil

import pytest

CHROMIUM = shutil.which("chromium")
needs_chromium = pytest.mark.skipif(
    CHROMIUM is None, reason="chromium is not installed (Debian's package chromium)"
)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


ALL_DRAWN = """![...document.querySelectorAll('.view:not([data-drawn])')]
.some((view) => !view.closest('details:not([open])'))"""
"""Whether every chart outside of closed sections is there."""


def unfold(page):
    """Open all sections."""
    page.evaluate("document.querySelectorAll('.fold').forEach((fold) => { fold.open = true; })")


def drawn(page, chart, response):
    """The drawing of a chart of a response, once it is there."""
    box = page.locator(f'main [data-chart="{chart}"]')
    box.evaluate("(node) => { const fold = node.closest('.fold'); if (fold) fold.open = true; }")
    box.scroll_into_view_if_needed()
    view = f'[data-chart="{chart}"] .view[data-drawn="{response}/{chart}"] svg'
    page.wait_for_selector(view)
    return page.locator(view)


WORDS_BEFORE = """chart => {
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let words = 0;
  for (let node = walker.nextNode(); node && !chart.contains(node); node = walker.nextNode()) {
    const box = node.parentElement;
    if (box.closest("script, style, noscript, option") || !box.getClientRects().length) continue;
    words += node.data.split(/\\s+/).filter(Boolean).length;
  }
  return words;
}"""
"""Words that are seen before a chart."""
SMALL_TEXT = """() => [...document.querySelectorAll(".chart .view svg text")].filter((text) => {
  const svg = text.ownerSVGElement;
  const scale = svg.getBoundingClientRect().width / Number(svg.getAttribute("width"));
  return text.textContent && parseFloat(getComputedStyle(text).fontSize) * scale < 11;
}).map((text) => [text.closest(".chart").dataset.chart, text.textContent])"""
"""Texts of charts below 11 pixels."""
