"""Studies that installed packages offer."""

import sys

import pytest

from doe.errors import DoeError
from doe.study.presets import preset_names, preset_study, study_or_preset

STUDY = """
name = "of-another-package"
backend = "module:function"
[factors.lr]
low = 0.1
high = 0.2
[responses]
metrics = ["loss"]
"""


@pytest.fixture
def other_package(tmp_path, monkeypatch):
    """A second package with a study of its own, as pip would have installed it."""
    for name, preset in (("other_package", "tuning"), ("heavy_package", "heavy")):
        package = tmp_path / name
        package.mkdir()
        (package / "__init__.py").write_text("")
        (package / f"{preset}.toml").write_text(STUDY)
        (package / "twice.toml").write_text(STUDY)
    metadata = tmp_path / "other_package-1.0.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: other-package\nVersion: 1.0\n"
        "Requires-Dist: numpy>=2; extra == 'all'\n"
        "Requires-Dist: no.such-package[fast]>=1; python_version > '3' and extra == 'all'\n"
        "Requires-Dist: neither-this; extra == 'other'\n"
    )
    (metadata / "entry_points.txt").write_text(
        "[doe.studies]\nmine = other_package\nheavy = heavy_package [all]\ngone = no_package\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in ("other_package", "heavy_package"):
        sys.modules.pop(name, None)


@pytest.mark.usefixtures("other_package")
def test_a_second_package_offers_a_study_beside_the_first():
    assert {"tuning", "demo"} <= set(preset_names())
    assert preset_study("tuning").name == "of-another-package"
    assert study_or_preset(None, "tuning").keys == ("lr",)


@pytest.mark.usefixtures("other_package")
def test_a_name_that_two_packages_offer_is_refused():
    with pytest.raises(DoeError, match="'twice' is offered by other_package and heavy_package"):
        preset_study("twice")


@pytest.mark.usefixtures("other_package")
def test_a_study_whose_extra_is_not_installed_says_which():
    with pytest.raises(DoeError) as refused:
        preset_study("heavy")
    assert str(refused.value) == (
        "preset 'heavy' needs no.such-package, from the extra 'all': "
        "pip install 'other-package[all]'"
    )


def test_an_unknown_preset_names_the_known_ones():
    with pytest.raises(DoeError, match=r"'smal' is unknown \(did you mean 'small'\?\).*demo"):
        preset_study("smal")


def test_without_a_name_the_study_file_here_is_taken(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DoeError, match=r"no study given.*presets: camera, demo"):
        study_or_preset(None)
    (tmp_path / "study.toml").write_text(STUDY)
    assert study_or_preset(None).name == "of-another-package"


def test_a_study_and_a_preset_together_are_refused(tmp_path):
    with pytest.raises(DoeError, match="both a study and a preset"):
        study_or_preset(tmp_path / "study.toml", "demo")
