"""Child processes as they run on machines of others: an unknown user, a read-only installation, no home directory."""

import os
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from pathlib import Path

from numba.core import caching

from tests.compiled import KERNELS

ROOT = Path(__file__).parents[1]
UID = 54321  # of nobody who is listed
# Root writes everywhere: a test that runs as root becomes another user, who may still read all that Python needs.
BECOME = (
    f"setpriv --reuid={UID} --regid={UID} --clear-groups "
    "--inh-caps=+dac_read_search --ambient-caps=+dac_read_search".split()
    if os.geteuid() == 0
    else []
)


@contextmanager
def open_folder():
    """A temporary folder that every user can read; pytest's own are closed to others."""
    with tempfile.TemporaryDirectory() as name:
        path = Path(name)
        path.chmod(0o755)
        yield path
        for folder in (path, *(each for each in path.rglob("*") if each.is_dir())):
            folder.chmod(0o755)


def installed(folder):
    """A read-only copy of the sources."""
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (folder / "src", *(folder / "src").rglob("*")):
        path.chmod(0o555 if path.is_dir() else 0o444)
    return folder / "src"


def own_folder(path):
    """A new folder that belongs to the user of the child processes."""
    path.mkdir(mode=0o700)
    if os.geteuid() == 0:
        os.chown(path, UID, UID)
    return path


def compiled_folder(source, path):
    """A folder of that user with what tests have compiled so far, as if from this copy of the sources."""
    own_folder(path)
    for package in {each.parent for each in (ROOT / "src").rglob("*.py")}:
        here, there = package, source / package.relative_to(ROOT / "src")
        kept, copy = (caching._CacheLocator.get_suitable_cache_subpath(str(each / "any.py")) for each in (here, there))
        if (KERNELS / kept).is_dir():
            shutil.copytree(KERNELS / kept, path / copy)
            if os.geteuid() == 0:
                os.chown(path / copy, UID, UID)
    return path


def run(code, source, cwd, *options, **environment):
    """A finished process of that user: its code, with the sources and nothing else in the environment."""
    return subprocess.run(
        [*BECOME, sys.executable, *options, "-c", code], cwd=cwd, capture_output=True, text=True, timeout=300,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(source), **environment},
    )  # fmt: skip
