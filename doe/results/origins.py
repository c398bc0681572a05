"""Origin of the runs: place, time and software, from the provenance of their verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from doe.store.scan import RunStatus
from doe.store.verdicts import FILES, IMPORTED

MACHINE = ("host", "hardware", "device", "driver", "threads")


class RunSpan(NamedTuple):
    """When a run that ended began and ended, in seconds since the first began."""

    run_id: str
    config: str
    slot: str
    state: str
    start: float
    end: float


def run_spans(statuses: Sequence[RunStatus]) -> list[RunSpan]:
    """Return the runs whose start and end are known."""
    ended = [
        (status, [datetime.fromisoformat(origin[key]).timestamp() for key in ("start", "end")])
        for status in statuses
        if "start" in (origin := status.provenance) and "end" in origin
    ]
    first = min((times[0] for _, times in ended), default=0.0)
    return [
        RunSpan(
            status.run.run_id,
            status.run.config,
            machine_text(status) or "unnamed slot",
            status.state,
            start - first,
            end - first,
        )
        for status, (start, end) in ended
    ]


def machine_text(status: RunStatus) -> str:
    """Return the host and its slot that a run was executed on."""
    names = (status.provenance.get(key) for key in ("host", "slot"))
    return " ".join(str(name) for name in names if name)


def shared_facts(statuses: Sequence[RunStatus]) -> dict[str, list[tuple[str, int]]]:
    """Fact -> its values, each with the number of runs that share it, the most frequent first."""
    counters: dict[str, Counter[str]] = {}
    for status in statuses:
        for name, value in _facts(status.provenance):
            counters.setdefault(name, Counter())[value] += 1
    return {
        name: sorted(counter.items(), key=lambda item: (-item[1], item[0]))
        for name, counter in counters.items()
    }


def commits(statuses: Sequence[RunStatus]) -> list[str]:
    """Return the states of the code that made the runs."""
    return sorted({str(status.provenance.get("commit") or "") for status in statuses} - {""})


def _facts(origin: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not origin:
        return []
    if IMPORTED in origin:
        return [(IMPORTED, str(origin[IMPORTED]))]
    dirty = " with uncommitted changes" if origin.get("dirty") else ""
    facts = [("commit", f"{origin.get('commit') or 'none'}{dirty}")]
    facts += [(name, str(origin[name])) for name in MACHINE if origin.get(name)]
    versions = origin.get("versions") or {}
    facts += [(f"version of {name}", str(versions[name])) for name in versions]
    facts += [(f"SHA-256 of {name}", str(d)[:12]) for name, d in (origin.get(FILES) or {}).items()]
    if origin.get("attempt"):
        facts.append(("attempt", str(origin["attempt"])))
    return facts
