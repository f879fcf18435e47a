"""Start and stop the servers: the dashboard, and Dagster's webserver with its daemon."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from urllib.error import URLError
from urllib.request import urlopen

from sweepscope.pipeline.errors import SweepscopeError, UsageError
from sweepscope.pipeline.store.home import Home

DASHBOARD_PORT = 8501
WEBSERVER_PORT = 3000


# Dagster's greeting recommends a command that this project does not have.
_DAGSTER_WARNINGS = "ignore:Function `dev_command` is superseded"
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


def dashboard_process(home: Home, port: int, host: str) -> subprocess.Popen[bytes]:
    """A process of Streamlit with the dashboard's script, which only reads the store."""
    environment = {**_environment(), "SWEEPSCOPE_HOME": str(home.path)}
    options = {
        "server.port": str(port),
        "server.address": host,
        "server.headless": "true",  # no browser window, no e-mail prompt on the first run
        "server.fileWatcherType": "none",  # an installed package does not change under a running server
        "browser.gatherUsageStats": "false",
        "logger.level": "warning",
    }
    flags = [part for name, value in options.items() for part in (f"--{name}", value)]
    command = [sys.executable, "-m", "streamlit", "run", str(dashboard_script()), *flags]
    # Streamlit prints a greeting to stdout, which is for our result; its errors go to stderr.
    return _start(command, environment, stdout=subprocess.DEVNULL)


def dagster_process(
    home: Home, paths: Sequence[str], port: int, host: str, *, with_published: bool = True
) -> subprocess.Popen[bytes]:
    """A process of `dagster dev`: webserver, daemon, sensor and schedule in one."""
    from sweepscope.pipeline.orchestration.instance import prepare
    from sweepscope.pipeline.orchestration.landing import LANDING_VARIABLE, OWN_ONLY_VARIABLE

    warnings = ",".join(filter(None, [os.environ.get("PYTHONWARNINGS"), _DAGSTER_WARNINGS]))
    landing = {LANDING_VARIABLE: "\n".join(paths), "PYTHONWARNINGS": warnings}
    landing |= {} if with_published else {OWN_ONLY_VARIABLE: "1"}
    command = [
        "-m",
        "dagster",
        "dev",
        "-m",
        "sweepscope.pipeline.orchestration.definitions",
        "-h",
        host,
        "-p",
        str(port),
    ]
    # Dagster's page shows what its services do; the terminal shows errors only.
    return _start([sys.executable, *command, "--log-level", "error"], {**_environment(), **prepare(home), **landing})


def _environment() -> dict[str, str]:
    """The environment of servers: they import what this process can, and nothing from the current directory."""
    return {**os.environ, "PYTHONSAFEPATH": "1", "PYTHONPATH": os.pathsep.join(map(os.path.abspath, sys.path))}


def _start(
    command: Sequence[str], environment: Mapping[str, str], stdout: int | None = None
) -> subprocess.Popen[bytes]:
    """A server in a new session: Ctrl-C reaches only this process, which stops the server and its children in order."""
    return subprocess.Popen(command, env=environment, stdout=stdout, start_new_session=True)


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
        with suppress(URLError, OSError), urlopen(url, timeout=1):  # noqa: S310 -- our own server on this host
            return
        time.sleep(0.1)
    raise SweepscopeError(f"No answer from {url}. See the server's messages above.")


def serve(servers: Mapping[str, subprocess.Popen[bytes]], announce: Callable[[], None]) -> int:
    """Exit code, after one server has ended or the user has stopped this process; all servers are stopped then.

    Calls `announce` once every URL answers. Raises as `wait_until_served`.
    """

    def stop(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    processes = list(servers.values())
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


def dashboard_script() -> Path:
    """Path of the installed Streamlit script."""
    spec = find_spec("sweepscope.dashboard")
    if spec is None or not spec.submodule_search_locations:
        raise SweepscopeError("The dashboard package is not installed. Install sweepscope again.")
    return Path(next(iter(spec.submodule_search_locations))) / "streamlit_app.py"
