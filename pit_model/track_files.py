"""Output of `pit track`: a table, a summary, a picture, a film and a file for Tracker."""

import csv
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from math import atan2, degrees, isfinite
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from PIL import Image, ImageDraw

from pit_model.arcs import Floats
from pit_model.rundir import write_json
from pit_model.track import Track, quiet
from pit_model.video import Listener, read_frames, write_mp4

COLUMNS = ("frame", "time", "x", "y", "confidence", "arc", "x_fit", "y_fit", "vx", "vy")
"""Columns of track.csv: seconds, pixels of the clip, pixels per second."""
GREEN, YELLOW, RED = (40, 220, 90), (255, 200, 0), (255, 60, 60)
TRAIL = 15
"""Frames of the path shown behind the ball in the film."""


def write_track(track: Track, video: Path, out: Path, progress: Listener = quiet) -> list[Path]:
    """Write all files of a track into a directory and return their names."""
    out.mkdir(parents=True, exist_ok=True)
    write_csv(track, out / "track.csv")
    write_json(out / "track.json", summary(track))
    panel = tracker_panel(track, Path(os.path.relpath(video, out)))
    ET.ElementTree(panel).write(out / "track.trk", encoding="UTF-8", xml_declaration=True)
    middle = _middle_picture(track, video)
    draw_track(track, middle).savefig(out / "track.png", dpi=120)
    write_mp4(out / "track.mp4", annotated(track, video, progress), track.clip.fps)
    return [out / f"track.{ending}" for ending in ("csv", "json", "png", "mp4", "trk")]


def write_csv(track: Track, path: Path) -> None:
    """Write a row for each frame; cells are empty where nothing is known."""
    flights, fps = track.flights, track.clip.fps
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(COLUMNS)
        for t, (seconds, detected, confidence) in enumerate(
            zip(track.clip.time, track.position, track.confidence, strict=True)
        ):
            arc = "" if flights.arc[t] < 0 else int(flights.arc[t])
            fitted = [*_cells(flights.position[t], 3), *_cells(fps * flights.velocity[t], 2)]
            row = [t, f"{seconds:.5f}", *_cells(detected, 3), f"{confidence:.3f}", arc, *fitted]
            table.writerow(row)


def summary(track: Track) -> dict[str, Any]:
    """Collect what is known of the clip as a whole: plain values, None where unknown."""
    flights, clip = track.flights, track.clip
    pull, error = (clip.fps**2 * a for a in (flights.gravity, flights.acceleration_error))
    errors = {name: getattr(track, name) * error / pull for name in (track.measured,) if name}
    down = flights.acceleration
    hits = [
        {
            "frame": float(np.interp(hit.time / clip.fps, clip.time, np.arange(len(clip.time)))),
            "time": hit.time / clip.fps,
            "x": float(hit.position[0]),
            "y": float(hit.position[1]),
            "velocity_before": [float(v) for v in clip.fps * hit.before],
            "velocity_after": [float(v) for v in clip.fps * hit.after],
            "e": hit.restitution,
        }
        for hit in flights.hits
    ]
    return {
        "frames": len(clip.frames),
        "fps": clip.fps,
        "size": list(clip.size),
        "frames_with_ball": int(flights.confirmed.sum()),
        "arcs": flights.arcs,
        "g": _known(track.g),
        "g_error": errors.get("g"),
        "g_px": _known(pull),
        "g_px_error": _known(error),
        "tilt_degrees": _known(degrees(atan2(down[0], down[1]))),
        "e": flights.restitution,
        "scale": _known(track.scale),
        "scale_error": errors.get("scale"),
        "scatter_px": _known(flights.scatter),
        "hits": hits,
        "input": {**track.regime._asdict()},
        "units": "time s, positions px of the clip, velocities px/s, g m/s², scale px/m",
    }


def sentences(track: Track) -> list[str]:
    """Describe the result, one sentence per line."""
    values, flights = summary(track), track.flights
    polarity = "dark" if track.regime.dark else "bright"
    background = "the median frame" if track.regime.subtract else "its background"
    lines = [
        f"{values['frames_with_ball']} of {values['frames']} frames show the ball in flight: "
        f"{_count(flights.arcs, 'arc')}, {_count(len(flights.hits), 'hit')}",
        f"tracked at a width of {track.regime.width} px, {polarity} against {background}",
    ]
    if not flights.arcs:
        return [f"no flight of a ball was found in {values['frames']} frames", lines[1]]
    lines.append(f"detections scatter by {flights.scatter:.2f} px about the fit")
    lines.append(_measured(values))
    if flights.restitution is not None:
        lines.append(f"restitution e = {flights.restitution:.3f}")
    return lines


def _measured(values: Mapping[str, Any]) -> str:
    """Describe what the acceleration measures: g if the scale is known, the scale if g is."""
    if values["g_error"] is not None:
        return "g = {g:.3f} ± {g_error:.3f} m/s² at {scale:.1f} px/m".format_map(values)
    if values["scale_error"] is not None:
        return "scale = {scale:.1f} ± {scale_error:.1f} px/m at g = {g:.3f} m/s²".format_map(values)
    pull = "g = {g_px:.1f} ± {g_px_error:.1f} px/s²".format_map(values)
    return f"{pull}; --scale gives it in m/s², --g the scale"


def tracker_panel(track: Track, video: Path) -> ET.Element:
    """Build a file of Open Source Physics' Tracker: the video, the scale and a point mass.

    `video` is relative to the file's directory, where Tracker looks for it. Tracker counts pixels
    from the corner of the picture, not from the centre of its first pixel.
    """
    core, cabrillo = "org.opensourcephysics.media.core.", "org.opensourcephysics.cabrillo.tracker."
    milliseconds = 1000 / float(track.clip.fps)
    film = _object(
        "org.opensourcephysics.media.xuggle.XuggleVideo",
        path=video.as_posix(),
        delta_t=milliseconds,
    )
    frames = len(track.clip.frames)
    clip = _object(
        f"{core}VideoClip", video=film, video_framecount=frames, startframe=0, stepsize=1,
        stepcount=frames, starttime=0.0,
    )  # fmt: skip
    control = _object(f"{core}StepperClipControl", rate=1.0, delta_t=milliseconds, frame=0)
    scale = float(track.scale or 1.0)
    frame = _object(
        f"{core}ImageCoordSystem$FrameData", xorigin=0.0, yorigin=float(track.clip.size[1]),
        angle=0.0, xscale=scale, yscale=scale,
    )  # fmt: skip
    coords = _object(f"{core}ImageCoordSystem", fixedorigin=True, fixedangle=True, fixedscale=True)
    coords.append(_array("framedata", f"{core}ImageCoordSystem$FrameData", {0: frame}))
    marks = {
        t: _object(f"{cabrillo}PointMass$FrameData", x=float(x) + 0.5, y=float(y) + 0.5)
        for t, (x, y) in enumerate(track.position)
        if isfinite(x)
    }
    ball = _object(f"{cabrillo}PointMass", mass=1.0, name="ball", visible=True, trail=True)
    ball.append(_array("framedata", f"{cabrillo}PointMass$FrameData", marks))
    width, height = map(float, track.clip.size)
    panel = _object(
        f"{cabrillo}TrackerPanel", semantic_version="5.0.7", width=width, height=height,
        videoclip=clip, clipcontrol=control, coords=coords,
    )  # fmt: skip
    tracks = ET.SubElement(
        panel, "property", name="tracks", type="collection", attrib={"class": "java.util.ArrayList"}
    )
    ET.SubElement(tracks, "property", name="item", type="object").append(ball)
    ET.indent(panel)
    return panel


def draw_track(track: Track, picture: NDArray[np.uint8]) -> Figure:
    """Draw the path over a frame of the clip, and height and side over time."""
    figure = Figure(figsize=(10.0, 4.6), layout="constrained")
    over, beside = figure.subplots(1, 2, width_ratios=(3, 2))
    over.imshow(picture // 2)
    flights, detected = track.flights, track.position
    for arc in range(flights.arcs):
        inside = flights.arc == arc
        colour = f"C{arc % 10}"
        time, path = _curve(track, inside)
        over.plot(*path.T, "-", color=colour, lw=1.2)
        over.plot(*detected[inside].T, "o", mfc="none", color=colour, ms=5)
        for axis, style in ((0, "--"), (1, "-")):
            beside.plot(time, path[:, axis], style, color=colour)
            beside.plot(track.clip.time[inside], detected[inside, axis], "o", color=colour, ms=3)
    for hit in flights.hits:
        over.plot(*hit.position, "+", color="white", ms=12)
        beside.axvline(hit.time / track.clip.fps, color="0.75", lw=0.9, zorder=0)
    over.set_xlim(-0.5, track.clip.size[0] - 0.5)
    over.set_ylim(track.clip.size[1] - 0.5, -0.5)
    over.set_xlabel("x [px]")
    over.set_ylabel("y [px]")
    hits = ", hits (+)" if flights.hits else ""
    over.set_title(f"detections (circles), arcs of flight (lines){hits}", fontsize=9)
    beside.invert_yaxis()
    beside.set_title("x (dashed) and y (solid): detections and fit", fontsize=9)
    beside.set_xlabel("time [s]")
    beside.set_ylabel("position [px]")
    return figure


def annotated(track: Track, video: Path, progress: Listener = quiet) -> Iterator[NDArray[np.uint8]]:
    """Yield the pictures of a clip with the ball circled, its path and the hits."""
    flights, detected = track.flights, track.position
    total = len(track.clip.frames)
    radius = max(6.0, track.clip.size[0] / 60)
    frame_times = track.clip.time * track.clip.fps
    for t, (picture, _, _) in enumerate(read_frames(video)):
        image = Image.fromarray(picture)
        pen = ImageDraw.Draw(image)
        if flights.arc[t] >= 0:
            first = max(0, t - TRAIL)
            path = flights.position[first:t]  # up to the ball, which stays to be seen
            for x, y in path[np.isfinite(path[:, 0])]:
                pen.ellipse((x - 2, y - 2, x + 2, y + 2), fill=YELLOW)
            confirmed = flights.confirmed[t]
            x, y = detected[t] if confirmed else flights.position[t]
            colour = GREEN if confirmed else YELLOW
            around = (x - radius, y - radius, x + radius, y + radius)
            pen.ellipse(around, outline=colour, width=max(2, round(radius / 6)))
        for hit in flights.hits:
            if frame_times[t] - TRAIL <= hit.time <= frame_times[t]:
                x, y = hit.position
                pen.line((x - radius, y, x + radius, y), fill=RED, width=2)
                pen.line((x, y - radius, x, y + radius), fill=RED, width=2)
        yield np.asarray(image)
        progress("drawing", t + 1, total)


def _curve(track: Track, inside: NDArray[np.bool_]) -> tuple[Floats, Floats]:
    """Times and positions along an arc, between its frames as well."""
    flights, fps = track.flights, track.clip.fps
    seconds = track.clip.time[inside]
    s = np.append(np.diff(seconds), 0)[:, None] * np.linspace(0, 1, 9) * fps  # (n, 9), frames
    along = s[..., None]
    path = flights.position[inside, None] + flights.velocity[inside, None] * along
    path = path + flights.acceleration * along**2 / 2
    return (seconds[:, None] + s / fps).ravel(), path.reshape(-1, 2)


def _middle_picture(track: Track, video: Path) -> NDArray[np.uint8]:
    """Return a frame from the middle of the part with a known ball."""
    inside = np.flatnonzero(track.flights.arc >= 0)
    middle = int(inside[len(inside) // 2]) if len(inside) else len(track.clip.frames) // 2
    return next(islice((picture for picture, _, _ in read_frames(video)), middle, None))


def _cells(values: NDArray[np.float64], digits: int) -> list[str]:
    return [f"{value:.{digits}f}" if isfinite(value) else "" for value in values]


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _known(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else float(value)


def _object(kind: str, /, **properties: object) -> ET.Element:
    """Build an object as Tracker writes it: a class and typed properties."""
    kinds = {bool: "boolean", int: "int", float: "double", str: "string"}
    element = ET.Element("object", {"class": kind})
    for key, value in properties.items():
        if isinstance(value, ET.Element):
            ET.SubElement(element, "property", name=key, type="object").append(value)
        else:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            ET.SubElement(element, "property", name=key, type=kinds[type(value)]).text = text
    return element


def _array(name: str, item: str, members: dict[int, ET.Element]) -> ET.Element:
    """Build an array of objects as Tracker writes it."""
    array = ET.Element("property", {"name": name, "type": "array", "class": f"[L{item};"})
    for i, member in members.items():
        ET.SubElement(array, "property", name=f"[{i}]", type="object").append(member)
    return array
