"""When to stop: a slot that only fails, or a mistake that every run makes."""

from __future__ import annotations

import re
from collections.abc import Iterable

from doe.store.verdicts import Failure

IN_A_ROW = 3
"""Failures of different runs in a row that close a slot."""


class Breaker:
    """Counts failures by slot, and compares the first ones."""

    def __init__(self, slots: Iterable[str], proven: bool = False) -> None:
        self._streaks: dict[str, list[str]] = {name: [] for name in slots}
        self._first: dict[str, str] = {}
        """Signature of each run's failure, as long as no run has succeeded."""
        self._first_slots: set[str] = set()
        self._trial = not proven  # a study of which something is done has no such mistake
        self.closed: dict[str, str] = {}
        """Slot -> the reason of the failure that closed it."""

    def succeeded(self, slot: str) -> None:
        """A run of a slot came to its end, with finite metrics or not."""
        self._streaks[slot] = []
        self._trial = False

    def failed(self, slot: str, run_id: str, failure: Failure) -> bool:
        """A run of a slot failed; tell whether this closes the slot."""
        streak = self._streaks[slot]
        if run_id not in streak:
            streak.append(run_id)
        if self._trial:
            self._first.setdefault(run_id, signature(failure))
            self._first_slots.add(slot)
        if len(streak) < IN_A_ROW or slot in self.closed:
            return False
        self.closed[slot] = failure.reason
        return True

    @property
    def hopeless(self) -> bool:
        """Whether the first runs of all slots, two at least, failed with the same traceback."""
        same = set(self._first.values())
        everywhere = self._trial and self._first_slots == self._streaks.keys()
        return len(self._first) >= 2 and everywhere and len(same) == 1 and "" not in same

    @property
    def all_closed(self) -> bool:
        """Whether no slot is left."""
        return self.closed.keys() == self._streaks.keys()


def signature(failure: Failure) -> str:
    """Where an exception was raised: its type and its stack, without the values in its message."""
    if failure.kind != "exception":
        return ""
    if not failure.traceback:
        return failure.reason
    places = re.findall(r'^  File "(.*)", line (\d+)', failure.traceback, re.MULTILINE)
    return f"{failure.type} {places}"
