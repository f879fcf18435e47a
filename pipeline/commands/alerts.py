"""`sweepscope alerts status|test|send`: receivers of hangs, regressions and the like."""

from __future__ import annotations

import argparse

from sweepscope.pipeline.commands.output import say_read, table
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store.home import Home

_ACTIONS = ("status", "test", "send")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=_ACTIONS, help="what to do")


def _run(args: argparse.Namespace) -> int:
    home = Home.resolve(args.home, for_writing=args.action == "send")
    return {"status": _status, "test": _test, "send": _send}[args.action](home, args.json)


def _status(home: Home, as_json: bool) -> int:
    from sweepscope.pipeline.operations.outbox import read_state
    from sweepscope.pipeline.operations.settings import read_settings

    settings, state = read_settings(home).alerts, read_state(home)
    lines = [(receiver.label, ", ".join(receiver.kinds)) for receiver in settings.receivers]
    waiting = [
        {"receiver": one.label, "title": one.message.title, "tries": one.tries, "error": one.error}
        for one in state.outbox
    ]
    lines += [
        ("waiting", f"{one['title']} for {one['receiver']}: {one['error'] or 'not tried yet'}") for one in waiting
    ]
    lines.append(("sent", f"{state.sent:,}, {len(waiting):,} waiting, {state.given_up:,} given up"))
    if not settings.receivers:
        lines.append(("receivers", f"none; name them in {home.operations} (docs/operations.md)"))
    value = {
        "receivers": [{"receiver": one.label, "kinds": one.kinds} for one in settings.receivers],
        "waiting": waiting,
        "sent": state.sent,
        "given_up": state.given_up,
    }
    say_read(value, table(lines), as_json=as_json)
    return 0


def _test(home: Home, as_json: bool) -> int:
    from sweepscope.pipeline.operations.alerting import send_test

    found = send_test(home)
    if not found:
        raise UsageError(f"No receivers: name webhooks or mails in {home.operations}, as docs/operations.md says.")
    lines = [(label, f"failed: {error}" if error else "took the test message") for label, error in found.items()]
    say_read(found, table(lines), as_json=as_json)
    return int(any(found.values()))


def _send(home: Home, as_json: bool) -> int:
    from sweepscope.pipeline.operations.alerting import look

    done = look(home)
    value = {"sent": done.sent, "waiting": done.waiting, "given_up": done.given_up, "errors": done.errors or {}}
    say_read(value, done.sentence, as_json=as_json)
    return int(bool(done.errors))


VERB = Verb(
    name="alerts",
    description="Alerts by webhook and mail, as operations.toml in the home says. status: receivers, their kinds and "
    "what waits. test: send a message to every receiver now. send: look for what is new and send it, as `watch` does "
    "every minute and `ingest` at its end.",
    add_arguments=_add_arguments,
    run=_run,
)
