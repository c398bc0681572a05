"""Responses that are recorded and that no run has to return: time, and memory of a GPU."""

import sys
from types import SimpleNamespace

import msgspec

from doe.results.dataset import load
from doe.running.training import _gpu_memory
from doe.store.plan import write_plan
from doe.study.values import Responses


def test_a_study_has_the_run_time_as_a_response(planned, go, tmp_path):
    study = msgspec.structs.replace(planned("noop").study, responses=Responses(("y", "seconds")))
    plan, _ = write_plan(study, tmp_path / "runs" / "timed")
    go(plan)
    table = load(plan.directory)
    assert (table["state"] == "done").all()
    assert (table["seconds"] > 0).all()


def test_the_memory_of_a_gpu_is_recorded_where_torch_used_one(monkeypatch):
    cuda = SimpleNamespace(is_initialized=lambda: True, max_memory_reserved=lambda: 3 * 2**20)
    monkeypatch.setitem(sys.modules, "torch", SimpleNamespace(cuda=cuda))
    assert _gpu_memory() == {"gpu_memory": 3.0}
    cuda.is_initialized = lambda: False
    assert _gpu_memory() == {}
