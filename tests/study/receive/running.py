"""The receiving end as a process of its own, or as a thread of this one."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing, suppress
from http.client import HTTPConnection
from urllib.parse import urlsplit

import uvicorn

from countveil.study.receive import path_of
from countveil.study.receive.app import application
from countveil.study.receive.connections import configured
from countveil.study.receive.store import Store
from countveil.study.receive.tally import Tally

PATIENCE = 180
"""Seconds to wait for what must come, on a machine with much other work."""
COMMAND = "import sys; from countveil.cli.app import app; app(sys.argv[1:])"


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class Running:
    """`countveil receive` in ``folder``, listening; ended by leaving it, or by ``end`` in any way.

    What it prints is in the files ``out`` and ``err`` there.
    """

    def __init__(self, folder, study, where="reports.sqlite", more=("--per-minute", "0")):
        self.port = (urlsplit(study.address).port if study.address else None) or free_port()
        self.address = f"http://127.0.0.1:{self.port}{path_of(study)}"
        (folder / "study.json").write_text(study.to_json())
        command = ["receive", "study.json", "--db", str(where), "--port", str(self.port)]
        with open(folder / "out", "w") as out, open(folder / "err", "w") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-c", COMMAND, *command, *more],
                cwd=folder,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
                stdout=out,
                stderr=err,
            )
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end and self.process.poll() is None:
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
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            return json.loads(answer.read())["outcome"]

    def end(self, how):
        self.process.send_signal(how)
        self.process.wait(PATIENCE)


class Serving:
    """The receiving end in a thread of this process, to look into; ended by leaving it, or by ``end``."""

    def __init__(self, study, where, limits, most=64, proxies=("127.0.0.1",)):
        self.counts = Tally()
        self.store = Store(where, study)
        made = application(study, self.store, limits, self.counts)
        self.server = uvicorn.Server(configured(made, self.counts, list(proxies)))
        self.waiting = self.server.config.http.args[0]
        self.waiting.most = most
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.listening.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        self.port = self.listening.getsockname()[1]
        self._thread = threading.Thread(target=self.server.run, kwargs={"sockets": [self.listening]})
        self._thread.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()

    def begin_to_end(self):
        self.server.should_exit = True

    def end(self):
        self.begin_to_end()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self.listening.close()

    def open(self, *content):
        """A connection on which this has been sent."""
        opened = socket.create_connection(("127.0.0.1", self.port), PATIENCE)
        for piece in content:
            opened.sendall(piece)
        return opened

    def post(self, content, address="10.0.0.1"):
        """The status of the answer to a report from an address."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        with closing(connection):
            connection.request("POST", "/reports", content, {"X-Forwarded-For": address})
            return connection.getresponse().status


def head(length, **more):
    """The head of a request whose body has this length."""
    lines = ["POST /reports HTTP/1.1", "Host: here", f"Content-Length: {length}"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in more.items()]
    return ("\r\n".join(lines) + "\r\n\r\n").encode()


def everything(opened):
    """All that the other end sends until it closes the connection."""
    parts = []
    with suppress(ConnectionResetError):
        while part := opened.recv(1 << 16):
            parts.append(part)
    opened.close()
    return b"".join(parts)


def until(condition, seconds=PATIENCE):
    """Waits until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
