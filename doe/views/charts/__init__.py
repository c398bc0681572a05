"""Every chart, defined once: saved for a paper, interactive in the page."""
