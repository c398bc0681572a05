"""`doe schema`: the JSON schema of the study file."""

from __future__ import annotations

import typer


def schema() -> None:
    """Print the JSON schema of the study file, for editors."""
    from doe.study.schema import schema_text

    typer.echo(schema_text(), nl=False)
