"""Fits on machines of others: an unknown user with a read-only installation, and full disks."""

import re
import subprocess
import sys

import numpy as np
import pytest

import countveil as cv
from tests.strangers import compiled_folder, installed, open_folder, own_folder, run

pytestmark = pytest.mark.long

JOURNEY = """
import sys
from pathlib import Path
import numpy as np
import countveil as cv

out = Path(sys.argv[1])
counts = np.random.default_rng(1).poisson(1.0, (12, 6))
release = cv.privatize(counts, cv.PrivacyLevel(1, 1))
release.save(out / "release.npz")
model = cv.TopicModel(2, draws=60, tune=2, chains=2, seed=1)
fit = model.fit(cv.Release.load(out / "release.npz"), checkpoint=out / "chains.npz")
fit.save(out / "fit.nc")
print(cv.TopicModel.load(out / "fit.nc").diagnostics().verdict)
print(cv.plotting.prevalence(fit).figure)
"""


@pytest.fixture(scope="module")
def machine():
    """A folder with a read-only installation, and one for compiled functions."""
    with open_folder() as folder:
        compiled_folder(installed(folder), folder / "numba")
        yield folder


@pytest.mark.parametrize("home", [{}, {"HOME": "/nonexistent"}])
def test_an_unknown_user_without_a_home_fits_from_a_read_only_installation(machine, home):
    out = own_folder(machine / f"out{len(home)}")
    before = {path.name for path in machine.iterdir()}
    code = JOURNEY.replace("sys.argv[1]", repr(str(out)))
    found = run(code, machine / "src", machine, NUMBA_CACHE_DIR=str(machine / "numba"), **home)
    assert found.returncode == 0, found.stderr
    assert "chains" in found.stdout
    assert "Figure" in found.stdout
    assert {path.name for path in out.iterdir()} == {"release.npz", "chains.npz", "fit.nc"}
    assert {path.name for path in machine.iterdir()} == before


FULL = """
import resource
import countveil as cv

fit, release = cv.TopicModel.load("fit.nc"), cv.Release.load("release.npz")
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
for thing, name in ((fit, "fit.nc"), (release, "release.npz")):
    try:
        thing.save(name)
    except OSError as error:
        print(error)
"""


def test_what_cannot_be_saved_on_a_full_disk_says_so_and_leaves_what_was_there(tmp_path):
    release = cv.privatize(np.arange(6000).reshape(60, 100) % 97, cv.PrivacyLevel(1, 1))
    release.save(tmp_path / "release.npz")
    model = cv.TopicModel(2, likelihood="poisson", draws=2, tune=1, chains=1, seed=1, progress=False)
    model.fit(release).save(tmp_path / "fit.nc")
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    found = subprocess.run(
        [sys.executable, "-c", FULL], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=300
    )
    first, second = found.stdout.splitlines()
    assert re.fullmatch(r"\[Errno 27\] File too large, [0-9,]+ bytes are needed: 'fit.nc'", first)
    assert "File too large" in second
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before
