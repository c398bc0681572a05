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
from typing import TYPE_CHECKING

from synthetic import study_directory

from doe.study.values import Factor, Responses, Study

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SIZES = {"wide": 1400, "phone": 390}
REFERENCE = Path("runs/pit-small")
IMAGES = Path("docs/images")
DRAWN = (
    "document.documentElement.dataset.ready && !document.querySelector('.view:not([data-drawn])')"
)


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
                if size == "wide":
                    page.evaluate("document.getElementById('s-profiler').scrollIntoView()")
                    page.screenshot(path=path.with_stem(f"{path.stem}-profiler"))
                page.click('#grid [data-run="003-r1"]')
                page.screenshot(path=path.with_stem(f"{path.stem}-run"))
                print(path)


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
    """Report on both studies into a directory that is left behind, and take the pictures."""
    from doe.analysis.options import AnalysisOptions
    from doe.results.report import report_of
    from doe.results.sources import study_page
    from doe.results.status import overview
    from doe.views import html

    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as root:
        studies = {"pit-small": REFERENCE, "long-names": long_study(Path(root))}
        for name, study in studies.items():
            page = Path(root) / f"{name}.html"
            page.write_text(
                html.render(
                    report_of(study_page(overview(study)), AnalysisOptions(robust=True)), "today"
                )
            )
            shoot(page, name, out)
            if study == REFERENCE:
                readme_images(page)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
