"""The Slurm engine: one array of jobs per submission, each job executes its runs."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from doe.running.engines.slurm.settings import Settings, problem
from doe.study.values import Study

if TYPE_CHECKING:
    from doe.running.engines.slurm.engine import SlurmEngine
    from doe.store.files import StudyDir

__all__ = ["DETACHES", "Settings", "open", "problem", "waiting_reasons"]

DETACHES = True


def open(study: Study, directory: Path, settings: Settings) -> SlurmEngine:
    """Connect to the cluster whose commands are installed here."""
    from doe.running.engines import stage_settings
    from doe.running.engines.slurm.engine import SlurmEngine

    stages = stage_settings("slurm", study, settings, runs_per_job=1)
    return SlurmEngine(study, directory, settings, stages)


def waiting_reasons(study: StudyDir, runs: Collection[str]) -> dict[str, str]:
    """Return why jobs still wait, and the output of jobs that ended before their runs began."""
    from doe.running.engines.slurm.engine import waiting_reasons

    return waiting_reasons(study, runs)
