import numpy as np
import pytest
import torch

from pit_model.errors import PitError
from pit_model.figures import (
    by_frame,
    draw_examples,
    draw_heatmaps,
    draw_path,
    draw_trajectory,
    inspect_run,
    with_steps,
    write_figures,
)
from pit_model.rundir import read_trained

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def seen(trained):
    return inspect_run(read_trained(trained[0].run_dir), 1, CPU)


def test_a_network_is_read_frame_by_frame(seen):
    assert seen.frames.shape == seen.heatmap.shape == (8, 16, 16)
    assert seen.soft.shape == seen.physics.shape == seen.velocity.shape == (8, 2)
    assert seen.true_bounce.shape == (8,)
    assert 0 <= seen.heatmap.min() <= seen.heatmap.max() <= 1


def test_each_frame_comes_from_the_window_around_it():
    window = torch.tensor([[10, 11, 12], [21, 22, 23], [32, 33, 34]])
    assert by_frame(window).tolist() == [10, 11, 22, 33, 34]


def test_the_figures_are_drawn_and_written(trained, seen, tmp_path):
    run = read_trained(trained[0].run_dir)
    paths = write_figures(run, seen, tmp_path / "figures", "png")
    names = ["frames.png", "heatmaps.png", "path.png", "trajectory.png"]
    assert [path.name for path in paths] == names
    assert all(path.stat().st_size > 1000 for path in paths)


def test_examples_are_clean_then_noisy(seen):
    figure = draw_examples(seen.config)
    titles = [axis.get_title() for axis in figure.axes]
    assert titles == [f"σ = {s}, t = {t:.2f} s" for s in (0, 1) for t in (0.0, 0.2)]
    clean, noisy = (figure.axes[i].images[0].get_array() for i in (0, 2))
    assert set(np.unique(clean)) == {0.0, 1.0}
    assert ((noisy > 0) & (noisy < 1)).any()


def test_the_target_peaks_at_the_true_position(seen):
    figure = draw_heatmaps(seen)
    t = int(figure.axes[1].get_title().split()[1].strip(","))
    target = figure.axes[4].images[0].get_array()
    y, x = np.unravel_index(target.argmax(), target.shape)
    assert np.abs(seen.true_position[t] - (x, y)).max() <= 0.5


def test_the_path_lies_over_the_frame_in_its_pixels(seen):
    (axis,) = draw_path(seen).axes
    lines = {line.get_label(): line for line in axis.lines}
    assert np.allclose(lines["truth"].get_xydata(), seen.true_position)
    assert np.allclose(lines["physics"].get_xydata(), seen.physics)
    assert np.allclose(lines["soft-argmax"].get_xydata(), seen.soft)
    assert axis.images[0].get_array().shape == (16, 16)
    assert axis.get_ylim() == (15.5, -0.5), "y points downwards"


def test_frames_are_whole_numbers(seen):
    figure = draw_trajectory(seen)
    figure.draw_without_rendering()
    ticks = figure.axes[2].get_xticks()
    assert len(ticks) > 2
    assert all(float(tick).is_integer() for tick in ticks)


def test_every_bounce_is_marked(seen):
    flags = np.zeros(8, np.float32)
    flags[[2, 5]] = 1
    figure = draw_trajectory(seen._replace(true_bounce=flags))
    for axis in figure.axes:
        dashed = [line.get_xdata()[0] for line in axis.lines if line.get_linestyle() == "--"]
        assert dashed == [2, 5]
    lines = {line.get_label(): line.get_ydata() for line in figure.axes[1].lines}
    np.testing.assert_array_equal(lines["truth"], seen.true_position[:, 1])
    np.testing.assert_array_equal(lines["physics"], seen.physics[:, 1])


def test_a_video_that_is_not_there_is_refused(trained):
    with pytest.raises(PitError, match="there is no video 2; expected 0 to 1"):
        inspect_run(read_trained(trained[0].run_dir), 2, CPU)


def test_the_velocity_steps_where_it_jumps():
    """At the wall in frame 2 along x; y goes on falling."""
    bounce = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    frames, values = with_steps(np.array([3.0, 3.0, -2.0, -2.0, -2.0]), bounce)
    assert frames == [0, 1, 2, 2, 3, 4]
    assert values == [3.0, 3.0, 3.0, -2.0, -2.0, -2.0]
    frames, values = with_steps(np.array([1.0, 1.5, 2.0, 2.5, 3.0]), bounce)
    assert frames == [0, 1, 2, 3, 4]
    frames, values = with_steps(np.array([1.0, 1.5, -1.0, -0.5, 0.0]), bounce)
    assert values == [1.0, 1.5, 2.0, -1.0, -0.5, 0.0]


def test_heatmaps_have_a_colour_scale_for_each_row_and_a_legend(seen):
    figure = draw_heatmaps(seen)
    assert len(figure.axes) == 9 + 3
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["true position"]
