"""`sweepscope price`: what an hour of an accelerator costs."""

from __future__ import annotations

import argparse

from sweepscope.pipeline.commands.note import author, opened
from sweepscope.pipeline.commands.output import say_result, table
from sweepscope.pipeline.commands.verb import Verb
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.store import prices
from sweepscope.pipeline.store.home import Home

_ACTIONS = ("list", "set", "remove")


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=_ACTIONS, nargs="?", default="list", help="what to do (default: %(default)s)")
    parser.add_argument("accelerator", metavar="ACCELERATOR", nargs="?", help="name, such as H100-SXM-80GB")
    parser.add_argument("price", metavar="USD", nargs="?", help="dollars per accelerator-hour")


def _run(args: argparse.Namespace) -> int:
    home = opened(args.home, for_writing=args.action != "list")
    if args.action == "list":
        return _list(home, as_json=args.json)
    if args.accelerator is None or (args.action == "set") != (args.price is not None):
        raise UsageError("Write `sweepscope price set ACCELERATOR USD` or `sweepscope price remove ACCELERATOR`.")
    name = prices.named(home, args.accelerator)
    if args.action == "set":
        price = prices.checked_price(args.price)
        prices.set_prices(home, {name: price}, author=author())
        say_result({name: price}, f"{name}: ${price:g} per accelerator-hour", as_json=args.json)
        return 0
    if not prices.remove(home, name):
        raise UsageError(f"{name} has no price. `sweepscope price` lists those that have one.")
    say_result({"removed": name}, f"Removed the price of {name}.", as_json=args.json)
    return 0


def _list(home: Home, *, as_json: bool) -> int:
    known = prices.stored(home)
    lines = [(name, f"${price:g} per accelerator-hour") for name, price in known.items()]
    nothing = "No accelerator has a price. `sweepscope price set H100-SXM-80GB 2.50` gives it one."
    say_result(known, table(lines) if lines else nothing, as_json=as_json)
    return 0


VERB = Verb(
    name="price",
    description="Prices of accelerators, in dollars per hour of one of them. Pages then show dollars per million "
    "tokens beside throughput, and what runs and failures cost.",
    add_arguments=_add_arguments,
    run=_run,
)
