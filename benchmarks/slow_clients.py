"""Whether idle connections and slow clients starve others: accepted reports a second with and without them, in turns.

python benchmarks/slow_clients.py
python benchmarks/slow_clients.py --per-second 0    (as fast as the clients can: the receiver's processor time counts)

A process of its own holds the idle connections, opens each again when it is closed, and sends the slow requests: a head
and then one byte of the body per second. Clients have addresses of their own (X-Forwarded-For); the attacker has one.
"""

import argparse
import http.client
import os
import resource
import selectors
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from receive import LEVEL, made, memory, started

from countveil.privacy import study

HEAD = b"POST /reports HTTP/1.1\r\nHost: here\r\nContent-Length: 2000\r\n\r\n"


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (
        ("idle", 1001),
        ("slow", 1),
        ("clients", 8),
        ("per-second", 100),
        ("seconds", 5),
        ("turns", 7),
        ("cells", 1000),
    ):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--attack", type=int, metavar="PORT", help="be the attacker of the receiver at PORT")
    options = parser.parse_args()
    if options.attack:
        attack(options.attack, options.idle, options.slow)
        return
    asked = study.new(
        "Load", "To measure.", "a@b.org", [LEVEL], [("word", [f"w{n}" for n in range(options.cells)])]
    )
    bodies = (made(n, asked) for n in range(10**9))
    with tempfile.TemporaryDirectory() as folder:
        process, port = started(Path(folder), asked, "reports.sqlite")
        rates: dict[bool, list[float]] = {False: [], True: []}
        try:
            for turn in range(2 * options.turns + 1):
                attacked = turn % 2 == 0 and turn > 0
                rate, busy = under(attacked, process.pid, port, bodies, options)
                if turn:  # the first one warms up
                    rates[attacked].append(rate)
                    which = "attacked" if attacked else "undisturbed"
                    print(f"{which}: {rate:.1f} reports a second, {busy:.0%} of a core", flush=True)
            print(f"{memory(process.pid)} MB")
        finally:
            process.terminate()
            process.wait(30)
    ratios = [with_ / without for without, with_ in zip(rates[False], rates[True], strict=True)]
    middle = statistics.median(rates[True]) / statistics.median(rates[False])
    print(
        f"ratio of the medians {middle:.3f}; of each pair of turns: {', '.join(f'{r:.3f}' for r in ratios)}"
    )


def under(
    attacked: bool, process: int, port: int, bodies: Iterator[bytes], options: argparse.Namespace
) -> tuple[float, float]:
    """Accepted reports a second of all clients together, and the share of a processor that the receiver took."""
    if not attacked:
        return load(process, port, bodies, options)
    command = [sys.executable, __file__, "--attack", str(port), "--idle", str(options.idle)]
    attacker = subprocess.Popen([*command, "--slow", str(options.slow)], stdout=subprocess.PIPE, text=True)
    try:
        attacker.stdout.readline()  # all are open
        return load(process, port, bodies, options)
    finally:
        attacker.kill()
        attacker.wait()
        attacker.stdout.close()


def load(
    process: int, port: int, bodies: Iterator[bytes], options: argparse.Namespace
) -> tuple[float, float]:
    wanted = [next(bodies) for _ in range(options.seconds * (options.per_second or 600))]
    lock, answers = threading.Lock(), {"accepted": 0, "refused": 0, "closed": 0}
    start, used = time.monotonic(), processor_seconds(process)
    places = iter(range(len(wanted)))

    def client(number: int) -> None:
        headers = {"X-Forwarded-For": f"10.0.0.{number}"}
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        while time.monotonic() < start + options.seconds:
            with lock:
                place = next(places, None)
            if place is None:
                return
            if options.per_second:
                time.sleep(max(0.0, start + place / options.per_second - time.monotonic()))
            outcome = "closed"
            with suppress(OSError, http.client.HTTPException):
                connection.request("POST", "/reports", wanted[place], headers)
                answer = connection.getresponse()
                answer.read()
                outcome = "accepted" if answer.status == 200 else "refused"
            if outcome != "accepted":
                connection.close()
            with lock:
                answers[outcome] += 1

    threads = [threading.Thread(target=client, args=(n + 1,)) for n in range(options.clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wall = time.monotonic() - start
    if answers["accepted"] != sum(answers.values()):
        print(answers, flush=True)
    return answers["accepted"] / wall, (processor_seconds(process) - used) / wall


def processor_seconds(process: int) -> float:
    """What a process has taken so far (Linux)."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def attack(port: int, idle: int, slow: int) -> None:
    """Holds the connections, and opens again what was closed, until killed."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    selector = selectors.DefaultSelector()
    slow_ones: set[socket.socket] = set()

    def opened(is_slow: bool) -> None:
        made = socket.create_connection(("127.0.0.1", port), 10)
        selector.register(made, selectors.EVENT_READ, is_slow)
        if is_slow:
            made.sendall(HEAD)
            slow_ones.add(made)

    for number in range(idle + slow):
        opened(number < slow)
    print("open", flush=True)
    last = time.monotonic()
    while True:
        for key, _ in selector.select(0.2):
            with suppress(OSError):
                if key.fileobj.recv(4096):
                    continue
            selector.unregister(key.fileobj)
            slow_ones.discard(key.fileobj)
            key.fileobj.close()
            with suppress(OSError):
                opened(key.data)
        if time.monotonic() - last > 1:
            last = time.monotonic()
            for each in slow_ones:
                with suppress(OSError):
                    each.sendall(b"x")


if __name__ == "__main__":
    main()
