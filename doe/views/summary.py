"""How `doe run` ends: a few lines on the terminal, the same for `--notify`."""

from __future__ import annotations

from doe.errors import counted
from doe.numbers import cell_text, duration_text
from doe.results.summary import Summary

MOST_RESPONSES = 8
"""Responses whose best configuration is named."""


def summary_lines(summary: Summary, study_option: str) -> list[str]:
    """Counts, time, the best by each goal, the next command.

    `study_option` names the study on the command line, as in " --study runs/x".
    """
    states = [f"{count} {state}" for state, count in summary.counts.items() if count]
    lines = [f"{', '.join(states)}; {summary.ending} after {duration_text(summary.seconds)}."]
    for best in summary.best[:MOST_RESPONSES]:
        extreme = "largest" if best.goal == "max" else "smallest"
        lines.append(
            f"{extreme} {best.response}: {cell_text(best.mean, 'num')} with {best.config}"
            f"{summary.levels and f' ({summary.levels})'}, the mean of {counted(best.runs, 'run')}"
        )
    if summary.counts["failed"]:
        lines.append("`doe run --retry-failed` runs failed ones again.")
    return [*lines, f"next: {next_command(summary)}{study_option}"]


def next_command(summary: Summary) -> str:
    """What to do about a study in this state."""
    if summary.counts["failed"]:
        return "doe status"
    over = summary.decision is not None and summary.decision.is_final
    if (summary.counts["pending"] or summary.counts["running"]) and not over:
        return "doe run"
    return "doe report"


def summary_environment(summary: Summary, study_option: str) -> dict[str, str]:
    """The summary as variables that a command finds in its environment."""
    return {
        "DOE_STUDY": summary.study,
        "DOE_ENDING": summary.ending,
        "DOE_SECONDS": cell_text(summary.seconds, "int"),
        **{f"DOE_{state.upper()}": str(count) for state, count in summary.counts.items()},
        "DOE_NEXT": f"{next_command(summary)}{study_option}",
        "DOE_SUMMARY": "\n".join(summary_lines(summary, study_option)),
    }
