"""Tell somebody that a study has ended or stopped: a command of theirs, with a summary at hand."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping

PATIENCE_SECONDS = 60.0


def notify(command: str, summary: Mapping[str, str]) -> str:
    """Run a line of shell with the summary in its environment; why it failed, or an empty text.

    It never decides how `doe run` ends: what was computed is safe, whatever becomes of the message.
    """
    try:
        done = subprocess.run(
            command,
            shell=True,
            stdin=subprocess.DEVNULL,
            env={**os.environ, **summary},
            timeout=PATIENCE_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"--notify took longer than {PATIENCE_SECONDS:g} s and was ended"
    except OSError as error:
        return f"--notify could not be started: {error.strerror}"
    return f"--notify ended with exit code {done.returncode}" if done.returncode else ""
