"""Servers are stopped with us, however early we are told to stop."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import suppress

_STARTING = """
import subprocess, sys
from sweepscope.pipeline.commands import servers

class Silent(subprocess.Popen):
    told = False

    def poll(self):  # the first thing that waiting for it asks
        if not self.told:
            self.told = True
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
        code = ours.wait(timeout=30)
    assert (code, rest) == (0, "")
    assert not is_running(server)


def test_a_reader_at_a_pipe_gets_the_address_at_once() -> None:
    code = "from sweepscope.pipeline.commands.output import say_json; say_json({'url': 1}); import os; os._exit(0)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "url" in told.stdout
