"""Values that the assets of one run hand on in memory, and failures as Dagster's page shows them."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import dagster as dg

from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.io.event_log import event
from sweepscope.pipeline.orchestration.run_record import PASSING
from sweepscope.pipeline.text.secrets import hide

_LOG = logging.getLogger(__name__)

IN_MEMORY = ("discovered", "parsed", "validated", "lake")
"""Assets of which each takes the value of the one before. Rows on disk would go stale: a later run of `lake` alone
would bring back what a newer batch has replaced."""


class RunMemory(dg.IOManager):
    """Keeps each asset's value until the run ends."""

    def __init__(self) -> None:
        self._values: dict[dg.AssetKey, object] = {}

    def handle_output(self, context: dg.OutputContext, obj: Any) -> None:
        """Keep a value."""
        self._values[context.asset_key] = obj

    def load_input(self, context: dg.InputContext) -> object:
        """The value of an asset of this run. Raises Failure when the run did not select it."""
        if context.asset_key in self._values:
            return self._values[context.asset_key]
        name, before = context.op_def.name, context.asset_key.to_user_string()
        *chain, last = IN_MEMORY[: IN_MEMORY.index(name) + 1]
        together = f"{', '.join(chain)} and {last} together"
        raise dg.Failure(
            f"{name} takes the rows of {before} from the memory of one run, and this run did not make them: "
            f"materialize {together}, or all assets.",
            allow_retries=False,
        )


@dg.io_manager(description="Values of the assets of one run, in its memory.")
def run_memory(_context: dg.InitResourceContext) -> RunMemory:
    """A memory for one run."""
    return RunMemory()


@contextmanager
def one_sentence() -> Iterator[None]:
    """Turn our errors into Dagster's, so that its page shows their sentence and not a traceback.

    Dagster keeps errors with all that caused them. Where one of them quotes a credential of a log, its causes are left
    out and the credential is hidden.
    """
    try:
        yield
        return
    except Exception as error:
        if any(hide(text) != text for cause in _causes(error) for text in (str(cause), *_notes(cause))):
            named = error if isinstance(error, SweepscopeError) else RuntimeError(f"{type(error).__name__}: {error}")
            shown: Exception = type(named)(hide(str(named)))
        elif isinstance(error, SweepscopeError):
            shown = error
        else:
            raise
    raise _failure(shown) from shown


def _failure(error: Exception) -> dg.Failure:
    may_pass = isinstance(error, PASSING)
    event(_LOG, logging.INFO, "step_failed", error=type(error).__name__, may_be_retried=may_pass, reason=error)
    return dg.Failure(str(error), allow_retries=may_pass)


def _notes(error: BaseException) -> list[str]:
    """What was added to an error: the traceback in a worker."""
    return list(getattr(error, "__notes__", ()))


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An error, and those that it names as its cause or followed on."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        found = waiting.pop()
        if found is not None and id(found) not in seen:
            seen.add(id(found))
            yield found
            waiting += [found.__cause__, found.__context__]
