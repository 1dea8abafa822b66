"""Reports a second that `countveil receive` takes on this machine, and what malformed bodies do to it.

python benchmarks/receive.py --seconds 60 --per-second 500 --clients 50
python benchmarks/receive.py --db postgresql://...    (an empty database)
"""

import argparse
import http.client
import json
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from pathlib import Path

import numpy as np

from countveil.privacy import PrivacyLevel, report, study
from countveil.study.receive import store
from countveil.study.receive.database import is_url

LEVEL = PrivacyLevel(1, 10)
COMMAND = "import sys; from countveil.cli.app import app; app(sys.argv[1:])"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name, default in (
        ("seconds", 60),
        ("per-second", 500),
        ("clients", 50),
        ("cells", 1000),
        ("malformed", 10_000),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument(
        "--db", default="reports.sqlite", help="a file's name, or the URL of an empty database"
    )
    options = parser.parse_args()
    words = [f"word{n}" for n in range(options.cells)]
    asked = study.new("Load", "To measure.", "a@b.org", [LEVEL], [("word", words)])
    bodies = [made(n, asked) for n in range(options.seconds * options.per_second)]
    with tempfile.TemporaryDirectory() as folder:
        process, port = started(Path(folder), asked, options.db, "--at-once", "0")
        where = options.db if is_url(options.db) else Path(folder) / options.db
        try:
            post(port, bodies[0])
            print(f"{memory(process.pid)} MB before")
            seen, took, wall = load(port, bodies, options)
            late = np.quantile(took, [0.5, 0.99, 1]) * 1000
            print(f"{len(bodies)} reports of {len(bodies[0])} bytes in {wall:.1f} s: {dict(seen)}")
            print("ms to the answer: median {:.1f}, 99% {:.1f}, most {:.1f}".format(*late))
            print(f"{store.size(where)} stored; {memory(process.pid)} MB")
            refused = Counter(malformed(port, bodies[1], options.malformed))
            kept = store.size(where)
            print(f"malformed: {dict(refused)}; {kept} stored; {memory(process.pid)} MB")
        finally:
            process.terminate()
            process.wait(30)


def made(number: int, asked: study.Study) -> bytes:
    values = np.random.default_rng(number).integers(0, 30, asked.cells).tolist()
    return report.encode(report.Report(f"{number:032x}", LEVEL, values), asked)


def started(folder: Path, asked: study.Study, where: str, *more: str) -> tuple[subprocess.Popen, int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (folder / "study.json").write_text(asked.to_json())
    told = ["--db", where, "--port", str(port), "--per-minute", "0", *more]
    process = subprocess.Popen([sys.executable, "-c", COMMAND, "receive", "study.json", *told], cwd=folder)
    for _ in range(600):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.05)
    return process, port


def post(port: int, body: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    connection.request("POST", "/reports", body)
    return connection.getresponse().status


def load(port: int, bodies: list[bytes], options: argparse.Namespace) -> tuple[Counter, list[float], float]:
    """The answers, the seconds to each, and the seconds in all; each client keeps its connection and its pace."""
    seen: Counter[int] = Counter()
    took: list[float] = []
    start = time.monotonic()

    def client(first: int) -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        for place in range(first, len(bodies), options.clients):
            time.sleep(max(0.0, start + place / options.per_second - time.monotonic()))
            asked = time.monotonic()
            connection.request("POST", "/reports", bodies[place])
            answer = connection.getresponse()
            answer.read()
            took.append(time.monotonic() - asked)
            seen[answer.status] += 1

    threads = [threading.Thread(target=client, args=(n,)) for n in range(options.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return seen, took, time.monotonic() - start


def malformed(port: int, good: bytes, times: int) -> list[int]:
    """The answers to reports with bytes changed, bodies of noise, and ones that are too long."""
    generator = random.Random(1)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    answers = []
    for number in range(times):
        if number % 3 == 0:
            place = generator.randrange(len(good))
            body = good[:place] + bytes([good[place] ^ (1 + generator.randrange(255))]) + good[place + 1 :]
        else:
            body = generator.randbytes(generator.randrange(number % 3 * 5 * len(good)))
        connection.request("POST", "/reports", body)
        answer = connection.getresponse()
        told = json.loads(answer.read())
        if told["outcome"] != "refused" or not told["rule"]:
            raise AssertionError(told)
        answers.append(answer.status)
        if answer.will_close:
            connection.close()
    return answers


def memory(process: int) -> int:
    """Resident memory in MB."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) // 1024


if __name__ == "__main__":
    main()
