"""Which kind of run a slot takes next: any, one that needs its GPU alone, or none for now."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, NamedTuple

from doe.running.engines.base import Slot


class Active(NamedTuple):
    """A run that this scheduler has started."""

    run_id: str
    slot: Slot
    alone: bool
    since: float


def next_kind(
    slot: Slot,
    active: Collection[Active],
    orphans: Sequence[str],
    any_waits: bool,
    lonely_waits: bool,
) -> Literal["any", "lonely"] | None:
    """Choose for one slot.

    Parameters
    ----------
    active : collection of Active
        What this scheduler has started, on all slots.
    orphans : sequence of str
        Slots held by runs that a dead scheduler has left on this machine.
    any_waits, lonely_waits : bool
        Whether runs wait, and whether some wait that ran out of GPU memory beside others. Those
        come first: slots that share a GPU stay empty until one of the GPUs is idle for them.
    """
    held = sum(one.slot.name == slot.name for one in active) + orphans.count(slot.name)
    if held >= slot.places:
        return None
    shares = [one for one in active if slot.group and one.slot.group == slot.group]
    if lonely_waits and not shares:
        return "lonely"
    held_back = bool(slot.group) and (lonely_waits or any(one.alone for one in shares))
    return "any" if any_waits and not held_back else None
