"""Colours mean one thing each, and can be told apart by every reader, on paper too."""

from itertools import combinations, pairwise

import numpy as np
import pytest

from doe.views.charts.theme import (
    BEST,
    DIVERGING,
    HARMS,
    HELPS,
    LEVELS,
    NEITHER,
    ON_DARK,
    PLAIN,
    RANKS,
    STATES,
)

# What readers without one kind of cones see: Machado, Oliveira and Fernandes (2009), severity 1.
SIGHT = {
    "all cones": np.eye(3),
    "no red": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216],
               [-0.003882, -0.048116, 1.051998]],
    "no green": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413],
                 [-0.011820, 0.042940, 0.968881]],
    "no blue": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602],
                [0.004733, 0.691367, 0.303900]],
}  # fmt: skip
TO_XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
WHITE = np.array([0.95047, 1.0, 1.08883])


def linear(colour):
    parts = np.array([int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def lab(colour, sight="all cones"):
    """CIE L*a*b*: a difference of 1 is just seen side by side, of 15 at a glance."""
    xyz = TO_XYZ @ np.clip(np.asarray(SIGHT[sight]) @ linear(colour), 0, 1) / WHITE
    f = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


GROUPS = {
    "directions": {"better": HELPS, "worse": HARMS, "neither": NEITHER, "plain": PLAIN},
    "states": STATES,
    "levels": dict(zip(("low", "high"), LEVELS, strict=True)),
}


@pytest.mark.parametrize("ground", ["light", "dark"])
@pytest.mark.parametrize("group", GROUPS)
def test_colours_of_one_picture_differ_for_every_reader_and_in_grey(group, ground):
    shown = {
        name: ON_DARK.get(colour, colour) if ground == "dark" else colour
        for name, colour in GROUPS[group].items()
    }
    for (first, a), (second, b) in combinations(shown.items(), 2):
        for sight in SIGHT:
            distance = np.linalg.norm(lab(a, sight) - lab(b, sight))
            assert distance >= 15, (first, second, sight)
        assert abs(lab(a)[0] - lab(b)[0]) >= 10, (first, second, "in grey")


def test_a_colour_has_one_meaning():
    meanings = [HELPS, HARMS, NEITHER, PLAIN, *LEVELS, *list(STATES.values())[1:]]
    for a, b in combinations(meanings, 2):
        assert np.linalg.norm(lab(a) - lab(b)) >= 10, (a, b)
    assert STATES["done"] == PLAIN, "a run that is done is plain data"
    assert BEST[1] == HELPS, "the best are shades of better"


@pytest.mark.parametrize("ground", ["light", "dark"])
def test_ramps_from_worse_to_better_never_turn_in_grey(ground):
    lightness = [lab(colour)[0] for colour in RANKS[ground]]
    falling = lightness if ground == "light" else lightness[::-1]
    assert all(a - b >= 4 for a, b in pairwise(falling))
    for worse, better in ((RANKS[ground][0], RANKS[ground][-1]), (DIVERGING[0], DIVERGING[-1])):
        assert lab(worse)[2] > 20, "worse is orange"
        assert lab(better)[2] < -10, "better is blue"


def test_what_stands_out_on_white_stands_out_on_black():
    assert lab(HELPS)[0] < 50 < lab(ON_DARK[HELPS])[0]
    shown = {HELPS, HARMS, NEITHER, PLAIN, *LEVELS, *BEST, *DIVERGING, *STATES.values()}
    assert ON_DARK.keys() >= shown
