"""The JSON schema of the study file, for editors that complete and check it.

It follows from the values of the study and from the line under each of their fields.
"""

from __future__ import annotations

import ast
import inspect
from typing import Any

import msgspec

from doe import goals
from doe.study import values
from doe.study.file import FROZEN
from doe.study.values import ENGINES, NAME, Study

DIALECT = "https://json-schema.org/draft/2020-12/schema"
KEY = f"^{NAME}$"
"""Keys of factors and names of streams of seeds."""
CONTENTS = "$defs"
REFERENCE = f"#/{CONTENTS}/"


def study_schema() -> dict[str, Any]:
    """Describe the TOML form of a study: factors and other sections as tables by their names."""
    _, contents = msgspec.json.schema_components([Study], ref_template=f"{REFERENCE}{{name}}")
    texts = _field_texts()
    for name, part in contents.items():
        part["additionalProperties"] = False
        part.pop("title", None)
        for field, value in part["properties"].items():
            _drop_null(value)
            if text := texts.get((name, field)):
                value["description"] = text
    _factors_by_key(contents)
    study = contents.pop("Study")
    properties = study["properties"]
    del properties["streams"]
    for owner in (properties, contents["Stage"]["properties"]):
        words = owner["command"]
        forms = [{"type": "string", "minLength": 1}, {"type": "array", "items": words["items"]}]
        owner["command"] = {"description": words.get("description", ""), "anyOf": forms}
        of_engine = owner.pop("engines")["additionalProperties"]
        for name in ENGINES:
            described = f"Settings of `doe run --engine {name}`."
            owner[name] = {**of_engine, "description": described}
    properties[FROZEN] = {"type": "object", "description": "Written by `doe plan`; do not change."}
    seeds = properties["seeds"]
    alone = {"type": "array", "items": {**seeds["items"], "minimum": 0}}
    properties["seeds"] = {
        "description": seeds["description"],
        "anyOf": [
            alone,
            {
                "type": "object",
                "minProperties": 1,
                "patternProperties": {KEY: alone},
                "additionalProperties": False,
            },
        ],
    }
    properties["replicates"]["minimum"] = properties["threads"]["minimum"] = 1
    needs_command = {
        "if": {"properties": {"backend": {"const": "command"}}},
        "then": {"required": ["command"]},
    }
    head = {"$schema": DIALECT, "title": "Study of training runs"}
    return {**head, **study, **needs_command, CONTENTS: contents}


def _drop_null(value: dict[str, Any]) -> None:
    """Remove null, which TOML does not have: optional keys are omitted from the file."""
    if None in value.get("enum", ()):
        value["enum"] = [item for item in value["enum"] if item is not None]
    if kinds := [kind for kind in value.get("anyOf", ()) if kind != {"type": "null"}]:
        value["anyOf"] = kinds
        if len(kinds) == 1:
            del value["anyOf"]
            value |= kinds[0]


def schema_text() -> str:
    """Return the schema as JSON."""
    return msgspec.json.format(msgspec.json.encode(study_schema()), indent=1).decode() + "\n"


def _factors_by_key(contents: dict[str, Any]) -> None:
    """Describe factors as tables under their keys, as TOML has them, not as a list."""
    factor = contents["Factor"]
    properties = factor["properties"]
    del properties["key"], properties["sets"], properties["listed"], factor["required"]
    several = properties["levels"]
    level = several["items"]
    properties["levels"] = {
        "description": several.pop("description", ""),
        "anyOf": [
            {**several, "minItems": 2},
            {
                "description": "A table of settings for each level.",
                "type": "object",
                "minProperties": 2,
                "additionalProperties": {
                    "type": "object",
                    "minProperties": 1,
                    "additionalProperties": level,
                },
            },
        ],
    }
    properties["low"] = {"description": "The first of two levels.", **level}
    properties["high"] = {"description": "The second of two levels.", **level}
    factor["oneOf"] = [{"required": ["levels"]}, {"required": ["low", "high"]}]
    contents["Study"]["properties"]["factors"] = {
        "description": "A table for each factor, under its key.",
        "type": "object",
        "minProperties": 1,
        "patternProperties": {KEY: {"$ref": f"{REFERENCE}Factor"}},
        "additionalProperties": False,
    }


def _field_texts() -> dict[tuple[str, str], str]:
    """Map class and field to the text below the field."""
    texts = {}
    nodes = [n for module in (values, goals) for n in ast.parse(inspect.getsource(module)).body]
    for node in nodes:
        if not isinstance(node, ast.ClassDef):
            continue
        for field, line in zip(node.body, node.body[1:], strict=False):
            if (
                isinstance(field, ast.AnnAssign)
                and isinstance(field.target, ast.Name)
                and isinstance(line, ast.Expr)
                and isinstance(line.value, ast.Constant)
                and isinstance(line.value.value, str)
            ):
                texts[node.name, field.target.id] = " ".join(line.value.value.split())
    return texts
