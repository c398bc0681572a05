"""A study with made-up results, gathered once for all tests of the views."""

import functools

import pytest
from browsing import CHROMIUM, FLAGS, unfold
from synthetic import study_directory

from doe.analysis.options import AnalysisOptions
from doe.results.report import report_of
from doe.results.sources import study_page
from doe.results.status import overview
from doe.study.values import Factor, Responses, Study
from doe.views import html


@pytest.fixture(scope="session")
def paper_study(tmp_path_factory):
    """The whole PIT study: 256 runs, 17 responses."""
    return study_directory(tmp_path_factory.mktemp("paper"))


@pytest.fixture(scope="session")
def paper_report(paper_study):
    return report_of(
        study_page(overview(paper_study)), AnalysisOptions(robust=True, permutations=199)
    )


IMAGE = "<img src=x onerror=hacked=1>"
MARKUP = f"{IMAGE}\"'</script><!--<script>window.hacked=1</script>"


@pytest.fixture(scope="session")
def unfinished_study(tmp_path_factory):
    """A study under way, with failures, whose name and reasons hold markup."""
    root = tmp_path_factory.mktemp("unfinished")
    return study_directory(
        root,
        preset="demo",
        unfinished=20,
        failed=("034-r1", "002-r1"),
        diverged=("032-r1",),
        name=IMAGE,
        description=MARKUP,
    )


@pytest.fixture(scope="session")
def unfinished_report(unfinished_study):
    return report_of(
        study_page(overview(unfinished_study)), AnalysisOptions(robust=True, permutations=199)
    )


# Pages in a browser -------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def browser():
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def open_page(browser):
    """Opens a page and notes everything that it complains of or asks for."""
    contexts = []

    def opened(address, scheme="light", width=1280, folded=False):
        context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
        contexts.append(context)
        page = context.new_page()
        page.heard = []
        page.on("console", lambda m: page.heard.append(f"{m.type}: {m.text}"))
        page.on("pageerror", lambda error: page.heard.append(f"error: {error}"))
        page.on("dialog", lambda dialog: (page.heard.append("dialog"), dialog.dismiss()))
        page.asked = []
        page.on("request", lambda request: page.asked.append(request.url))
        page.set_default_timeout(120_000)  # a busy machine is no fault of the page
        page.goto(address)
        page.wait_for_selector("html[data-ready=yes]", state="attached")
        if not folded:
            unfold(page)
        return page

    yield opened
    for context in contexts:
        context.close()


@pytest.fixture
def visit(open_page):
    """A page of the test's own, which it may change as it likes."""
    pages = []
    yield lambda *how: pages.append(open_page(*how)) or pages[-1]
    for page in pages:
        page.context.close()


@pytest.fixture(scope="session")
def look(open_page):
    """A page that stays open for all tests of this file; none minds what the others have done.

    To load a page and draw its charts takes longer than most of what is then looked at.
    """
    return functools.cache(open_page)


@pytest.fixture(scope="session")
def paper_page(paper_report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(html.render(paper_report, "2026-11-16"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def unfinished_page(unfinished_report, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "index.html"
    path.write_text(html.render(unfinished_report, "2026-11-16"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def long_page(tmp_path_factory):
    """A study with long names and a failed run."""
    from screenshots import long_study

    root = tmp_path_factory.mktemp("long")
    report = report_of(study_page(overview(long_study(root))), AnalysisOptions(robust=True))
    path = root / "index.html"
    path.write_text(html.render(report, "2026-11-16"), encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def levels_page(tmp_path_factory):
    """Three optimizers, of which one has no switch that the others have."""
    study = Study(
        name="optimizers",
        backend="x:run",
        factors=(
            Factor("optimizer", ("sgd", "adam", "lion")),
            Factor("amsgrad", (False, True)),
            Factor("lr", (0.001, 0.01, 0.1), scale="log", name="Learning rate"),
        ),
        responses=Responses(("val_acc", "val_loss"), goal="min"),
        replicates=2,
        seeds=(1, 2),
        exclude=("optimizer=sgd, amsgrad=true",),
    )
    directory = study_directory(tmp_path_factory.mktemp("levels"), study=study)
    path = tmp_path_factory.mktemp("levels-page") / "index.html"
    path.write_text(
        html.render(report_of(study_page(overview(directory)), AnalysisOptions()), "2026-11-16")
    )
    return path
