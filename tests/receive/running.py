"""The receiving end as a process of its own."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from urllib.parse import urlsplit

from countveil.receive import path_of

COMMAND = "import sys; from countveil.cli.app import app; app(sys.argv[1:])"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Running:
    """`countveil receive` in ``folder``, listening; ended by leaving it, or by ``end`` in any way."""

    def __init__(self, folder, study, where="reports.sqlite"):
        self.port = (urlsplit(study.address).port if study.address else None) or free_port()
        self.address = f"http://127.0.0.1:{self.port}{path_of(study)}"
        (folder / "study.json").write_text(study.to_json())
        command = ["receive", "study.json", "--db", str(where), "--port", str(self.port)]
        self.process = subprocess.Popen(
            [sys.executable, "-c", COMMAND, *command, "--per-minute", "0"],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
            stdout=subprocess.DEVNULL,
        )
        for _ in range(600):
            try:
                socket.create_connection(("127.0.0.1", self.port), 1).close()
                return
            except OSError:
                time.sleep(0.05)
        self.end(signal.SIGKILL)
        raise AssertionError("it does not listen")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(signal.SIGTERM)

    def post(self, content):
        request = urllib.request.Request(self.address, content, method="POST")
        with urllib.request.urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())["outcome"]

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait(30)
