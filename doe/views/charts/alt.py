"""Altair, imported when something is drawn: it is slow to import, and kept drawings do without."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from altair import *  # noqa: F403 - what the charts draw with, for the checks of types
else:

    def __getattr__(name: str) -> object:
        import altair

        return getattr(altair, name)
