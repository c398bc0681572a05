"""The Slurm engine: one array of jobs per submission, each job executes its runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from doe.running.engines.slurm.settings import Settings, problem
from doe.study.values import Study

if TYPE_CHECKING:
    from doe.running.engines.slurm.engine import SlurmEngine

__all__ = ["DETACHES", "Settings", "open", "problem"]

DETACHES = True


def open(study: Study, directory: Path, settings: Settings) -> SlurmEngine:
    """Talk to the cluster whose commands are installed here."""
    from doe.running.engines.slurm.engine import SlurmEngine

    return SlurmEngine(study, directory, settings)
