"""Pages of the site that are made from the code: the command line and the study file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import typer
from mkdocs.structure.files import File, Files


def on_files(files: Files, config: Any) -> Files:
    """Add the generated pages, as mkdocs asks its hooks."""
    for name, text in (
        ("reference/command-line.md", command_line()),
        ("reference/study-file.md", study_file()),
    ):
        files.append(File.generated(config, name, content=text))
    return files


# Command line -------------------------------------------------------------------------------------


def command_line() -> str:
    """Return a section for each command: what it does, its arguments and options."""
    import doe.cli
    import pit_model.cli

    parts = ["# Command line\n\nEvery command has `--help`, which says the same."]
    for module in (doe.cli, pit_model.cli):
        root: Any = typer.main.get_command(module.app)
        for name, command in root.commands.items():
            parts.append(f"## {root.name or 'pit'} {name}\n\n{_prose(command.help)}")
            if rows := [
                _option(parameter) for parameter in command.params if not _hidden(parameter)
            ]:
                parts.append("| Option | Default | |\n| --- | --- | --- |\n" + "\n".join(rows))
    return "\n\n".join(parts) + "\n"


def _hidden(parameter: Any) -> bool:
    return bool(getattr(parameter, "hidden", False)) or parameter.name == "help"


def _option(parameter: Any) -> str:
    names = ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))
    if parameter.param_type_name == "argument":
        names = f"`{parameter.human_readable_name}`"
    default = parameter.default
    shown = "" if default in (None, False, (), []) or callable(default) else f"`{default}`"
    return f"| {names} | {shown} | {_cell(getattr(parameter, 'help', '') or '')} |"


# Study file ---------------------------------------------------------------------------------------


def study_file() -> str:
    """Return a table of keys for the study file and for each of its sections."""
    from doe.study.schema import schema_text

    schema = json.loads(schema_text())
    parts = [
        "# Study file",
        "A study file is TOML. `doe plan` checks it and freezes a copy in the study's directory. "
        "`doe schema` prints its JSON schema, from which editors complete keys.",
        *_section("Top level", schema),
    ]
    for name, section in schema["$defs"].items():
        parts.extend(_section(_title(name, schema), section))
    return "\n\n".join(parts) + "\n"


def _title(name: str, schema: dict[str, Any]) -> str:
    """Return how the section is written in a file, by the first key that refers to it."""
    for key, value in schema["properties"].items():
        if f'"#/$defs/{name}"' in json.dumps(value):
            many = "patternProperties" in json.dumps(value) or "additionalProperties" in value
            return f"`[{key}.NAME]`" if many else f"`[{key}]`"
    return name


def _section(title: str, schema: dict[str, Any]) -> Iterator[str]:
    if not (properties := schema.get("properties")):
        return
    yield f"## {title}"
    yield _prose(schema.get("description"))
    rows = [
        f"| `{key}` | {_kind(value)} | {_default(value)} | {_cell(value.get('description', ''))} |"
        for key, value in properties.items()
    ]
    yield "| Key | Type | Default | |\n| --- | --- | --- | --- |\n" + "\n".join(rows)


def _kind(value: dict[str, Any]) -> str:
    if "$ref" in value:
        return "table"
    if "enum" in value:
        return " or ".join(f"`{json.dumps(item)}`" for item in value["enum"])
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(_kind(item) for item in value["anyOf"]))
    names = {"object": "table", "array": "list", "integer": "whole number"}
    return names.get(str(value.get("type", "")), str(value.get("type", "any")))


def _default(value: dict[str, Any]) -> str:
    default = value.get("default")
    return (
        ""
        if default in (None, "", {}, []) or isinstance(default, dict)
        else f"`{json.dumps(default)}`"
    )


def _prose(text: str | None) -> str:
    return " ".join((text or "").replace("\b", "").split())


def _cell(text: str) -> str:
    return _prose(text).replace("|", "\\|").replace("<", "&lt;")
