"""Adam (Kingma and Ba, 2015) over one flat vector of all weights, each with a step size.

It is what `torch.optim.Adam` computes with its defaults. That class loads the compiler of torch
when it is first used, a second in which a short run of a study would do a fifth of its work.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class Adam:
    """Steps along ``m̂ / (√v̂ + ε)``, the two moments of the gradient corrected for their start."""

    def __init__(
        self,
        groups: Sequence[tuple[Sequence[Tensor], float]],
        warmup: int = 0,
        decay: tuple[int, int] = (0, 0),
    ) -> None:
        """Take groups of parameters, each with its step size.

        It is reached linearly after `warmup` steps, and falls linearly to zero between the two
        steps of `decay`.
        """
        self.warmup = warmup
        self.decay = decay
        self.parameters = [p for parameters, _ in groups for p in parameters]
        self.rates = torch.cat(
            [torch.full_like(p, rate).flatten() for parameters, rate in groups for p in parameters]
        )
        flat = torch.cat([p.detach().flatten() for p in self.parameters])
        self.first, self.second = torch.zeros_like(flat), torch.zeros_like(flat)
        self.steps = 0

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.parameters:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Move the weights once. A weight that no loss reaches has gradient zero and stays."""
        gradients = [torch.zeros_like(p) if p.grad is None else p.grad for p in self.parameters]
        gradient = torch.cat([g.flatten() for g in gradients])
        self.steps += 1
        self.first.lerp_(gradient, 1 - BETA1)
        self.second.mul_(BETA2).addcmul_(gradient, gradient, value=1 - BETA2)
        scale = (self.second / (1 - BETA2**self.steps)).sqrt_().add_(EPSILON)
        change = self.first.div(scale).mul_(self.rates).div_(1 - BETA1**self.steps)
        if self.steps < self.warmup:
            change.mul_(self.steps / self.warmup)
        begin, end = self.decay
        if begin < self.steps <= end:
            change.mul_((end - self.steps + 1) / (end - begin))
        parts = torch.split(change, [p.numel() for p in self.parameters])
        for parameter, part in zip(self.parameters, parts, strict=True):
            parameter.sub_(part.view_as(parameter))

    def state_dict(self) -> dict[str, Any]:
        """Return the moments and the number of steps."""
        return {"first": self.first, "second": self.second, "steps": self.steps}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Restore what `state_dict` returned."""
        self.first.copy_(state["first"])
        self.second.copy_(state["second"])
        self.steps = state["steps"]
