"""Pictures of the page of studies of many shapes, at both widths, in both themes and on paper, and
those of the README: `make screenshots`, or this file with a folder and the names of some studies.
"""

from __future__ import annotations

import math
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from browsing import ALL_DRAWN, FLAGS, SMALL_TEXT, WORDS_BEFORE, unfold
from synthetic import begin_run, study_directory

from doe.analysis.options import AnalysisOptions
from doe.design.runs import Run
from doe.results.report import Report, report_of
from doe.results.sources import study_page
from doe.results.status import Overview, overview
from doe.store.files import StudyDir
from doe.store.plan import load_plan
from doe.study.values import Factor, Responses, Study
from doe.views import html
from doe.views.serve import Pages, make_server

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SIZES = {"wide": 1400, "phone": 390}
REFERENCE = Path("runs/pit-small")
IMAGES = Path("docs/images")
LIVE = "live"
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


def three_levels(root: Path) -> Path:
    """Factors of three levels, a goal of more, and the time that it costs."""
    study = Study(
        name="digits",
        backend="x:run",
        description="Recipe of a small classifier",
        factors=(
            Factor("lr", (0.001, 0.01, 0.1), scale="log", name="Learning rate"),
            Factor("optimizer", ("sgd", "adam", "lion"), name="Optimizer"),
            Factor("width", (32, 64, 128), scale="log", name="Width"),
            Factor("clip", (False, True), name="Gradient clipping"),
        ),
        responses=Responses(
            ("accuracy", "seconds"),
            goal="max",
            goals={"seconds": "min"},
            units={"accuracy": "%", "seconds": "s"},
        ),
        replicates=2,
        seeds=(1, 2),
    )
    return study_directory(root, study=study, values=accuracy_and_seconds)


def accuracy_and_seconds(study: Study, run: Run) -> dict[str, float]:
    """More filters help and cost time; the best learning rate depends on the optimizer."""
    rng = np.random.default_rng([run.row, run.replicate])
    rate, width = (math.log10(float(run.levels[key])) for key in ("lr", "width"))
    best = {"sgd": -1.2, "adam": -2.4, "lion": -3.1}[str(run.levels["optimizer"])]
    clip = bool(run.levels["clip"])
    error = 2.0 + 1.6 * (rate - best) ** 2 - 2.2 * (width - 1.8) - 0.3 * clip
    error += 0.25 * rng.standard_normal()
    cost = {"sgd": 0.9, "adam": 1.0, "lion": 0.95}[str(run.levels["optimizer"])]
    seconds = cost * (6 + 0.35 * 10**width + 1.5 * clip) * math.exp(0.03 * rng.standard_normal())
    return {"accuracy": 100 - error, "seconds": seconds}


def lost_runs(root: Path) -> Path:
    """Some levels diverge, and a pair of levels fails."""
    study = Study(
        name="stability",
        backend="x:run",
        description="Which recipes train at all",
        factors=(
            Factor("lr", (0.001, 0.01, 0.1), scale="log", name="Learning rate"),
            Factor("warmup", (False, True), name="Warm-up"),
            Factor("precision", ("fp32", "bf16", "fp16")),
            Factor("clip", (False, True), name="Gradient clipping"),
        ),
        responses=Responses(("loss", "perplexity"), units={"loss": "nats"}),
        replicates=2,
        seeds=(1, 2),
    )

    def diverges(run: Run) -> bool:
        at = run.levels
        return at["lr"] == 0.1 and not at["clip"] and (not at["warmup"] or run.replicate == 1)

    def fails(run: Run) -> bool:
        return run.levels["precision"] == "fp16" and run.levels["lr"] == 0.1 and not diverges(run)

    return study_directory(root, study=study, failed=fails, diverged=diverges)


def peak(study: Study, run: Run) -> dict[str, float]:
    """A loss with its least value within the ranges."""
    rng = np.random.default_rng([run.row, run.run_order])
    x, y = math.log10(float(run.levels["rate"])) + 2, float(run.levels["depth"]) - 4.5
    loss = 1.2 + 0.8 * x**2 + 0.2 * y**2 + 0.25 * x * y + 0.05 * rng.standard_normal()
    return {"loss": loss}


def small_studies() -> dict[str, dict[str, Any]]:
    """Studies of other shapes: what `study_directory` needs to know of each."""
    both = Responses(("accuracy", "seconds"), goal="max", goals={"seconds": "min"})
    one = Responses(("loss",))
    letters = tuple(Factor(key, (0, 1)) for key in "ABCDEF")
    rate = Factor("rate", (0.001, 0.1), scale="log", name="Learning rate")
    ranges = (rate, Factor("depth", (2.0, 6.0), name="Depth"))
    twice: dict[str, Any] = {"replicates": 2, "seeds": (1, 2)}

    def study(name: str, factors: tuple[Factor, ...], of: Responses, **more: Any) -> Study:
        return Study(name=name, backend="x:run", factors=factors, responses=of, **more)

    surface = study("surface", ranges, one, design={"kind": "surface"}, centre=4, seeds=(1,))
    half = study("half-finished", letters[:4], both, replicates=4, seeds=(1, 2, 3, 4))
    return {
        "four-runs": {"study": study("four-runs", letters[:2], one, seeds=(1,))},
        "fraction": {
            "study": study("fraction", letters, one, fraction="E=ABC, F=BCD", **twice),
        },
        "surface": {"study": surface, "values": peak},
        "half-finished": {"study": half, "unfinished": 30},
        LIVE: {"study": half, "unfinished": 30, "name": LIVE},
    }


def studies(root: Path) -> dict[str, Path]:
    """Every study of which pictures are taken, by name."""
    made = {
        "pit-small": REFERENCE,
        "long-names": long_study(root / "long"),
        "three-levels": three_levels(root / "three"),
        "lost-runs": lost_runs(root / "lost"),
    }
    for name, shape in small_studies().items():
        made[name] = study_directory(root / name, **shape)
    plan = load_plan(made[LIVE])
    for run in plan.design.runs[34:36]:
        begin_run(StudyDir(made[LIVE]).run(run.run_id))
    return made


@contextmanager
def chromium() -> Iterator[Browser]:
    """A browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        yield browser
        browser.close()


def shoot(address: str, name: str, out: Path) -> None:
    """The whole page, its profiler, and an open run, at each width and in each theme; a print
    as soon as the page is there.
    """
    with chromium() as browser:
        page = browser.new_page()
        page.set_default_timeout(120_000)
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        page.pdf(path=out / f"{name}.pdf", format="A4")
        for size, width in SIZES.items():
            for theme in ("light", "dark"):
                view = {"width": width, "height": 900}
                page = browser.new_context(color_scheme=theme, viewport=view).new_page()
                page.set_default_timeout(120_000)
                page.goto(address)
                page.wait_for_function(DRAWN)
                path = out / f"{name}-{size}-{theme}.png"
                unfold(page)
                page.wait_for_function(ALL_DRAWN)
                page.screenshot(path=path, full_page=True)
                page.locator("#grid .run").first.click()
                page.screenshot(path=path.with_stem(f"{path.stem}-run"))
                print(path, *problems(page), flush=True)


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
        view = {"width": 1400, "height": 1060}
        page = browser.new_page(viewport=view, color_scheme="light")
        page.set_default_timeout(120_000)
        page.goto(page_file.as_uri())
        page.wait_for_function(DRAWN)
        page.screenshot(path=IMAGES / "page.png")
        page = browser.new_page(viewport=view, color_scheme="light", device_scale_factor=2)
        page.goto(f"{page_file.as_uri()}#response=dec_avg")
        page.wait_for_function(DRAWN)
        page.locator('[data-chart="half-normal"] svg').screenshot(path=IMAGES / "half-normal.png")


def report(state: Overview, in_short: bool = False) -> Report:
    """What `doe report` says of a study."""
    return report_of(study_page(state), AnalysisOptions(robust=True), in_short=in_short)


@contextmanager
def served(directory: Path) -> Iterator[str]:
    """The address of the page of a study under way."""
    server = make_server(Pages(directory, report), 0)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/"
    server.shutdown()
    server.server_close()


def main(out: Path, names: list[str]) -> None:
    """Report on studies, all or the named ones, and take the pictures of their pages."""
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as root:
        for name, directory in studies(Path(root)).items():
            if names and name not in names:
                continue
            if name == LIVE:
                with served(directory) as address:
                    shoot(address, name, out)
                continue
            page = Path(root) / f"{name}.html"
            page.write_text(html.render(report(overview(directory)), "today"), encoding="utf-8")
            shoot(page.as_uri(), name, out)
            if directory == REFERENCE:
                readme_images(page)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
