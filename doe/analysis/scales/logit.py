"""Log odds of a share: effects are ratios of odds, and intervals stay between none and all."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from doe.analysis.contrasts import Floats
from doe.analysis.scales import Scale


def logit_scale(top: float = 1.0, items: int = 0) -> Scale:
    """Log odds of a response from 0 to `top`: ``ln(y / (top - y))``.

    Of a share of `items` that were counted, half an item is added to either side, which gives none
    and all of them finite odds: ``ln((k + 1/2) / (items - k + 1/2))`` (Haldane 1955, Anscombe
    1956).
    """
    half = 0.5 * top / items if items else 0.0

    def forward(y: Floats) -> Floats:
        return np.asarray(np.log((y + half) / (top - y + half)))

    def back(z: Floats) -> Floats:
        return np.clip((top + 2.0 * half) * expit(z) - half, 0.0, top)

    label = "logit {}" if top == 1.0 else f"logit ({{}} / {top:g})"
    edge = -1e-12 * top if items else 0.0  # a count may be none or all
    return Scale(forward, back, label, "odds", edge, top - edge)


SCALE = logit_scale()
