"""A study with made-up results, gathered once for all tests of the views."""

import pytest
from synthetic import study_directory

from doe.analysis.options import AnalysisOptions
from doe.results.report import report_of
from doe.results.sources import study_page
from doe.results.status import overview


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
