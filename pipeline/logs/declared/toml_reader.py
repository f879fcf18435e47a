"""Values of a TOML document, checked one by one: every fault names file, line and remedy."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection
from typing import Any

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.logs.declared.columns import suggestion

MAX_BYTES = 128 << 10
MAX_RULES = 50
"""Tables of one name."""
MAX_KEYS = 60
MAX_LITERALS = 20
MAX_CELLS = 500
"""Of a row: exports of trackers have a column for each metric and each value of the configuration."""


class Tables:
    """A document and the lines of its keys. `number` is the index of a table among those of its name, from 0."""

    def __init__(self, text: str, origin: str, what: str = "A dialect file holds patterns, not a log") -> None:
        """Raises UsageError when the text is too large or no TOML; `what` tells what such a file holds."""
        if len(text.encode(errors="replace")) > MAX_BYTES:
            raise UsageError(f"{origin} is larger than {MAX_BYTES >> 10} KiB. {what}.")
        try:
            self.data = tomllib.loads(text)
        except ValueError as error:  # a TOMLDecodeError, or a number of more digits than Python takes
            remedy = "Patterns with backslashes or double quotes go between single quotes."
            raise UsageError(f"{origin} is not TOML: {error}. {remedy}") from error
        except RecursionError as error:
            raise UsageError(f"{origin} nests too deep. {what}.") from error
        self.origin = origin
        self.lines = text.splitlines()

    def location(self, table: str = "", number: int = 0, key: str = "") -> str:
        """`file:line` of a key in the `number`th table of that name, as near as plain text allows."""
        begin, end = 0, len(self.lines)
        heads = [at for at, line in enumerate(self.lines) if re.match(r"\s*\[", line) and not line.startswith("  ")]
        if table:
            mine = [at for at in heads if re.match(rf"\s*\[+\s*{re.escape(table)}\s*\]", self.lines[at])]
            begin = mine[number] if number < len(mine) else 0
        elif heads:
            end = heads[0]
        if table:
            end = next((at for at in heads if at > begin), end)
        wanted = rf"""\s*["']?{re.escape(key)}["']?\s*="""
        at = next((at for at in range(begin, end) if key and re.match(wanted, self.lines[at])), begin)
        return f"{self.origin}:{at + 1}"

    def fail(self, location: str, message: str) -> UsageError:
        message = message.rstrip()
        return UsageError(f"{location}: {message}{'' if message[-1:] in '.?!)' else '.'}")

    def tables(self, name: str, most: int = MAX_RULES) -> list[tuple[int, dict[str, Any]]]:
        value = self.data.get(name, [])
        if not isinstance(value, list) or not all(isinstance(part, dict) for part in value):
            raise self.fail(self.location(name), f"{name} is a table of its own for each pattern. Write [[{name}]]")
        if len(value) > most:
            raise self.fail(self.location(name), f"{len(value)} [[{name}]]: at most {most} are read")
        return list(enumerate(value))

    def only(self, part: dict[str, Any], known: Collection[str], table: str, number: int = 0) -> None:
        for key in part:
            if key not in known:
                where = f" in [[{table}]]" if table else ""
                raise self.fail(
                    self.location(table, number, key), f"{key!r} is not known{where}. {suggestion(key, known)}"
                )

    def text(self, part: dict[str, Any], key: str, table: str, number: int = 0, default: str | None = None) -> str:
        value = part.get(key, default)
        if not isinstance(value, str) or (not value.strip() and default is None):
            message = "is missing" if value is None else f"is {value!r}, not a text"
            raise self.fail(self.location(table, number, key), f'{key} {message}. Write {key} = "..."')
        return value

    def strings(
        self,
        part: dict[str, Any],
        key: str,
        table: str,
        number: int,
        default: tuple[str, ...] | None = None,
        *,
        most: int = MAX_LITERALS,
    ) -> tuple[str, ...]:
        value = part.get(key, default)
        is_good = isinstance(value, list | tuple) and all(isinstance(text, str) and text.strip() for text in value)
        if not is_good or (not value and default is None) or len(value or ()) > most:
            message = "is missing" if value is None else f"has to hold 1 to {most} texts"
            raise self.fail(self.location(table, number, key), f'{key} {message}. Write {key} = ["..."]')
        return tuple(value or ())

    def table(
        self, part: dict[str, Any], key: str, table: str, number: int, default: dict[str, str] | None = None
    ) -> dict[str, str]:
        value = part.get(key, default)
        is_good = isinstance(value, dict) and all(isinstance(text, str) for text in value.values())
        if not is_good or (not value and default is None) or len(value or {}) > MAX_KEYS:
            message = "is missing" if value is None else "has to map what is printed to columns"
            raise self.fail(
                self.location(table, number, key), f'{key} {message}. Write {key} = {{ "as printed" = "column" }}'
            )
        return dict(value or {})

    def count(self, part: dict[str, Any], key: str, table: str, number: int) -> int | None:
        value = part.get(key)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 0):
            raise self.fail(self.location(table, number, key), f"{key} is {value!r}, not a count. Write {key} = 1")
        return value

    def choice(
        self,
        part: dict[str, Any],
        key: str,
        words: tuple[str, ...],
        *,
        default: str | None = None,
        table: str = "",
        number: int = 0,
    ) -> str:
        value = self.text(part, key, table, number, default)
        if value not in words:
            near = suggestion(value, words)
            known = "" if near.startswith("There are") else f" There are: {', '.join(words)}."  # or meant otherwise
            raise self.fail(self.location(table, number, key), f"{key} {value!r} is not known. {near}{known}")
        return value
