"""Who gets a slot: one run per place, and a GPU alone for what ran out of its memory."""

from doe.running.engines.base import Slot
from doe.running.scheduler import Active, next_kind

CPU = Slot("cpu0")
FIRST, SECOND = Slot("gpu0.1", group="gpu0"), Slot("gpu0.2", group="gpu0")
CLUSTER = Slot("slurm", places=3)


def on(slot, alone=False):
    return Active("000-r1", slot, alone, 0.0)


def test_a_slot_takes_as_many_as_it_has_places():
    assert next_kind(CPU, [], [], True, False) == "any"
    assert next_kind(CPU, [on(CPU)], [], True, False) is None
    assert next_kind(CLUSTER, [on(CLUSTER)] * 2, [], True, False) == "any"
    assert next_kind(CLUSTER, [on(CLUSTER)] * 3, [], True, False) is None
    assert next_kind(CPU, [], [], False, False) is None


def test_an_orphan_holds_its_slot():
    assert next_kind(CPU, [], ["cpu0"], True, False) is None
    assert next_kind(CPU, [], ["cpu1", ""], True, False) == "any"


def test_what_needs_a_gpu_alone_waits_until_it_is_idle_and_keeps_others_off():
    assert next_kind(SECOND, [on(FIRST)], [], True, False) == "any"
    assert next_kind(SECOND, [on(FIRST)], [], True, True) is None
    assert next_kind(SECOND, [], [], True, True) == "lonely"
    assert next_kind(SECOND, [on(FIRST, alone=True)], [], True, False) is None
