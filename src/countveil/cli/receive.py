"""``countveil receive``: the receiving end of a study."""

import ipaddress
import signal
import socket
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from countveil.cli.output import plain_errors, say
from countveil.privacy.study import load


@plain_errors
def receive_reports(
    study: Annotated[Path, typer.Argument(help="The study file.")],
    database: Annotated[
        str,
        typer.Option(
            "--db",
            help="The SQLite file in which reports are stored, created if it does not exist; or the address of a "
            "PostgreSQL database.",
        ),
    ],
    host: Annotated[str, typer.Option(help="The address of this machine to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=1, max=65535, help="The port to listen on.")] = 8765,
    per_minute: Annotated[
        int, typer.Option(min=0, help="Requests per minute allowed from one address; 0 for no limit.")
    ] = 60,
    at_once: Annotated[
        int, typer.Option(min=0, help="Simultaneous requests allowed from one address; 0 for no limit.")
    ] = 8,
    trusted_proxy: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ADDRESS",
            help="A web server, or a network of servers, whose X-Forwarded-For header is trusted "
            "[default: 127.0.0.1 and ::1]. Repeatable.",
        ),
    ] = None,
    target: Annotated[
        int | None, typer.Option(min=1, help="Number of reports wanted, shown with the progress.")
    ] = None,
) -> None:
    """Receive the reports of a study by HTTP POST, and store one per participant.

    Each report is checked as by `countveil collect`, and is on disk before the request is answered. Sending the same
    bytes again gets the same answer; a different report from the same participant is refused. Stored reports cannot be
    requested, and neither addresses nor times are kept. Reports go to the path of the study's address, or to /reports.
    `countveil collect` and `countveil study status` can read the database at any time. Needs the extra `receive`.

    PostgreSQL, such as `--db postgresql://countveil@db.example.org/study`, needs the extra `postgres`, and one database
    or schema per study. Other users of the machine can see a password in a command: keep it in ~/.pgpass, PGPASSWORD or
    a service file.

    TLS: this command speaks plain HTTP, only to its own machine. Put a web server with a certificate in front of it,
    such as Caddy, which obtains the certificate itself:

    caddy reverse-proxy --from study.example.org --to 127.0.0.1:8765

    Example: `countveil receive study.json --db reports.sqlite`
    """
    try:
        import uvicorn

        from countveil.study.receive.app import application
        from countveil.study.receive.connections import configured
    except ModuleNotFoundError as error:
        from countveil.common.extras import install

        raise ModuleNotFoundError(
            f"countveil receive needs the extra receive: {install('receive')} ({error})"
        ) from None
    from countveil.study.receive import path_of
    from countveil.study.receive.connections import Limits
    from countveil.study.receive.store import Store, name_of, size
    from countveil.study.receive.tally import Tally, log_sparingly, shown

    proxies = read_proxies(trusted_proxy)
    asked = load(study)
    store = Store(database, asked)
    counts = Tally(size(database), target)
    made = application(asked, store, Limits(per_minute, at_once), counts)
    server = uvicorn.Server(configured(made, counts, proxies))
    with taken(host, port) as place:
        say(f"Study {asked.id}: listening at http://{host}:{port}{path_of(asked)}, storing in {name_of(database)}.")
        signal.signal(signal.SIGTERM, signal.default_int_handler)  # ends as Ctrl-C does, with its last line
        with suppress(KeyboardInterrupt), shown(counts.line):
            log_sparingly()
            server.run(sockets=[place])


def read_proxies(given: list[str] | None) -> list[str]:
    """The addresses and networks whose X-Forwarded-For is believed; raises ValueError."""
    proxies = given or ["127.0.0.1", "::1"]
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            raise ValueError(
                f"trusted-proxy must be an IP address or a network such as 10.0.0.0/8, got {proxy!r}"
            ) from None
    return proxies


def taken(host: str, port: int) -> socket.socket:
    """A socket that listens.

    Raises:
        OSError: the address is not this machine's, or the port is in use.
    """
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise OSError(f"host and port must be free on this machine, got {host} and {port}: {error.strerror}") from error
