"""Where and when the runs were made, and by what: facts from the provenance of their verdicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from doe.store.scan import Seen

MACHINE = ("host", "hardware", "device", "driver")


class RunSpan(NamedTuple):
    """When a run that ended began and ended, in seconds since the first began."""

    run_id: str
    config: str
    slot: str
    state: str
    start: float
    end: float


def run_spans(views: Sequence[Seen]) -> list[RunSpan]:
    """The runs that tell when they began and ended."""
    ended = [
        (view, [datetime.fromisoformat(origin[key]).timestamp() for key in ("start", "end")])
        for view in views
        if "start" in (origin := provenance(view)) and "end" in origin
    ]
    first = min((times[0] for _, times in ended), default=0.0)
    return [
        RunSpan(
            view.run.run_id,
            view.run.config,
            " ".join(str(provenance(view).get(key) or "") for key in ("host", "slot")).strip()
            or "unnamed slot",
            view.state,
            start - first,
            end - first,
        )
        for view, (start, end) in ended
    ]


def provenance(view: Seen) -> Mapping[str, Any]:
    """What a run's verdict says of its origin; empty without one."""
    return view.result.provenance if view.result else {}


def shared_facts(views: Sequence[Seen]) -> dict[str, list[tuple[str, int]]]:
    """Fact -> its values, each with the number of runs that share it, the most frequent first."""
    counters: dict[str, Counter[str]] = {}
    for view in views:
        for name, value in _facts(provenance(view)):
            counters.setdefault(name, Counter())[value] += 1
    return {
        name: sorted(counter.items(), key=lambda item: (-item[1], item[0]))
        for name, counter in counters.items()
    }


def commits(views: Sequence[Seen]) -> list[str]:
    """The states of the code that made the runs."""
    return sorted({str(provenance(view).get("commit") or "") for view in views} - {""})


def _facts(origin: Mapping[str, Any]) -> list[tuple[str, str]]:
    if not origin:
        return []
    dirty = " with uncommitted changes" if origin.get("dirty") else ""
    facts = [("commit", f"{origin.get('commit') or 'none'}{dirty}")]
    facts += [(name, str(origin[name])) for name in MACHINE if origin.get(name)]
    versions = origin.get("versions") or {}
    facts += [(f"version of {name}", str(versions[name])) for name in versions]
    if origin.get("attempt"):
        facts.append(("attempt", str(origin["attempt"])))
    return facts
