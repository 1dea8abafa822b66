"""``countveil`` for the shell blocks of the pages: a process that has imported the library forks for each command.

Most commands of a page take a moment, and starting Python with all that the library stands on takes seconds, as does
loading what was compiled. So the process has run some commands itself before it forks, and fits are checked where they
are read. That an own process starts as it should, and another to check a fit, is for tests/test_main.py and for
README.md, whose commands are run by such processes.
"""

import io
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from pathlib import Path

ROOT = Path(__file__).parent.parent
LONGEST = 1 << 17  # bytes of a command with its environment
CALLER = """
import json, os, socket, sys
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as caller:
    caller.connect({address!r})
    said = json.dumps([sys.argv[1:], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(caller, [said], [0, 1, 2])
    code = caller.recv(1)
sys.exit(code[0] if code else 1)
"""


@contextmanager
def served(folder: Path) -> Iterator[Path]:
    """A Python script that runs ``countveil`` with its own arguments, streams, folder and environment."""
    address = str(folder / "door")
    script = folder / "countveil.py"
    script.write_text(CALLER.format(address=address))
    command = [sys.executable, "-m", "tests.served", address]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as server:
        assert server.stdout is not None
        server.stdout.readline()  # it listens
        try:
            yield script
        finally:
            server.terminate()


def serve(address: str) -> None:
    """Run each command that is asked for in a process of its own, until told to stop."""
    import matplotlib.pyplot  # noqa: F401

    from countveil.common import fit_files

    fit_files._inspected = lambda _, path: fit_files.inspect(path)
    warm_up()
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for them
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as door:
        door.bind(address)
        door.listen()
        print("ready", flush=True)
        while True:
            caller, _ = door.accept()
            said, streams, _, _ = socket.recv_fds(caller, LONGEST, 3)
            if not os.fork():
                caller.send(bytes([answer(said, streams)]))
                os._exit(0)
            for stream in streams:
                os.close(stream)
            caller.close()


def warm_up() -> None:
    """Run commands that need what most others need: late imports, and compiled functions that are loaded once."""
    import numpy as np

    import countveil as cv
    from countveil.cli.app import app

    with tempfile.TemporaryDirectory() as folder, redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()):
        release, fit = f"{folder}/r.npz", f"{folder}/f.nc"
        cv.privatize(np.arange(12).reshape(4, 3), cv.PrivacyLevel(1, 1)).save(release)
        short = ["--topics", "2", "--draws", "4", "--tune", "4", "--chains", "2", "--seed", "1", "--threads", "1"]
        for command in (
            ["fit", "topics", release, "-o", fit, *short],
            ["show", fit],
            ["report", fit, "-o", f"{folder}/f.html", "--release", release],
        ):
            with suppress(SystemExit):
                app(command)


def answer(said: bytes, streams: list[int]) -> int:
    """The exit status of a command, run in the folder, the environment and with the streams of its caller."""
    from countveil.cli.app import app

    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    arguments, folder, environment = json.loads(said)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["countveil", *arguments]
    try:
        app()
        return 0
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    except BaseException:
        traceback.print_exc()
        return 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()


if __name__ == "__main__":
    serve(sys.argv[1])
