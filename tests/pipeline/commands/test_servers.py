"""Servers are stopped with us, and serve nobody but those whom they should."""

from __future__ import annotations

import argparse
import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from sweepscope.pipeline.commands import servers
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.io.children import import_path
from sweepscope.pipeline.io.web_access import PASSWORD_VARIABLE, Access
from sweepscope.pipeline.store.home import Home
from sweepscope.pipeline.store.watcher import left_servers
from tests.picotron_runs import picotron_run

_STARTING = """
import subprocess, sys
from sweepscope.pipeline.commands import servers

class Silent(subprocess.Popen):
    is_printed = False

    def poll(self):  # the first thing that waiting for it asks
        if not self.is_printed:
            self.is_printed = True
            print(self.pid, flush=True)
        return super().poll()

process = Silent([sys.executable, "-c", "import time; time.sleep(60)"])
sys.exit(servers.serve({"http://127.0.0.1:9": process}, lambda: print("served")))
"""


def is_running(pid: int) -> bool:
    with suppress(ProcessLookupError):
        os.kill(pid, 0)
        return True
    return False


def test_a_server_that_is_still_starting_ends_with_us() -> None:
    with subprocess.Popen([sys.executable, "-c", _STARTING], stdout=subprocess.PIPE, text=True) as ours:
        assert ours.stdout is not None
        server = int(ours.stdout.readline())
        ours.send_signal(signal.SIGTERM)
        rest = ours.stdout.read()
        code = ours.wait(timeout=120)
    assert (code, rest) == (0, "")
    assert not is_running(server)


def test_a_reader_at_a_pipe_gets_the_address_at_once() -> None:
    code = "from sweepscope.pipeline.commands.output import say_json; say_json({'url': 1}); import os; os._exit(0)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "url" in done.stdout


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def ask(port: int, method: str, path: str, body: str = "", **headers: str) -> tuple[int, str]:
    """Status and text of an answer; `Content_Type` stands for `Content-Type`."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        connection.request(method, path, body or None, named)
        answer = connection.getresponse()
        return answer.status, answer.read().decode(errors="replace")
    finally:
        connection.close()


def host_arguments(*given: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    servers.add_host_arguments(parser)
    return parser.parse_args(given)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.1.2.3", "login01"])  # noqa: S104 -- not bound
def test_other_machines_are_served_with_a_password_or_when_told_so(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    with pytest.raises(UsageError, match=f"Set a password in {PASSWORD_VARIABLE}, or add --public"):
        servers.access_of(host_arguments("--host", host))
    assert servers.access_of(host_arguments("--host", host, "--public")).password is None
    monkeypatch.setenv(PASSWORD_VARIABLE, "secret")
    assert servers.access_of(host_arguments("--host", host)).password == "secret"


def test_this_machine_is_served_without(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    assert servers.access_of(host_arguments()).password is None
    assert servers.access_of(host_arguments("--allow-host", "a.example")).names == ("a.example",)


@dataclass
class Served:
    """A `sweepscope serve`, started in a folder whose files are named as modules that it imports."""

    process: subprocess.Popen[bytes]
    page: int
    dagster: int
    folder: Path

    def graphql(self, query: str, **headers: str) -> tuple[int, str]:
        body = json.dumps({"query": query})
        return ask(self.dagster, "POST", "/graphql", body, Content_Type="application/json", **headers)


SECRET = f"Basic {base64.b64encode(b':secret').decode()}"
WORKING = {"status": "ok", "store": "published", "watcher": "alive"}


def announced(process: subprocess.Popen[bytes]) -> str:
    """The JSON object that says that the servers answer."""
    assert process.stdout is not None
    lines = []
    for line in process.stdout:
        lines.append(line.decode())
        if line.rstrip() == b"}":
            break
    return "".join(lines)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("repository")
    for name in ("data", "gql", "polars", "duckdb", "graphql", "streamlit", "dagster"):
        (folder / f"{name}.py").write_text(f"open({str(folder / 'ran')!r}, 'w')", encoding="utf-8")
    (folder / ".streamlit").mkdir()
    (folder / ".streamlit" / "config.toml").write_text("[server]\nport = 1\n", encoding="utf-8")
    (folder / ".env").write_text("SWEEPSCOPE_OWN_ONLY=\n", encoding="utf-8")
    picotron_run(folder / "sweep")
    page, dagster = free_port(), free_port()
    ports = ["--port", str(page), "--dagster-port", str(dagster)]
    watched = ["sweep", "later"]
    command = [sys.executable, "-m", "sweepscope", "serve", *watched, "--home", str(folder / "home"), *ports, "--json"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*import_path(), str(folder)])}
    environment.pop(PASSWORD_VARIABLE, None)
    process = subprocess.Popen(
        [*command, "--no-published"], cwd=folder, env=environment, stdout=subprocess.PIPE, start_new_session=True
    )
    try:
        said = json.loads(announced(process))
        assert said["dagster"] == f"http://127.0.0.1:{dagster}"
        assert said["waiting_for"] == ["later"]  # which need not be there yet
        yield Served(process, page, dagster, folder)
    finally:
        process.kill()
        process.wait()


def test_pages_answer_to_this_machines_names_only(served: Served) -> None:
    for port in (served.page, served.dagster):
        assert ask(port, "GET", "/")[0] == 200
        assert ask(port, "GET", "/", Host="rebound.example")[0] == 403
    assert ask(served.page, "GET", "/_stcore/health", Origin="http://evil.example")[0] == 403


def test_a_page_that_somebody_visits_starts_nothing(served: Served) -> None:
    mutation = "mutation { stopRunningSchedule: __typename }"
    assert ask(served.dagster, "GET", f"/graphql?query={mutation.replace(' ', '%20')}")[0] == 403
    assert ask(served.dagster, "POST", "/graphql", json.dumps({"query": mutation}), Content_Type="text/plain")[0] == 403
    assert served.graphql(mutation, Origin="http://evil.example")[0] == 403
    assert served.graphql("{ version }")[0] == 200


def test_dagsters_page_is_read_only(served: Served) -> None:
    launch = """mutation { launchRun(executionParams: {selector: {repositoryLocationName: "x", repositoryName: "y",
        jobName: "ingest"}, runConfigData: {}}) { __typename ... on UnauthorizedError { message } } }"""
    status, text = served.graphql(launch)
    assert "UnauthorizedError" in text, (status, text)


def test_monitoring_sees_the_watcher_at_work(served: Served) -> None:
    end = time.monotonic() + 200
    while (health := json.loads(ask(served.page, "GET", "/healthz")[1])) != WORKING and time.monotonic() < end:
        time.sleep(0.5)
    assert health == WORKING
    assert 'sweepscope_runs{status="completed"} 1\n' in ask(served.page, "GET", "/metrics")[1]


def test_a_second_watcher_of_the_home_is_refused(served: Served) -> None:
    command = [sys.executable, "-P", "-m", "sweepscope", "watch", "sweep", "--home", str(served.folder / "home")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(import_path())}
    done = subprocess.run(command, cwd=served.folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert f"by process {served.process.pid} on" in done.stderr


def test_nothing_of_the_current_directory_ran(served: Served) -> None:
    assert not (served.folder / "ran").exists()


def test_killed_it_leaves_no_server_behind(served: Served) -> None:
    """The last test of these servers."""
    served.process.send_signal(signal.SIGKILL)
    served.process.wait()
    end = time.monotonic() + 120
    for port in (served.page, served.dagster):
        while time.monotonic() < end:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                time.sleep(0.1)
                continue
            break
        else:
            pytest.fail(f"port {port} is still served")
    home = Home.resolve(str(served.folder / "home"))
    while left_servers(home) and time.monotonic() < end:
        time.sleep(0.1)
    assert left_servers(home) is None


_WATCHED = """
import sys
LOCAL = ("127.0.0.1", "::1", "0.0.0.0", "localhost", None)
def note(event, args):
    if event in ("socket.connect", "socket.getaddrinfo", "socket.gethostbyname"):
        address = args[1][0] if event == "socket.connect" and isinstance(args[1], tuple) else args[0]
        if address not in LOCAL:
            print(event, args, file=sys.stderr, flush=True)
sys.addaudithook(note)
from sweepscope.dashboard.app.serve import main
main("0.0.0.0", sys.argv[1])
"""


def test_the_dashboard_looks_nothing_up_outside(tmp_path: Path) -> None:
    """Streamlit asks a service on the internet for this machine's address, to greet with it and to judge origins."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, "-P", "-c", _WATCHED, str(port)],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(import_path()), "SWEEPSCOPE_HOME": str(tmp_path)},
    )
    try:
        servers.wait_until_served({f"http://127.0.0.1:{port}": process})
        key = "dGhlIHNhbXBsZSBub25jZQ=="
        upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec_WebSocket_Version": "13"}
        for origin in (f"http://127.0.0.1:{port}", f"http://10.9.8.7:{port}", "http://evil.example"):
            with suppress(TimeoutError, http.client.HTTPException):
                ask(port, "GET", "/_stcore/stream", Sec_WebSocket_Key=key, Origin=origin, **upgrade)
    finally:
        process.kill()
        _, errors = process.communicate()
    assert b"socket." not in errors, errors.decode()


def test_health_and_counts_need_no_password_and_pages_do(tmp_path: Path) -> None:
    home, port = Home.resolve(str(tmp_path / "home")), free_port()
    process = servers.dashboard_process(home, port, "127.0.0.1", Access(password="secret"))
    try:
        servers.wait_until_served({f"http://127.0.0.1:{port}": process})
        assert ask(port, "GET", "/")[0] == 401
        health = {"status": "ok", "store": "empty", "watcher": "none"}
        for host in (f"127.0.0.1:{port}", "sweepscope.default.svc"):
            status, text = ask(port, "GET", "/healthz", Host=host)
            assert (status, json.loads(text)) == (200, health)
        status, text = ask(port, "GET", "/metrics")
        assert status == 200
        assert "sweepscope_healthy 1\n" in text
        assert ask(port, "GET", "/metrics", Host="rebound.example")[0] == 403
        assert ask(port, "POST", "/metrics")[0] == 401
        assert ask(port, "GET", "/api/overview")[0] == 401
        assert ask(port, "GET", "/api/overview", Host="rebound.example")[0] == 403
        status, text = ask(port, "GET", "/api/overview", Authorization=SECRET)
        assert (status, "sweepscope ingest PATH" in text) == (503, True), text
    finally:
        servers.stop_all([process])
