"""Pictures of the page at both widths, in both themes and on paper, and those of the README:
`make screenshots`.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from browsing import ALL_DRAWN, SMALL_TEXT, WORDS_BEFORE
from synthetic import study_directory

from doe.study.values import Factor, Responses, Study

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SIZES = {"wide": 1400, "phone": 390}
REFERENCE = Path("runs/pit-small")
IMAGES = Path("docs/images")
DRAWN = f"document.documentElement.dataset.ready && {ALL_DRAWN}"


def long_study(root: Path) -> Path:
    """A study with long names, a goal of more, a failed run and a diverged one."""
    study = Study(
        name="image-classifier-ablation",
        backend="x:run",
        description="Which parts of the training recipe matter",
        factors=(
            Factor("learning_rate", (0.001, 0.01), name="Learning rate schedule"),
            Factor("augmentation", ("none", "randaugment"), name="Data augmentation"),
            Factor("label_smoothing", (False, True)),
            Factor("optimizer", ("adamw", "sgd-momentum")),
            Factor("weight_decay", (0.0001, 0.05), name="Weight decay"),
        ),
        responses=Responses(metrics=("validation_accuracy_top1", "validation_loss"), goal="max"),
        replicates=2,
        seeds=(1, 2),
    )
    return study_directory(root, study=study, failed=("003-r1",), diverged=("005-r2",))


def small_studies() -> dict[str, tuple[Study, int]]:
    """Studies of other shapes, each with the number of its runs that have not ended."""
    rate = Factor("lr", (0.001, 0.01, 0.1), scale="log", name="Learning rate")
    optimizer = Factor("optimizer", ("sgd", "adam", "lion"), name="Optimizer")
    both = Responses(("accuracy", "seconds"), goal="max", goals={"seconds": "min"})
    one = Responses(("loss",))

    def study(name: str, factors: tuple[Factor, ...], responses: Responses, **more: Any) -> Study:
        return Study(name=name, backend="x:run", factors=factors, responses=responses, **more)

    letters = tuple(Factor(key, (0, 1)) for key in "ABCDEF")
    ranges = (Factor("rate", (0.1, 0.5)), Factor("depth", (2.0, 6.0)))
    twice = {"replicates": 2, "seeds": (1, 2)}
    return {
        "three-levels": (study("three-levels", (rate, optimizer, letters[2]), both, **twice), 0),
        "four-runs": (study("four-runs", letters[:2], one, seeds=(1,)), 0),
        "fraction": (study("fraction", letters, one, fraction="E=ABC, F=BCD", **twice), 0),
        "surface": (
            study("surface", ranges, one, design={"kind": "surface"}, centre=4, seeds=(1,)),
            0,
        ),
        "half-finished": (study("half-finished", letters[:4], both, **twice), 13),
    }


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"), args=["--no-sandbox", "--disable-gpu"]
        )
        yield browser
        browser.close()


def shoot(page_file: Path, name: str, out: Path) -> None:
    """The whole page, its first screen, and an open run, at each width and in each theme; a print
    as soon as the page is there.
    """
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(page_file.as_uri())
        page.pdf(path=out / f"{name}.pdf", format="A4")
        for size, width in SIZES.items():
            for theme in ("light", "dark"):
                view = {"width": width, "height": 900}
                page = browser.new_context(color_scheme=theme, viewport=view).new_page()
                page.set_default_timeout(120_000)
                page.goto(page_file.as_uri())
                page.wait_for_function(DRAWN)
                path = out / f"{name}-{size}-{theme}.png"
                page.screenshot(path=path, full_page=True)
                page.evaluate("document.getElementById('s-profiler').scrollIntoView()")
                page.screenshot(path=path.with_stem(f"{path.stem}-profiler"))
                page.locator("#grid .run").first.click()
                page.screenshot(path=path.with_stem(f"{path.stem}-run"))
                print(path, *problems(page))


def problems(page: Page) -> list[str]:
    """What the page must not do: scroll sideways, draw small text, begin with words alone."""
    width = page.viewport_size["width"] if page.viewport_size else 0
    found = [f"{text} is small" for text in page.evaluate(SMALL_TEXT)]
    if page.evaluate("document.documentElement.scrollWidth") > width:
        found.append("scrolls sideways")
    first = page.locator(".chart svg").first
    top = first.evaluate("(svg) => svg.getBoundingClientRect().top + window.scrollY")
    words = page.locator(".chart").first.evaluate(WORDS_BEFORE)
    return [*found, f"first chart at {top:.0f} px after {words} words"]


def readme_images(page_file: Path) -> None:
    """What the README shows: the first screen, and the half-normal plot of `dec_avg`."""
    with chromium() as browser:
        view = {"width": 1400, "height": 960}
        page = browser.new_page(viewport=view, color_scheme="light")
        page.set_default_timeout(120_000)
        page.goto(page_file.as_uri())
        page.wait_for_function(DRAWN)
        page.screenshot(path=IMAGES / "page.png")
        page = browser.new_page(viewport=view, color_scheme="light", device_scale_factor=2)
        page.goto(f"{page_file.as_uri()}#response=dec_avg")
        page.wait_for_function(DRAWN)
        page.locator('[data-chart="half-normal"] svg').screenshot(path=IMAGES / "half-normal.png")


def main(out: Path) -> None:
    """Report on every study and take the pictures of its page."""
    from doe.analysis.options import AnalysisOptions
    from doe.results.report import report_of
    from doe.results.sources import study_page
    from doe.results.status import overview
    from doe.views import html

    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as root:
        studies = {"pit-small": REFERENCE, "long-names": long_study(Path(root) / "long")}
        for name, (study, unfinished) in small_studies().items():
            studies[name] = study_directory(Path(root) / name, study=study, unfinished=unfinished)
        for name, directory in studies.items():
            page = Path(root) / f"{name}.html"
            page.write_text(
                html.render(
                    report_of(study_page(overview(directory)), AnalysisOptions(robust=True)),
                    "today",
                )
            )
            shoot(page, name, out)
            if directory == REFERENCE:
                readme_images(page)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
