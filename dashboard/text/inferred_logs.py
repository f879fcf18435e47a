"""The sentences about logs and tables that no parser knows: what was found, what they lack, how to correct it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from sweepscope.dashboard.format.numbers import capital, count, number
from sweepscope.dashboard.queries.query import Row

FACTS = {
    "speed": "step time or tokens/s",
    "batch": "global batch",
    "seq_len": "sequence length",
    "num_gpus": "number of GPUs",
    "model": "model",
}
"""Names of `queries.health.WANTED_FACTS`."""

_COLUMNS = {
    **dict.fromkeys(("num_gpus", "world_size"), "number of GPUs"),
    **{name: name.upper() for name in ("dp", "tp", "pp", "cp", "ep", "gas", "mbs")},
    "seq_len": "sequence length",
    "gbs": "global batch",
    "zero_stage": "ZeRO stage",
    "params": "parameters",
    "step_time": "step time",
    "step_time_s": "step time",
    "tokens_per_s": "tokens/s",
    "tokens_per_s_per_gpu": "tokens/s per GPU",
    "mem_allocated": "allocated memory",
    "mem_reserved": "reserved memory",
    "tflops_per_gpu": "TFLOP/s per GPU",
    "mfu": "MFU",
}


_MOST_NAMED = 10
"""Columns that the answer names."""


def column_name(name: str) -> str:
    """A column of a dialect file in words.

    >>> column_name("step_time"), column_name("grad_norm")
    ('step time', 'grad norm')
    """
    return _COLUMNS.get(name, name.replace("_", " "))


def answer(logs: Sequence[Row]) -> str:
    """How many files were read by inference, what was found in them, and what keeps their runs out of rankings."""
    total = len(logs)
    found = Counter(column_name(name) for log in logs for name in dict.fromkeys(log["found"] or ()))
    verb = "was" if total == 1 else "were"
    lead = f"**{_files(logs)} in no known format {verb} read by inference.**"
    parts = [_share(name, hits, total) for name, hits in found.most_common(_MOST_NAMED)]
    if len(found) > _MOST_NAMED:
        parts.append(f"and {count(len(found) - _MOST_NAMED, 'more column')}, in the table below")
    lacking = [(name, sum(bool(log[f"no_{fact}"]) for log in logs)) for fact, name in FACTS.items()]
    missing = [_share(name, hits, total) for name, hits in sorted(lacking, key=lambda pair: -pair[1]) if hits]
    sentences = [lead]
    if parts:
        sentences.append(f"Found: {', '.join(parts)}.")
    if missing:
        sentences.append(f"Not found, so that these runs are compared less: {', '.join(missing)}.")
    if guessed := sum(bool(log["is_unranked"]) for log in logs):
        whose = f"The runs of {count(guessed, 'of them', 'of them')}"
        sentences.append(f"{whose} are not ranked: step time or throughput is a guess until it is confirmed.")
    return " ".join(sentences)


def _files(rows: Sequence[Row]) -> str:
    tables = sum(bool(row["is_table"]) for row in rows)
    kinds = ((len(rows) - tables, "log", "logs"), (tables, "table of results", "tables of results"))
    return " and ".join(count(number, one, several) for number, one, several in kinds if number)


def _share(name: str, hits: int, total: int) -> str:
    """A fact, and in how many logs unless in all."""
    return name if hits == total else f"{name} ({number(hits)} of {number(total)})"


def named(columns: Sequence[str] | None) -> str | None:
    """Columns in words; None for none.

    >>> named(["loss", "step_time"])
    'loss, step time'
    """
    return ", ".join(map(column_name, columns)) if columns else None


def without_steps(*, is_table: bool) -> str:
    """What was inferred where no steps were: a table of runs, or settings of logs whose steps a dialect reads."""
    return "table of results" if is_table else "settings of a known format"


def missing_in(logs: Sequence[Row]) -> str:
    """Facts that runs of these logs lack, in words; empty when there are none."""
    lacking = [(name, sum(bool(log[f"no_{fact}"]) for log in logs)) for fact, name in FACTS.items()]
    return capital(", ".join(_share(name, hits, len(logs)) for name, hits in lacking if hits))


PICK = "Pick a row to see, or to change, what its file says."


def heading(logs: Sequence[Row], inferred: int, total: int) -> tuple[str, str]:
    """Title and qualifier of the section, from the inferred files and the numbers of their forms and of all forms.

    >>> heading([{"is_table": False}] * 12, 2, 3), heading([], 0, 1)
    (('Read by inference', '12 logs of 2 forms'), ('Formats of your own', '1 dialect file'))
    >>> heading([{"is_table": True}], 1, 1)
    ('Read by inference', '1 table of results of 1 form')
    """
    if not logs:
        return "Formats of your own", count(total, "dialect file")
    return "Read by inference", f"{_files(logs)} of {count(inferred, 'form')}"


def read_by(kept_as: str | None, *, is_read: bool) -> str:
    """By what logs of one form were read, or will be.

    >>> read_by(None, is_read=False), read_by("zephyr", is_read=True), read_by("zephyr", is_read=False)
    ('inference', 'zephyr, confirmed', 'zephyr, next ingest')
    """
    if kept_as is None:
        return "inference"
    return f"{kept_as}, confirmed" if is_read else f"{kept_as}, next ingest"


def of_logs(paths: Sequence[str]) -> str:
    """Which logs are of one form.

    >>> of_logs(["/a/x.log", "/a/y.log"]), of_logs(["/a/x.log"]), of_logs([])
    ('2 logs, such as /a/x.log', '/a/x.log', 'no log has been read by it')
    """
    if not paths:
        return "no log has been read by it"
    return paths[0] if len(paths) == 1 else f"{count(len(paths), 'log')}, such as {paths[0]}"


def instructions(*, is_kept: bool) -> str:
    """What to do in the editor."""
    if is_kept:
        return "Change what is wrong, and save: its logs are read anew at the next ingest."
    return (
        "**Is it right?** Say what each number means, or leave it as it is, and save. From then on these logs "
        "are read so, and their runs may be ranked."
    )


def settings_only(path: str, *, is_table: bool) -> str:
    """Why there is nothing to correct in logs of a known format or a table, and what to do all the same."""
    if is_table:
        return (
            f"Each row of {path} is a run; its columns are found by their names and units. "
            "**Is one wrong?** Rename it to what it is (tp, mbs, tok/s/gpu, step_time_s), and ingest again."
        )
    return (
        f"A dialect reads the steps of {path} and logs like it; the settings below are inferred from its other lines. "
        "**Is one wrong?** Write a dialect file of its format: **sweepscope dialect example**."
    )


def by_command(name: str, path: str, home: str) -> str:
    """How to keep a file that this page may not write; `home` is the option that names the home."""
    command = f"sweepscope ingest --dialect {name}.toml {_quoted(path)}{home}"
    return (
        "These pages are open to others, or the home cannot be written to, so that nothing is saved from here. "
        f"Download the file, and give it to an ingest: **{command}**. Every later ingest reads with it."
    )


def kept(path: str, logs: int, command: str) -> str:
    """Where a file was saved, and when it counts."""
    return (
        f"**Saved** as {path}. {count(logs, 'log')} will be read by it at the next ingest, which a watching sweepscope "
        f"starts by itself; otherwise run **{command}**."
    )


def _quoted(path: str) -> str:
    return path if path.replace("/", "").replace(".", "").replace("_", "").replace("-", "").isalnum() else f"'{path}'"
