"""What a TAB offers: studies, runs, configurations, responses, presets. It never complains."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from doe.study.values import Study

Completer = Callable[[typer.Context, str], list[str]]


def _silent(offer: Callable[[typer.Context], Iterable[str]]) -> Completer:
    """Offer what begins as the word does; a study that cannot be read offers nothing."""

    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        try:
            return [word for word in offer(ctx) if word.startswith(incomplete)]
        except Exception:  # a traceback in the middle of a command line helps nobody
            return []

    return complete


def _directory(ctx: typer.Context) -> Path:
    from doe.store.plan import find_study

    path = ctx.params.get("study")
    return find_study(Path(path) if path else None)


def _study(ctx: typer.Context) -> Study:
    from doe.store.files import StudyDir
    from doe.study.file import load_study

    return load_study(StudyDir(_directory(ctx)).study)


def _column(ctx: typer.Context, name: str) -> list[str]:
    """A column of the design, each value once."""
    import csv

    from doe.store.files import StudyDir

    with open(StudyDir(_directory(ctx)).design, encoding="utf-8", newline="") as file:
        return list(dict.fromkeys(row[name] for row in csv.DictReader(file)))


def _studies(_ctx: typer.Context) -> list[str]:
    from doe.store.plan import planned_studies

    return [str(path) for path in planned_studies()]


def _presets(_ctx: typer.Context) -> tuple[str, ...]:
    from doe.study.presets import preset_names

    return preset_names()


def _engines(_ctx: typer.Context) -> Iterable[str]:
    from doe.study.values import ENGINES

    return ENGINES


complete_study = _silent(_studies)
complete_preset = _silent(_presets)
complete_run = _silent(lambda ctx: _column(ctx, "run_id"))
complete_config = _silent(lambda ctx: _column(ctx, "config"))
complete_response = _silent(lambda ctx: (*_study(ctx).responses.names, "all", "further"))
complete_engine = _silent(_engines)
