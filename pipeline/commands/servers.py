"""Start and stop the servers: the dashboard, and Dagster's webserver with its daemon."""

from __future__ import annotations

import argparse
import errno
import ipaddress
import os
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING
from urllib.error import HTTPError, URLError
from urllib.request import urlopen

from sweepscope.pipeline.commands.output import note
from sweepscope.pipeline.errors import SweepscopeError, UsageError
from sweepscope.pipeline.io.children import start
from sweepscope.pipeline.io.web_access import PASSWORD_VARIABLE, Access, is_loopback
from sweepscope.pipeline.orchestration.watched_paths import (
    EVERY_S,
    EVERY_VARIABLE,
    OWN_ONLY_VARIABLE,
    PATHS_VARIABLE,
)
from sweepscope.pipeline.store.home import Home

if TYPE_CHECKING:
    from sweepscope.pipeline.ingest.engine import Engine

DASHBOARD_PORT = 8501
WEBSERVER_PORT = 3000

_WRONG_HOST = {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT}


def check_port(port: int, host: str, option: str = "--port") -> None:
    """Raise UsageError when the port cannot be used, or the host is not this machine."""
    if not 0 < port < 65536:
        raise UsageError(f"Port {port} does not exist. Give {option} a number from 1 to 65535.")
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
        except OSError as error:
            is_host = isinstance(error, socket.gaierror) or error.errno in _WRONG_HOST
            remedy = "Give an address of this machine with --host" if is_host else f"Give another with {option}"
            raise UsageError(f"Port {port} on {host} cannot be used: {error.strerror}. {remedy}.") from error


def add_host_arguments(parser: argparse.ArgumentParser) -> None:
    """Add what decides who can open the pages: `--host`, `--public`, `--allow-host`."""
    parser.add_argument(
        "--host", default="127.0.0.1", help="address to listen on (default: %(default)s, this machine only)"
    )
    parser.add_argument(
        "--public",
        action="store_true",
        help=f"serve everybody who reaches --host, without the password that {PASSWORD_VARIABLE} sets",
    )
    parser.add_argument(
        "--allow-host",
        metavar="NAME",
        action="append",
        default=[],
        help="another name under which a proxy serves the pages; addresses and this machine's name need none",
    )


def access_of(args: argparse.Namespace) -> Access:
    """Who may open the pages. Raises UsageError where other machines could and nothing says that they should."""
    password = os.environ.get(PASSWORD_VARIABLE) or None
    if not is_loopback(args.host) and password is None:
        if not args.public:
            raise UsageError(
                f"--host {args.host} lets other machines open the pages. Set a password in {PASSWORD_VARIABLE}, or add "
                "--public to serve everybody without one."
            )
        note(f"Everybody who reaches this machine can read the results: --public, without {PASSWORD_VARIABLE}.")
    is_name = not is_loopback(args.host) and not _is_address(args.host)
    return Access(names=(*args.allow_host, *([args.host] if is_name else [])), password=password)


def _is_address(host: str) -> bool:
    with suppress(ValueError):
        ipaddress.ip_address(host)
        return True
    return False


def page_url(host: str, port: int) -> str:
    """Address of a page for this machine's browser: a server that listens everywhere is reached at the loopback."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 -- compared, not bound
    return f"http://[{shown}]:{port}" if ":" in shown else f"http://{shown}:{port}"


def dashboard_process(
    home: Home, port: int, host: str, access: Access | None = None, *, inherited: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """A process that serves the dashboard, which only reads the store, with the handles `inherited`."""
    environment = {**(access or Access()).to_environment(), "SWEEPSCOPE_HOME": str(home.path)}
    folder = home.path if home.path.is_dir() else Path("/")
    # Streamlit prints a greeting to stdout, which is for our result; its errors go to stderr.
    return start(
        "sweepscope.dashboard.app.serve",
        host,
        str(port),
        environment=environment,
        folder=folder,
        stdout=subprocess.DEVNULL,
        inherited=inherited,
    )


def dagster_processes(
    home: Home,
    paths: Sequence[str],
    port: int,
    host: str,
    access: Access | None = None,
    *,
    with_published: bool = True,
    engine: Engine | None = None,
    may_launch: bool = False,
    every_s: int = EVERY_S,
    inherited: Sequence[int] = (),
) -> tuple[subprocess.Popen[bytes], subprocess.Popen[bytes]]:
    """Processes of Dagster's webserver and of its daemon, which runs the sensor and the schedule.

    Args:
        home: whose runs they show and launch.
        paths: files, folders and URLs to watch.
        port: the webserver's.
        host: address at which the webserver listens.
        access: who may open its pages.
        with_published: runs load the bundled results.
        engine: whose processes read in its runs; None: this machine's own.
        may_launch: its pages can launch runs and switch the sensor, instead of only showing them.
        every_s: seconds between two looks at the paths.
        inherited: handles that stay open in them.
    """
    from sweepscope.pipeline.orchestration.instance import prepare

    watched = {PATHS_VARIABLE: "\n".join(path if "://" in path else os.path.abspath(path) for path in paths)}
    watched |= {EVERY_VARIABLE: str(every_s), **({} if with_published else {OWN_ONLY_VARIABLE: "1"})}
    environment = {**prepare(home), **watched, **(engine.to_environment() if engine else {})}
    web = {**environment, **(access or Access()).to_environment()}
    mode = "launch" if may_launch else "read-only"
    package = "sweepscope.pipeline.orchestration"
    webserver = start(
        f"{package}.webserver", host, str(port), mode, environment=web, folder=home.path, inherited=inherited
    )
    daemon = start(f"{package}.daemon", environment=environment, folder=home.path, inherited=inherited)
    return webserver, daemon


def wait_until_served(servers: Mapping[str, subprocess.Popen[bytes]], *, timeout_s: float = 120) -> None:
    """Return once every URL answers; when one does not, stop them all.

    Raises SweepscopeError when a server ends or does not answer in time.
    """
    try:
        for url, process in servers.items():
            _wait(url, process, time.monotonic() + timeout_s)
    except BaseException:
        stop_all(list(servers.values()))
        raise


def _wait(url: str, process: subprocess.Popen[bytes], end: float) -> None:
    while time.monotonic() < end:
        if process.poll() is not None:
            raise SweepscopeError(f"The server ended with exit code {process.returncode} before it answered at {url}.")
        try:
            with urlopen(url, timeout=1):  # noqa: S310 -- our own server on this host
                return
        except HTTPError:
            return  # it answers, and asks for its password
        except (URLError, OSError):
            pass
        time.sleep(0.1)
    raise SweepscopeError(f"No answer from {url}. See the server's messages above.")


def serve(
    servers: Mapping[str, subprocess.Popen[bytes]],
    announce: Callable[[], None],
    beside: Sequence[subprocess.Popen[bytes]] = (),
) -> int:
    """Exit code, after one process has ended or the user has stopped this one; all are stopped then.

    Args:
        servers: address to the process that serves it.
        announce: called once every address answers.
        beside: processes without an address.

    Raises:
        SweepscopeError: as `wait_until_served`.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    processes = [*servers.values(), *beside]
    # Otherwise a closed terminal would end this process and leave the servers running.
    previous = {number: signal.signal(number, stop) for number in (signal.SIGTERM, signal.SIGHUP)}
    try:
        wait_until_served(servers)
        announce()
        while all(process.poll() is None for process in processes):
            time.sleep(0.2)
        return next(int(process.returncode) for process in processes if process.poll() is not None)
    except KeyboardInterrupt:
        return 0
    finally:
        stop_all(processes)
        for number, handler in previous.items():
            signal.signal(number, handler)


def stop_all(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask each process to end; after ten seconds kill it and all that it started."""
    for process in processes:
        if process.poll() is None:
            process.terminate()
    for process in processes:
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=10)
        with suppress(ProcessLookupError):  # no process is left in its session
            os.killpg(process.pid, signal.SIGKILL)
        process.kill()
        process.wait()
