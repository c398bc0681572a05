"""Loaded into a script whose help is read: makes argparse show every default.

Python imports a module of this name when it starts. Most scripts leave their defaults out of the
help, and without them no levels could be proposed. Nothing else of the script changes.
"""

from __future__ import annotations

import argparse

_format_help = argparse.ArgumentParser.format_help


def _format_with_defaults(self: argparse.ArgumentParser) -> str:
    for action in self._actions:
        value, text = action.default, action.help or ""
        if action.type is float and isinstance(value, int):
            value = float(value)
        if (
            action.option_strings
            and text != argparse.SUPPRESS
            and value != argparse.SUPPRESS
            and isinstance(value, (bool, int, float, str))
            and "default" not in text.lower()
        ):
            action.help = f"{text} (default: {str(value).replace('%', '%%')})".strip()
    return _format_help(self)


argparse.ArgumentParser.format_help = _format_with_defaults  # type: ignore[method-assign]
