"""What an exchange gains is what the criterion changes by."""

import numpy as np
import pytest

from doe.design.exchange import _gains, _replaced


@pytest.mark.parametrize("criterion", ["D", "I"])
def test_gains_of_an_exchange(criterion):
    chance = np.random.default_rng(3)
    X, new = chance.normal(size=(2, 9, 4)), chance.normal(size=(2, 5, 4))
    W = np.cov(chance.normal(size=(4, 50)))
    D = np.linalg.inv(X.transpose(0, 2, 1) @ X)
    gains = _gains(None if criterion == "D" else W, D, X[:, 2], new)
    for design in range(2):
        for candidate in range(5):
            changed = X[design].copy()
            changed[2] = new[design, candidate]
            inverse = np.linalg.inv(changed.T @ changed)
            if criterion == "D":
                gain = np.linalg.det(D[design]) / np.linalg.det(inverse) - 1
            else:
                gain = 1 - np.trace(inverse @ W) / np.trace(D[design] @ W)
            assert gains[design, candidate] == pytest.approx(gain)
            both = _replaced(D, X[:, 2], new[:, candidate])
            assert np.allclose(both[design], inverse)
