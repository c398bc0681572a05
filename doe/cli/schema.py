"""`doe schema`: the JSON schema of the study file."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON schema of the study file, for editors."""
    from doe.study.schema import SCHEMA_FILE

    typer.echo(SCHEMA_FILE.read_text(encoding="utf-8"), nl=False)
