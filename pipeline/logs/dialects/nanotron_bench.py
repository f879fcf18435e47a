"""nanotron's benchmark table: one row per run, appended by many jobs.

Format: src/nanotron/helpers.py create_table_log and write_to_csv (earlier: log_throughput). Columns came and went, so
they are read by name. Memory is bytes / 1024**3 under the name "GB"; parameters are human formatted; a job writes its
row with zero or negative throughput when it starts and replaces it when it has measured.
"""

from __future__ import annotations

import csv
import io

import polars as pl

from sweepscope.pipeline.logs.dialect import ResultTable
from sweepscope.pipeline.logs.sidecars.folder_name import read_folder_name
from sweepscope.pipeline.text.quantities import human, number
from sweepscope.schemas.tables.runs import RUNS
from sweepscope.schemas.vocab import REJECT_REASON_UNPARSED

_REQUIRED = ("tok/s/gpu", "mbs", "batch_accum", "seq_len")
_GIB = 2.0**30

_WHOLE = (
    {"nodes": "num_nodes", "seq_len": "seq_len", "mbs": "mbs", "batch_accum": "gas"}
    | {"dp": "dp", "pp": "pp", "tp": "tp", "cp": "cp", "ep": "ep", "zero_stage": "zero_stage"}
    | {"hidden_size": "hidden_size", "num_layers": "num_layers", "num_heads": "num_heads"}
    | {"num_kv_heads": "num_kv_heads", "vocab_size": "vocab_size"}
)
_PRECISION = {"torch.bfloat16": "bf16", "bfloat16": "bf16", "torch.float16": "fp16", "torch.float32": "fp32"}
_SCHEDULE = {
    "1f1b": "1f1b",
    "OneForwardOneBackwardPipelineEngine": "1f1b",
    "afab": "afab",
    "AllForwardAllBackwardPipelineEngine": "afab",
}
_BOOLEAN = {"True": "true", "False": "false"}
_RECOMPUTE = {"True": "full", "False": "none"}
_GATED_ACTS = ("silu",)  # nanotron's Llama and Qwen blocks, the only ones with this activation, have a gate

REJECTS = pl.Schema({"line_no": pl.Int64, "reason": pl.String, "raw": pl.String})


def matches(head: str) -> bool:
    """Whether the first line is this table's header."""
    return set(_REQUIRED) <= set(_header(head))


def _header(text: str) -> list[str]:
    first = _plain(text).split("\n", 1)[0]
    return [name.strip() for name in next(csv.reader([first]), [])]


def _plain(text: str) -> str:
    """`text` without a byte order mark and carriage returns: csv refuses one that does not end a line."""
    return text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", " ")


def read(text: str) -> tuple[pl.DataFrame, pl.DataFrame]:
    """Rows of the table as `runs`, with `line_no`, and the rows that cannot be read as such (REJECTS)."""
    header = _header(text)
    reader = csv.reader(io.StringIO(_plain(text), newline=""))
    good: list[list[str]] = []
    bad: list[tuple[int, str, str]] = []
    for row in reader:
        cells = [cell.strip() for cell in row]
        if not any(cells) or cells == header:  # a header again: tables were concatenated
            continue
        if len(cells) != len(header):
            reason = f"{len(cells)} fields where the header names {len(header)}"
            bad.append((reader.line_num, reason, ",".join(row)))
        else:
            good.append([str(reader.line_num), *cells])
    table = pl.DataFrame(good, schema=dict.fromkeys(["line_no", *header], pl.String), orient="row")
    rows = _runs(table.with_columns(pl.col("line_no").cast(pl.Int64)))
    unread = rows.filter(pl.any_horizontal(pl.col(name).is_null() for name in ("seq_len", "mbs", "gas")))
    bad += [(line, REJECT_REASON_UNPARSED, ",".join(cells[1:])) for line, cells in _raw(unread, good)]
    readable = rows.join(unread.select("line_no"), on="line_no", how="anti", maintain_order="left")
    return readable, pl.DataFrame(bad, schema=REJECTS, orient="row").sort("line_no")


def _raw(unread: pl.DataFrame, good: list[list[str]]) -> list[tuple[int, list[str]]]:
    lines = set(unread["line_no"].to_list())
    return [(int(cells[0]), cells) for cells in good if int(cells[0]) in lines]


def _runs(table: pl.DataFrame) -> pl.DataFrame:
    """Columns of `runs` from the printed ones; one that this version lacks is NULL, or read from the run's name."""
    have = table.columns

    def text(name: str) -> pl.Expr:
        return pl.col(name) if name in have else pl.lit(None, pl.String)

    def word(name: str, words: dict[str, str]) -> pl.Expr:
        return text(name).replace_strict(words, default=None, return_dtype=pl.String)

    def integer(name: str) -> pl.Expr:
        return text(name).cast(pl.Float64, strict=False).cast(pl.Int64, strict=False)

    throughput, model_tflops = number(text("tok/s/gpu")), number(text("mTFLOPs"))
    measured = throughput > 0
    named = table.with_columns(
        *(pl.coalesce(integer(name), _named(table, column)).alias(f"runs.{column}") for name, column in _WHOLE.items())
    )
    experts = pl.col("runs.ep").fill_null(1)
    split = pl.col("runs.dp") * pl.col("runs.tp") * pl.col("runs.pp") * pl.col("runs.cp").fill_null(1) * experts
    rows = named.select(
        "line_no",
        *(pl.col(f"runs.{column}").alias(column) for column in _WHOLE.values() if column != "dp"),
        # ep lies beside dp in nanotron and inside it in the store.
        dp=pl.col("runs.dp") * experts,
        num_gpus=split,
        job_id=pl.when(~text("job_id").is_in(["", "N/A"])).then(text("job_id")),
        tokens_per_s_per_gpu=pl.when(measured).then(throughput),
        tflops_per_gpu_logged=pl.when(measured).then(model_tflops),
        mem_peak_allocated_bytes=_bytes(text("Mem Alloc (GB)")),
        mem_peak_reserved_bytes=_bytes(text("Mem Res (GB)")),
        params=human(text("Total Params")).cast(pl.Int64, strict=False),
        recompute=word("recompute_layer", _RECOMPUTE),
        sequence_parallel=(pl.col("runs.tp") > 1) & text("tp_mode").str.contains("REDUCE_SCATTER", literal=True),
        precision=word("dtype", _PRECISION),
        pipeline_schedule=pl.when(pl.col("runs.pp") > 1).then(word("pp_engine", _SCHEDULE)),
        gated_mlp=pl.when(text("hidden_act").is_in(_GATED_ACTS)).then(pl.lit(value=True)),
        tie_word_embeddings=word("tie_word_embeddings", _BOOLEAN) == "true",
        status=pl.when(measured).then(pl.lit("completed")).otherwise(pl.lit("unknown")),
        status_confidence=pl.when(measured).then(pl.lit("medium")).otherwise(pl.lit("low")),
        status_evidence=pl.when(measured)
        .then(pl.lit("the table holds its measured throughput"))
        .otherwise(pl.lit("the table holds no throughput: the run started and did not report back")),
    )
    return RUNS.conform(rows).select(rows.columns)


def _named(table: pl.DataFrame, column: str) -> pl.Expr:
    """Values in the run's name: old versions have no column for dp, tp and pp."""
    if "name" not in table.columns:
        return pl.lit(None, pl.Int64)
    values = {name: read_folder_name(name).get(column) for name in table["name"].unique().to_list()}
    return pl.col("name").replace_strict(values, default=None, return_dtype=pl.String).cast(pl.Int64, strict=False)


def _bytes(gibibytes: pl.Expr) -> pl.Expr:
    value = number(gibibytes)
    return pl.when(value != 0).then((value * _GIB).round().cast(pl.Int64, strict=False))


TABLE = ResultTable(name="nanotron-benchmark", module=__name__, framework="nanotron", matches=matches, read=read)
