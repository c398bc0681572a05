"""The `pit` command: parse, call, print. Each command loads the heavy modules it needs."""

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from pit_model.config import Config, parse_label
from pit_model.errors import PitError

app = typer.Typer(
    name="pit",
    help="Physics-Informed Tracking: simulate, train, evaluate, draw, compare, track.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help, like that of `doe`
    context_settings={"help_option_names": ["-h", "--help"]},
)
EXTRA = {"torch": "pit", "matplotlib": "pit", "PIL": "pit", "av": "pit,video"}
"""Modules from extras of the package, and the extra of each."""

Preset = Annotated[str, typer.Option(help="paper, small, demo or camera.")]
Settings = Annotated[
    list[str], typer.Option("--set", metavar="KEY=VALUE", help="Override a setting; repeatable.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:N, xpu:N or mps.")]
Threads = Annotated[int | None, typer.Option(min=1, help="CPU threads; all cores by default.")]
RunDir = Annotated[Path, typer.Argument(help="The directory of a trained run.")]


def main() -> None:
    """Run the command line; a user's mistake is one line and exit code 1."""
    try:
        app(prog_name="pit")
    except PitError as error:
        sys.exit(_complain(f"{error}"))
    except ModuleNotFoundError as error:
        if error.name not in EXTRA:
            raise
        extra = EXTRA[error.name]
        sys.exit(
            _complain(f"{error.name} is not installed; this needs pip install 'pit-doe[{extra}]'")
        )
    except OSError as error:
        sys.exit(_complain(f"{error.filename or 'file'}: {error.strerror or error}"))


def _version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"pit {version('pit-doe')}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Physics-Informed Tracking: simulate, train, evaluate, draw, compare, track."""


def _complain(message: str) -> int:
    print(f"error: {message}", file=sys.stderr)
    return 1


@app.command()
def simulate(
    out: Annotated[Path, typer.Option(help="Directory for the videos.")],
    preset: Preset = "paper",
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    count: Annotated[int, typer.Option(min=1, help="Number of sequences of the split.")] = 5,
    noisy: Annotated[bool, typer.Option(help="Put noise behind the ball.")] = False,
    film: Annotated[str, typer.Option("--format", help="gif or mp4.")] = "gif",
    settings: Settings = [],  # noqa: B006 (the form that Typer asks for)
) -> None:
    """Write simulated videos as npz and as films.

    The npz holds frames, position, velocity and bounce.
    """
    from pit_model.simulate import SPLITS
    from pit_model.video import check_format, write_sequences

    if split not in SPLITS:
        raise PitError(f"split {split!r} is unknown; expected one of {', '.join(SPLITS)}")
    check_format(film)
    sizes = {f"{split}_sequences": count, "F": noisy}
    config = Config.from_settings({"preset": preset, **sizes, **parse_settings(settings)})
    paths = write_sequences(config, split, out, film)
    first, last = paths[0].stem, paths[-1].stem
    print(f"{first} to {last}: {config.frames} frames at {config.image_size} px, in {out}")


@app.command()
def train(
    out: Annotated[Path, typer.Option(help="Directory of the run; an interrupted run is resumed.")],
    config: Annotated[str, typer.Option(help="Levels of the six factors.")] = "A1B1C1D0E1F0",
    preset: Preset = "small",
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of the weights and the order of batches.")
    ] = 100,
    device: Device = "cpu",
    threads: Threads = None,
    settings: Settings = [],  # noqa: B006
) -> None:
    """Train one configuration and print its test metrics."""
    levels = parse_label(config)
    given = {"preset": preset, **parse_settings(settings)}
    chosen = Config.from_settings(given, levels)
    from pit_model import display

    display.train_run(chosen, seed, device, threads, out)


@app.command()
def evaluate(
    run_dir: RunDir,
    split: Annotated[str, typer.Option(help="train, val or test.")] = "test",
    physics: Annotated[
        str | None, typer.Option(help="Physics behind the network: paper, reflect or exact.")
    ] = None,
    window: Annotated[
        int | None, typer.Option(help="Frames of exact physics: 3, 5, 7 or 9.")
    ] = None,
    device: Device = "cpu",
    threads: Threads = None,
) -> None:
    """Evaluate a trained run on a part of its data.

    Each metric is read at the epoch that the validation set chose for it. --physics and --window
    put another physics module behind the trained network.
    """
    from pit_model import display

    given = {"physics": physics, "physics_window": window}
    changes = {name: value for name, value in given.items() if value is not None}
    display.evaluate_run(run_dir, split, changes, device, threads)


@app.command()
def figures(
    run_dir: RunDir,
    out: Annotated[Path | None, typer.Option(help="Directory; RUN_DIR/figures by default.")] = None,
    video: Annotated[int | None, typer.Option(help="Number of the test video.")] = None,
    ending: Annotated[str, typer.Option("--format", help="png, pdf or svg.")] = "png",
    device: Device = "cpu",
) -> None:
    """Draw frames, heatmaps and trajectories of a run.

    They are of one test video, with the network at the best epoch.
    """
    if ending not in ("png", "pdf", "svg"):
        raise PitError(f"figure format {ending!r} is unknown; expected png, pdf or svg")
    from pit_model.backend import find_device
    from pit_model.figures import inspect_run, write_figures
    from pit_model.rundir import read_trained

    trained = read_trained(run_dir)
    inspection = inspect_run(trained, video, find_device(device))
    for path in write_figures(trained, inspection, out or run_dir / "figures", ending):
        print(path)


@app.command()
def baseline(
    preset: Annotated[
        str | None, typer.Option(help="paper (the default), small, demo or camera.")
    ] = None,
    run_dir: Annotated[
        Path | None, typer.Option("--run", help="Use the videos of this run and compare with it.")
    ] = None,
    threads: Threads = None,
    settings: Settings = [],  # noqa: B006
) -> None:
    """Track the test videos without a network.

    Motion masks and their centroids, with the metrics of a trained run.
    """
    from pit_model import display

    if run_dir is None:
        display.baselines(preset or "paper", parse_settings(settings), threads)
    elif preset or settings:
        raise PitError("--run has its own settings; remove --preset and --set")
    else:
        display.baselines_beside(run_dir, threads)


@app.command()
def track(
    video: Annotated[Path, typer.Argument(help="A video of one ball, from a camera at rest.")],
    weights: Annotated[
        Path | None,
        typer.Option(help="File of weights or trained run [default: the package's weights]."),
    ] = None,
    dark: Annotated[
        bool | None,
        typer.Option("--dark/--bright", help="Brightness of the ball relative to its background."),
    ] = None,
    median: Annotated[
        bool | None, typer.Option("--median/--raw", help="Whether to subtract the median frame.")
    ] = None,
    width: Annotated[int | None, typer.Option(min=16, help="Width of the network's input.")] = None,
    fps: Annotated[float | None, typer.Option(min=0.001, help="Frames per second.")] = None,
    scale: Annotated[float | None, typer.Option(min=0.001, help="Pixels per metre.")] = None,
    g: Annotated[float | None, typer.Option(min=0.001, help="Gravity in m/s².")] = None,
    adapt: Annotated[
        bool, typer.Option("--adapt", help="Fine-tune on the clip's own arcs.")
    ] = False,
    out: Annotated[Path | None, typer.Option(help="Directory; VIDEO-track by default.")] = None,
    threads: Threads = None,
) -> None:
    """Track a ball in a real video.

    Finds positions, arcs of flight, hits, g and restitution. What is not given is found by trial
    (--dark, --median, --width) or read from the file (--fps). With --scale gravity is measured,
    with --g the scale. One ball, a camera at rest; no perspective.
    """
    from pit_model import display

    options = {"width": width, "dark": dark, "subtract": median, "scale": scale, "g": g}
    out = out or Path(f"{video.stem}-track")
    display.track_video(video, weights, fps, adapt, options, out, threads)


@app.command()
def weights(
    run_dir: RunDir,
    out: Annotated[Path, typer.Option(help="The file to write.")],
) -> None:
    """Write the best weights of a run as one file.

    The file is for pit track --weights.
    """
    from pit_model.rundir import write_weights

    write_weights(run_dir, out)
    print(f"{out}: {out.stat().st_size / 1e6:.1f} MB")


def parse_settings(pairs: list[str]) -> Mapping[str, Any]:
    """Parse KEY=VALUE pairs; a value is a TOML number or true or false, or else a plain word."""
    values: dict[str, Any] = {}
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key.strip():
            raise PitError(f"--set {pair!r} is not of the form KEY=VALUE, such as image_size=112")
        try:
            values[key.strip()] = tomllib.loads(f"value = {text}")["value"]
        except tomllib.TOMLDecodeError:
            values[key.strip()] = text.strip()
    return values
