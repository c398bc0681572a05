"""The profiler and the trade-off of the page in a real browser."""

import pytest
from browsing import needs_chromium

from doe.numbers import cell_text


def foretold(page, response):
    """Predicted, interval and observed of a response, as the profiler shows them."""
    return page.locator(f'[data-response="{response}"] .foretold [data-kind]').all_inner_texts()


def analysed(analysis, levels):
    """The same three as the analysis has them."""
    at = next(p for p in analysis.predictions if p.levels == levels)
    cell = next(c for c in analysis.best.cells if c.levels == levels)
    low, high = cell_text(at.ci_low, "brief"), cell_text(at.ci_high, "brief")
    observed = f"observed {cell_text(cell.mean, 'brief')} ({cell.n} runs)"
    left_out = ", not the observed mean" if at.outside else ""
    unit = f" {analysis.unit}".rstrip()
    predicted = f"{cell_text(at.mean, 'brief')}{unit}"
    return [predicted, f"95 % CI {low} to {high}{left_out}", observed]


def click_level(page, response, factor, part):
    """Click where a level lies in a panel: `part` of its width."""
    panel = page.locator(f'[data-response="{response}"] .panel[data-factor="{factor}"]')
    panel.scroll_into_view_if_needed()
    box = panel.bounding_box()
    page.mouse.click(box["x"] + part * box["width"], box["y"] + box["height"] / 2)


@needs_chromium
def test_the_profiler_starts_at_the_best_and_says_what_the_analysis_says(
    visit, paper_page, paper_report
):
    page = visit(paper_page.as_uri())
    page.check("#every-response")
    levels = list(paper_report.analyses["enc_avg"].best.cells[0].levels)
    assert "This is the best observed configuration for encoder error" in page.inner_text(
        "#profiled"
    )
    for factor, level in (("A", 0), ("F", 1), ("C", 0), ("C", 1)):
        for name, analysis in paper_report.analyses.items():
            assert foretold(page, name) == analysed(analysis, tuple(levels)), name
        click_level(page, "dec_avg", factor, 0.25 + 0.5 * level)
        levels["ABCDEF".index(factor)] = level
        assert foretold(page, "enc_avg") == analysed(
            paper_report.analyses["enc_avg"], tuple(levels)
        )
    assert "Differs from the best observed configuration for encoder error in" in page.inner_text(
        "#profiled"
    )
    before = foretold(page, "dec_avg")
    page.reload()
    page.wait_for_selector("html[data-ready=yes]", state="attached")
    assert foretold(page, "dec_avg") == before, "the address keeps the levels"
    page.click("#places button >> text=best observed")
    assert "This is the best observed configuration for encoder error" in page.inner_text(
        "#profiled"
    )
    page.click("#places button >> text=baseline")
    assert foretold(page, "enc_avg") == analysed(paper_report.analyses["enc_avg"], (0,) * 6)
    assert page.heard == []


@needs_chromium
def test_a_line_is_dragged_and_keys_move_it(visit, paper_page):
    page = visit(paper_page.as_uri())
    page.click("#places button >> text=baseline")
    panel = page.locator('[data-response="enc_avg"] .panel[data-factor="A"]')
    panel.scroll_into_view_if_needed()
    box = panel.bounding_box()
    middle = box["y"] + box["height"] / 2
    slider = page.locator('[role=slider][data-factor="A"]')
    page.mouse.move(box["x"] + 0.2 * box["width"], middle)
    page.mouse.down()
    assert slider.get_attribute("aria-valuetext") == "false"
    page.mouse.move(box["x"] + 0.9 * box["width"], middle)
    assert slider.get_attribute("aria-valuetext") == "true", "before the button is let go"
    page.mouse.up()
    assert page.evaluate("document.activeElement.dataset.factor") == "A"
    page.keyboard.press("ArrowLeft")
    assert slider.get_attribute("aria-valuetext") == "false"
    assert page.evaluate("document.activeElement.dataset.factor") == "A"
    assert page.heard == []


@needs_chromium
def test_the_trade_off_takes_configurations_into_the_profiler(visit, paper_page, paper_report):
    page = visit(paper_page.as_uri())
    dots = page.locator("#tradeoff .config")
    assert dots.count() == 64
    assert page.locator("#tradeoff .seed").count() == 256
    page.locator("#tradeoff").scroll_into_view_if_needed()
    front = page.locator("#tradeoff circle.best")
    means = {
        name: {cell.cell: cell.mean for cell in paper_report.analyses[name].best.cells}
        for name in ("enc_avg", "dec_avg")
    }
    on_front = {int(row) for row in front.evaluate_all("all => all.map(n => n.dataset.row)")}
    for row in range(64):
        better = [
            k
            for k in range(64)
            if k != row and all(means[name][k] <= means[name][row] for name in means)
        ]
        assert (row in on_front) == (not better)
    last = page.evaluate(
        """() => [...document.querySelectorAll('#tradeoff .config')]
        .sort((a, b) => b.getAttribute('cx') - a.getAttribute('cx'))[0].dataset.row"""
    )
    page.locator(f'#tradeoff .config[data-row="{last}"]').click(force=True)
    levels = tuple(int(last) >> i & 1 for i in range(6))
    assert foretold(page, "enc_avg") == analysed(paper_report.analyses["enc_avg"], levels)
    box = page.locator("#tradeoff svg").bounding_box()
    page.mouse.move(box["x"] + 55, box["y"] + 14)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] - 15, box["y"] + box["height"] - 60)
    page.mouse.up()
    count = int(page.inner_text("#brushed").split()[0])
    assert 0 < count < 64
    assert page.locator("#tradeoff .config.left").count() == 64 - count
    assert page.locator('[data-response="enc_avg"] .levels .share').count() == 12
    page.select_option("#tradeoff-y", "V224")
    assert page.inner_text("#brushed") == ""
    assert page.heard == []


@needs_chromium
def test_an_excluded_combination_is_named_and_numbers_lie_on_their_scale(visit, levels_page):
    page = visit(levels_page.as_uri())
    page.click("#places button >> text=baseline")
    assert len(foretold(page, "val_acc")) == 3
    click_level(page, "val_acc", "amsgrad", 0.8)
    assert page.inner_text("#profiled").startswith("Excluded: this combination cannot run.")
    for name in ("val_acc", "val_loss"):
        said = page.locator(f'[data-response="{name}"] .foretold').inner_text()
        assert "excluded: this combination cannot run" in said
    struck = page.locator('[data-factor="optimizer"] .levels .excluded').first
    assert struck.text_content() == "sgd"
    dots = '[data-response="val_acc"] .panel[data-factor="{}"] .predicted'
    click_level(page, "val_acc", "amsgrad", 0.2)
    for factor, even in (("optimizer", True), ("lr", True)):  # lr is logarithmic
        places = page.locator(dots.format(factor)).evaluate_all(
            "all => all.map(n => +n.getAttribute('cx'))"
        )
        assert (places[1] - places[0] == pytest.approx(places[2] - places[1], abs=0.1)) == even
    for width in (1400, 390):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    assert page.heard == []
