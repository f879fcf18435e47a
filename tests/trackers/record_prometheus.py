"""Write the range exports beside this file anew, with Prometheus itself (Debian's package `prometheus`).

    apt-get install prometheus
    python tests/trackers/record_prometheus.py

dcgm-exporter's fields of two hosts go into a database by `promtool tsdb create-blocks-from openmetrics`;
`prometheus/NAME.json` is what `/api/v1/query_range` or `promtool query range -o json` answers over it, and
`samples.csv` the samples as `promtool tsdb dump` has them: name, host, GPU, milliseconds, value.
Recorded with prometheus 2.42.0; the values of the fields are made up, the files are Prometheus's own.
"""

# mypy: ignore-errors

from __future__ import annotations

import contextlib
import csv
import re
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

HERE = Path(__file__).parent / "prometheus"
START, STEP_S, COUNT, ADDRESS = 1_790_000_010, 15, 20, "127.0.0.1:39090"
FIELDS = {"DCGM_FI_DEV_FB_USED": 40_000, "DCGM_FI_DEV_GPU_UTIL": 47, "DCGM_FI_DEV_POWER_USAGE": 412.5}
QUERIES = {
    "all": '{__name__=~"DCGM_FI_DEV_.*"}',
    "one_field": "DCGM_FI_DEV_FB_USED",
    "one_host": '{__name__=~"DCGM_FI_DEV_.*",Hostname="node1"}',
    "one_gpu": '{__name__=~"DCGM_FI_DEV_.*",Hostname="node0",gpu="1"}',
}


def openmetrics() -> str:
    lines = []
    for name, base in FIELDS.items():
        lines.append(f"# TYPE {name} gauge")
        for host in range(2):
            for gpu in range(2):
                about = f'gpu="{gpu}",UUID="GPU-{gpu}{host}",modelName="NVIDIA H100 80GB HBM3",Hostname="node{host}"'
                lines += [
                    f"{name}{{{about}}} {base + at + gpu + host / 2} {START + STEP_S * at}" for at in range(COUNT)
                ]
    return "\n".join([*lines, "# EOF", ""])


def asked(query: str) -> str:
    window = {"query": query, "start": START, "end": START + STEP_S * (COUNT - 1), "step": STEP_S}
    with urllib.request.urlopen(f"http://{ADDRESS}/api/v1/query_range?{urllib.parse.urlencode(window)}") as answer:
        return answer.read().decode()


def by_promtool() -> str:
    window = [f"--start={START}", f"--end={START + STEP_S * (COUNT - 1)}", f"--step={STEP_S}s"]
    command = ["promtool", "query", "range", "-o", "json", *window, f"http://{ADDRESS}", QUERIES["all"]]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def samples(database: Path) -> list:
    dumped = subprocess.run(["promtool", "tsdb", "dump", database], check=True, capture_output=True, text=True).stdout
    found = []
    for line in dumped.splitlines():
        labels, value, moment = re.fullmatch(r"\{(.*)\} (\S+) (\d+)", line).groups()
        about = dict(re.findall(r'(\w+)="([^"]*)"', labels))
        found.append((about["__name__"], about["Hostname"], about["gpu"], moment, value))
    return sorted(found)


def main() -> None:
    HERE.mkdir(exist_ok=True)
    folder = Path(tempfile.mkdtemp())
    (folder / "metrics.txt").write_text(openmetrics())
    (folder / "prometheus.yml").write_text("global: {}\n")
    blocks = ["promtool", "tsdb", "create-blocks-from", "openmetrics", folder / "metrics.txt", folder / "data"]
    subprocess.run(blocks, check=True, capture_output=True)
    options = [f"--config.file={folder}/prometheus.yml", f"--storage.tsdb.path={folder}/data"]
    options += [f"--web.listen-address={ADDRESS}", "--storage.tsdb.retention.time=100y"]
    server = subprocess.Popen(["prometheus", *options], stderr=subprocess.DEVNULL)
    try:
        for _ in range(100):
            with contextlib.suppress(urllib.error.URLError):
                urllib.request.urlopen(f"http://{ADDRESS}/-/ready")
                break
            time.sleep(0.2)
        for name, query in QUERIES.items():
            (HERE / f"{name}.json").write_text(asked(query) + "\n")
        (HERE / "promtool.json").write_text(by_promtool())
    finally:
        server.terminate()
        server.wait()
    with (HERE / "samples.csv").open("w", newline="") as file:  # only a database that was opened once can be dumped
        csv.writer(file, lineterminator="\n").writerows(samples(folder / "data"))


if __name__ == "__main__":
    main()
