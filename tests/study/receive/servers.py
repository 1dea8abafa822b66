"""A PostgreSQL server of its own for the tests, in a temporary folder, reached by a socket in it alone."""

import getpass
import os
import pwd
import shutil
import subprocess
import tempfile
from itertools import count
from pathlib import Path

import psycopg
import pytest

OPTIONS = "-c listen_addresses='' -c fsync=on -c max_connections=20 -c shared_buffers=16MB"


def programs():
    """The folder with initdb and pg_ctl, or None."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    here = shutil.which("initdb")
    return found[-1].parent if found else Path(here).resolve().parent if here else None


class Server:
    """A server that a test may start, end and crash; skips where there is none, or nobody who may run it."""

    def __init__(self):
        self._programs = programs()
        if self._programs is None:
            pytest.skip("needs initdb and pg_ctl, of PostgreSQL's server")
        self.user = _user()
        self.folder = Path(tempfile.mkdtemp(prefix="pg", dir="/tmp"))
        self._names = (f"d{number}" for number in count())
        if os.getuid() == 0:
            shutil.chown(self.folder, self.user)
        self._run("initdb", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        self.start()

    def _run(self, program, *told):
        command = [self._programs / program, "-D", self.folder / "data", *told]
        by = {"user": self.user, "group": pwd.getpwnam(self.user).pw_gid, "extra_groups": []}
        done = subprocess.run(
            command,
            cwd=self.folder,
            check=False,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            timeout=120,
            **(by if os.getuid() == 0 else {}),
        )
        assert done.returncode == 0, done.stderr[-1000:]

    def start(self, more=""):
        options = f"{OPTIONS} -k {self.folder} {more}"
        self._run("pg_ctl", "start", "-w", "-s", "-l", self.folder / "log", "-o", options)

    def stop(self, how="fast"):
        """``immediate`` is a crash: nothing is written that was not."""
        self._run("pg_ctl", "stop", "-w", "-s", "-m", how)

    def url(self, database="postgres", password=""):
        return f"postgresql://{self.user}{password}@/{database}?host={self.folder}"

    def new(self):
        """The URL of a new, empty database."""
        name = next(self._names)
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def remove(self):
        self.stop("immediate")
        shutil.rmtree(self.folder, ignore_errors=True)


def _user():
    if os.getuid() != 0:
        return getpass.getuser()
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    return pytest.skip("needs a user who is not root to run PostgreSQL's server")
