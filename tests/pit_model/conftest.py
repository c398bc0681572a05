import pytest
import torch

from pit_model.backend import run

TINY = {
    "preset": "demo",
    "image_size": 16,
    "frames": 8,
    "train_sequences": 3,
    "val_sequences": 2,
    "test_sequences": 2,
    "epochs": 2,
}


class Asked:
    """A request of the form that a study hands to the backend."""

    def __init__(self, run_dir, **more):
        self.factors = {"F": True}
        self.settings = TINY
        self.seed = 7
        self.seeds = {}
        self.device = "cpu"
        self.threads = 1
        self.run_dir = run_dir
        self.resumed = False
        self.reports = []
        self.__dict__.update(more)

    def report(self, step, total, **metrics):
        self.reports.append((step, total, metrics))


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup():
    """Compute in one thread from before the first fixture of each test, whatever was set before.

    Threads that wait for each other on a busy machine take minutes, and sums in another number of
    threads differ in their last bits.
    """
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """A tiny finished run: what was asked, and what the backend answered."""
    asked = Asked(tmp_path_factory.mktemp("run"))
    return asked, run(asked)
