"""Small planned studies whose backends end in every way."""

import io
import os
from pathlib import Path

import pytest
from rich.console import Console

from doe.running.execute import EngineChoice, execute
from doe.running.scheduler import RunOptions
from doe.store.plan import write_plan
from doe.study.values import Factor, Responses, Study
from doe.views.live import open_display

BACKENDS = Path(__file__).parent / "backends"


@pytest.fixture(scope="session", autouse=True)
def _backends_can_be_imported():
    path = os.pathsep.join([str(BACKENDS), *os.environ.get("PYTHONPATH", "").split(os.pathsep)])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", path.rstrip(os.pathsep))
        yield


@pytest.fixture
def planned(tmp_path):
    """Plan a study in a directory of its own."""

    def plan(backend="noop", factors="AB", replicates=1, command=(), threads=1, **settings):
        study = Study(
            name="tiny",
            backend="command"
            if command
            else backend
            if ":" in backend
            else f"tiny_backends:{backend}",
            command=tuple(command),
            factors=tuple(Factor(key=key, levels=(False, True)) for key in factors),
            responses=Responses(metrics=("y",)),
            replicates=replicates,
            seeds=tuple(range(1, replicates + 1)),
            settings=settings,
            threads=threads,
        )
        return write_plan(study, tmp_path / "runs" / "tiny")[0]

    return plan


@pytest.fixture
def go():
    """Run a planned study in this process; return counts and the lines that were shown.

    In one slot unless said otherwise: the parent of the second run has seen the first.
    """

    def run(plan, cpu=1, options=None, asked=None):
        out = io.StringIO()
        console = Console(file=out, width=200)
        with open_display(console) as display:
            engine = EngineChoice("local", asked or {"cpu": cpu})
            done = execute(plan, options or RunOptions(), engine, display)
        return done.counts, out.getvalue()

    return run
