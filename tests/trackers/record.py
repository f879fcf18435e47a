"""Write the recordings beside this file anew, with the trackers' own packages.

    python -m venv build/trackers
    build/trackers/bin/pip install wandb tensorboard tensorboardX
    build/trackers/bin/python tests/trackers/record.py

Each file `NAME` has `NAME.json`: the scalars by step, the configuration and the exit code, as wandb's own messages over
its own framing, or TensorBoard's EventFileLoader, give them. `wandb` runs offline and asks nothing of the network.
Recorded with wandb 0.31.0, tensorboard 2.21.0 and tensorboardX 2.6.5.
"""

# mypy: ignore-errors

from __future__ import annotations

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import zlib
from pathlib import Path

HERE = Path(__file__).parent
STEPS = 12


def nanotron(step: int) -> dict:
    return {
        "iteration_step": step * 2,
        "lm_loss": 9.5 / step,
        "lr": 3e-4,
        "grad_norm": 1.5,
        "tokens_per_sec": 32768.0 + step,
        "tokens_per_sec_per_gpu": 4096.0,
        "elapsed_time_per_iteration_ms": 500.0 + step,
        "model_tflops_per_gpu": 250.0,
    }


def transformers(step: int) -> dict:
    logged = {"train/loss": 4.0 / step, "train/learning_rate": 1e-4, "train/global_step": step * 10}
    return logged | ({"eval/loss": 3.0} if step % 4 == 0 else {})


def picotron(step: int) -> dict:
    return {
        "loss": 10.0 - step / 4,
        "tokens_per_step": 65536,
        "tokens_per_second": 20000.0 + step,
        "mfu": 31.5,
        "tokens_per_second_per_gpu": 2500.0,
        "memory_usage": 41.5,
        "trained_tokens": step * 65536,
    }


def nested(step: int) -> dict:
    """One record is longer than a block of the framing."""
    return {"train": {"loss": 2.0 / step}, "note": "x" * (33_000 if step == 5 else 10), "ok": True}


def long(step: int) -> dict:
    """So much that blocks are written before the process is killed, which leaves the last record cut."""
    return picotron(step) | {"note": "x" * 6_000}


WANDB = {
    "nanotron": (nanotron, {"parallelism": {"tp": 2, "pp": 1, "dp": 4}, "tokens": {"sequence_length": 4096}}, 0),
    "transformers": (transformers, {"per_device_train_batch_size": 4, "gradient_accumulation_steps": 2}, 0),
    "picotron": (picotron, {"tensor_parallel_size": 4, "pipeline_parallel_size": 2}, 0),
    "failed": (nested, {"batch_size": 4}, 1),
    "killed": (long, {"tensor_parallel_size": 8}, None),
}


def write_wandb(name: str) -> None:
    """Run by `record` in a process of its own, for one of them is killed."""
    import wandb

    log, config, code = WANDB[name]
    # Nothing of the machine of the recording: no paths, no names.
    settings = wandb.Settings(x_disable_meta=True, x_disable_machine_info=True, host="host")
    run = wandb.init(project="sweep", name=name, config=config, settings=settings)
    for step in range(1, STEPS + 1):
        run.log(log(step))
    if code is None:
        import time

        time.sleep(6)  # its service writes from another process
        os.kill(os.getpid(), signal.SIGKILL)
    run.finish(exit_code=code)


def record_wandb(name: str) -> None:
    folder = Path(tempfile.mkdtemp())
    quiet = {"WANDB_MODE": "offline", "WANDB_SILENT": "true", "WANDB_DIR": str(folder), "WANDB_DISABLE_GIT": "true"}
    quiet |= {"WANDB_DISABLE_CODE": "true", "WANDB_CONSOLE": "off", "WANDB__DISABLE_STATS": "true"}
    quiet |= {"WANDB_HOST": "host", "WANDB_USERNAME": "user", "WANDB_PROGRAM": "train.py"}
    subprocess.run([sys.executable, __file__, name], env={**os.environ, **quiet}, cwd=folder, check=False)
    (written,) = folder.glob("wandb/offline-run-*/run-*.wandb")
    target = HERE / f"run-{name}.wandb"
    shutil.copyfile(written, target)
    expected = read_wandb(target.read_bytes())
    target.with_suffix(".wandb.json").write_text(json.dumps(expected, indent=1) + "\n")
    shutil.rmtree(folder)


def read_wandb(data: bytes) -> dict:
    """By wandb's own messages; the framing as sdk/internal/datastore.py had it until it moved into the Go core."""
    from wandb.proto.wandb_internal_pb2 import Record

    at, parts, rows, config, code = 7, b"", [], {}, None
    while at + 7 <= len(data):
        if 32768 - at % 32768 < 7:
            at += 32768 - at % 32768
            continue
        checksum, size, kind = struct.unpack_from("<IHB", data, at)
        chunk = data[at + 7 : at + 7 + size]
        at += 7 + size
        if len(chunk) < size:
            break
        assert zlib.crc32(bytes([kind]) + chunk) == checksum
        parts = chunk if kind in (1, 2) else parts + chunk
        if kind not in (1, 4):
            continue
        record = Record.FromString(parts)
        if record.WhichOneof("record_type") == "history":
            row = {}
            for item in record.history.item:
                value = json.loads(item.value_json)
                if not isinstance(value, str):  # texts only make the file long
                    row[item.key or ".".join(item.nested_key)] = value
            rows.append(row)
        for update in (*record.config.update, *record.run.config.update):
            config[update.key or ".".join(update.nested_key)] = json.loads(update.value_json)
        if record.HasField("exit"):
            code = record.exit.exit_code
    config.pop("_wandb", None)
    return {"rows": rows, "config": config, "exit_code": code}


def torchtitan(step: int) -> dict:
    return {
        "loss_metrics/global_avg_loss": 8.0 / step,
        "throughput(tps)": 7000.0 + step,
        "time_metrics/end_to_end(s)": 0.75,
        "memory/max_reserved(GiB)": 60.5,
        "mfu(%)": 41.0,
        "tflops": 400.0,
    }


def megatron(step: int) -> dict:
    return {"lm loss": 9.0 / step, "learning-rate": 1e-4, "iteration-time": 2.0, "throughput": 180.0, "grad-norm": 0.5}


def write_with(writer, log, at) -> None:
    for step in range(1, STEPS + 1):
        for tag, value in log(step).items():
            at(writer, tag, value, step)
    writer.close()


def record_tensorboard() -> None:
    import numpy
    import tensorboardX
    from tensorboard.compat.proto.event_pb2 import Event
    from tensorboard.compat.proto.summary_pb2 import Summary
    from tensorboard.plugins.scalar.summary_v2 import scalar_pb
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

    # Times of steps are stated, so that what follows from them does not hang on the machine of the recording.
    start = 1_790_000_000.0

    def by_x(writer, tag, value, step):
        writer.add_scalar(tag, value, step, walltime=start + 2.0 * step)

    def by_event(writer, tag, value, step):
        summary = Summary(value=[Summary.Value(tag=tag, simple_value=value)])
        writer.add_event(Event(wall_time=start + 0.75 * step, step=step, summary=summary))

    def by_tensor(writer, tag, value, step):
        writer.add_event(Event(wall_time=start + step, step=step, summary=scalar_pb(tag, value)))

    def event_writer(folder):
        return EventFileWriter(folder)

    def x_with_more(folder):
        writer = tensorboardX.SummaryWriter(folder)
        writer.add_text("config", "tp=2")
        writer.add_histogram("weights", numpy.arange(100.0), 1)
        writer.add_image("sample", numpy.zeros((3, 64, 64), dtype=numpy.uint8), 1)
        return writer

    cases = {
        "torchtitan": (event_writer, torchtitan, by_event),
        "megatron": (tensorboardX.SummaryWriter, megatron, by_x),
        "transformers": (tensorboardX.SummaryWriter, transformers, by_x),
        "tensors": (event_writer, transformers, by_tensor),
        "mixed": (x_with_more, lambda step: {"train/loss": 5.0 / step, "val/loss": 1.0}, by_x),
    }
    for name, (make, log, at) in cases.items():
        folder = tempfile.mkdtemp()
        write_with(make(folder), log, at)
        (written,) = Path(folder).iterdir()
        target = HERE / f"events.out.tfevents.{name}"
        shutil.copyfile(written, target)
        (HERE / f"{target.name}.json").write_text(json.dumps(read_tensorboard(target), indent=1) + "\n")
        shutil.rmtree(folder)


def read_tensorboard(path: Path) -> list:
    """(tag, step, time, value) of every scalar, by TensorBoard's own loader."""
    from tensorboard.backend.event_processing.event_file_loader import EventFileLoader
    from tensorboard.util.tensor_util import make_ndarray

    found = []
    for event in EventFileLoader(str(path)).Load():
        for value in event.summary.value:  # the loader turns simple values into tensors, too
            array = make_ndarray(value.tensor)
            if array.ndim == 0 and array.dtype.kind == "f":
                found.append([value.tag, event.step, event.wall_time, float(array)])
    return found


if __name__ == "__main__":
    if len(sys.argv) > 1:
        write_wandb(sys.argv[1])
    else:
        for one in WANDB:
            record_wandb(one)
        record_tensorboard()
