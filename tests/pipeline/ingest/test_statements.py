"""What the user states of runs whose logs do not say it: in the home, or in files beside and above the runs."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.ingest.batch import Tables, parse_batch
from sweepscope.pipeline.ingest.discover import changed
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.ingest.plan import find
from sweepscope.pipeline.ingest.statements import Stated, beside, checked, checked_names, of_home, resolved, state
from sweepscope.pipeline.logs.declared.statements import NAME, Statement, read_statements, text_of
from sweepscope.pipeline.store.home import Home
from sweepscope.schemas.registry import TABLES
from tests.pipeline.ingest_in_memory import LATER

STEP = (
    "[rank 0] Step: {n}     | Loss: 7.{n}502 | Global batch size:  131.07K | Tokens/s:  52.00K | "
    "Tokens/s/GPU:   6.50K | Tokens: {n}31.07K | MFU:  20.01% | Memory usage:  21.50GB\n"
)
LOG = "".join(STEP.format(n=n) for n in range(1, 7))
CONFIG = {
    "distributed": {"tp_size": 4, "cp_size": 1, "pp_size": 1, "dp_size": 2},
    "model": {"name": "meta-llama/Llama-3.2-1B"},
    "training": {"total_train_steps": 6, "seq_length": 4096, "micro_batch_size": 4, "gradient_accumulation_steps": 4},
}
RUNS = ("sweep/tp4_a", "sweep/tp8_a", "sweep/tp8_b", "other/tp8_a")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("stated")
    for run in RUNS:
        (root / run).mkdir(parents=True)
        (root / run / "train.log").write_text(LOG)
        (root / run / "config.json").write_text(json.dumps(CONFIG))
    return root


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def tables(home: Home, root: Path) -> Tables:
    return parse_batch(find([str(root)], statements=of_home(home)), now=LATER)


def values(home: Home, root: Path, column: str) -> dict[str, object]:
    """A column of `runs` by the run's folder below `root`."""
    runs = tables(home, root)["runs"]
    return {str(Path(run).relative_to(root)): value for run, value in runs.select("run_dir", column).iter_rows()}


def test_what_is_stated_of_a_folder_fills_the_runs_in_it_and_what_follows(home: Home, tree: Path) -> None:
    assert values(home, tree, "accelerator") == dict.fromkeys(RUNS)
    state(home, [str(tree / "sweep")], Stated(checked(["accelerator=H100-SXM-80GB", "params=1_235_814_400"])))
    after = tables(home, tree)
    mine = after["runs"].filter(pl.col("sweep") == "sweep")
    assert mine["accelerator"].to_list() == ["H100-SXM-80GB"] * 3
    assert mine["mfu"].to_list() == pytest.approx(
        (mine["tokens_per_s_per_gpu"] * mine["flops_per_token"] / 989e12).to_list()
    )
    assert min(mine["mfu"].to_list()) > 0.04
    assert after["runs"].filter(pl.col("sweep") != "sweep")["accelerator"].to_list() == [None]
    rows = after["settings"].filter(setting_source="stated", name="accelerator")
    assert set(rows.select("value", "is_used", "stated_in").rows()) == {("H100-SXM-80GB", True, str(home.statements))}


def test_logs_and_configurations_count_more_unless_it_overrides(home: Home, tree: Path) -> None:
    state(home, [str(tree)], Stated({"mbs": "8", "cluster": "alps"}))
    assert set(values(home, tree, "mbs").values()) == {4}
    said = tables(home, tree)["events"].filter(kind="config_conflict")["text"].unique().to_list()
    assert "mbs: stated says 8, config_file says 4; the latter counts" in said
    state(home, [str(tree / "other")], Stated({"mbs": "8"}, is_override=True))
    assert values(home, tree, "mbs") == {**dict.fromkeys(RUNS, 4), "other/tp8_a": 8}
    state(home, [str(tree / "other")], Stated(withdrawn=["mbs"]))
    assert set(values(home, tree, "mbs").values()) == {4}
    assert set(values(home, tree, "cluster").values()) == {"alps"}


def test_a_file_beside_or_above_the_runs_states_the_same(home: Home, tmp_path: Path) -> None:
    for run in RUNS:
        (tmp_path / run).mkdir(parents=True)
        (tmp_path / run / "train.log").write_text(LOG)
    (tmp_path / NAME).write_text(
        'cluster = "alps"\ntorch_version = "2.6"\n\n[[runs]]\nmatch = "**/tp8_*"\ntorch_version = "2.7"\n'
    )
    (tmp_path / "other" / NAME).write_text('cluster = "jean-zay"\n')
    assert values(home, tmp_path, "torch_version") == {**dict.fromkeys(RUNS, "2.7"), "sweep/tp4_a": "2.6"}
    assert values(home, tmp_path, "cluster") == {**dict.fromkeys(RUNS, "alps"), "other/tp8_a": "jean-zay"}
    # The file above counts as well where only a part of the sweep is given.
    runs = parse_batch(find([str(tmp_path / "sweep" / "tp8_a")]), now=LATER)["runs"]
    assert runs.select("cluster", "torch_version").rows() == [("alps", "2.7")]
    files = tables(home, tmp_path)["files"].filter(kind="statements")
    assert files["status"].to_list() == ["parsed"] * 2
    stating = {one.file for one in beside([str(tmp_path / "other")])}
    assert stating == {str(tmp_path / NAME), str(tmp_path / "other" / NAME)}


def test_a_damaged_file_stops_an_ingest_and_not_the_watcher(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOG)
    (tmp_path / NAME).write_text('# of all\nclusterr = "alps"\n')
    with pytest.raises(UsageError, match=r"sweepscope\.toml:2: clusterr is no column .* Did you mean cluster"):
        find([str(tmp_path)])
    found = find([str(tmp_path)], are_watched=True)
    files = parse_batch(found, now=LATER)["files"].filter(kind="statements")
    assert files["status"].to_list() == ["rejected"]
    assert "clusterr is no column" in files["error"][0]


def test_only_runs_of_which_something_else_is_stated_are_read_again(home: Home, tree: Path) -> None:
    def pending(ledger: pl.DataFrame) -> list[str]:
        found = find([str(tree)], statements=of_home(home))
        rows = changed(found, TABLES["files"].conform(ledger), versions=current_versions())
        return sorted(str(Path(path).parent.relative_to(tree)) for path in rows.filter(kind="log")["path"])

    ledger = tables(home, tree)["files"]
    # A home of before has no such column; nothing is stated in it.
    assert pending(ledger.drop("stated")) == []
    state(home, [str(tree / "sweep" / "tp8_a")], Stated({"cluster": "alps"}))
    assert pending(ledger) == ["sweep/tp8_a"]
    stated = tables(home, tree)["files"]
    assert pending(stated) == []
    state(home, [str(tree / "sweep" / "tp8_a")], Stated(withdrawn=["cluster"]))
    assert pending(stated) == ["sweep/tp8_a"]


def test_a_table_with_one_run_per_row_is_completed_too(home: Home, tmp_path: Path) -> None:
    bench = Path(__file__).parents[2] / "golden" / "nanotron-benchmark" / "mixed" / "bench.csv"
    (tmp_path / "bench.csv").write_bytes(bench.read_bytes())
    before = tables(home, tmp_path)["runs"]
    state(home, [str(tmp_path)], Stated({"cluster": "alps", "mbs": "64"}))
    after = tables(home, tmp_path)
    assert after["runs"].drop("cluster").equals(before.drop("cluster"))
    assert after["runs"]["cluster"].unique().to_list() == ["alps"]
    used = after["settings"].filter(setting_source="stated").group_by("name").agg(pl.col("is_used").any())
    assert dict(used.iter_rows()) == {"cluster": True, "mbs": False}
    state(home, [str(tmp_path)], Stated({"mbs": "64"}, is_override=True))
    assert tables(home, tmp_path)["runs"]["mbs"].unique().to_list() == [64]


FACTS = st.tuples(
    st.sampled_from(["", "sweep", "sweep/tp8_a", "other"]),
    st.sampled_from(
        [
            ("cluster", "alps"),
            ("cluster", "jean-zay"),
            ("num_layers", "16"),
            ("num_layers", "24"),
            ("torch_version", "2.7"),
        ]
    ),
)


@settings(max_examples=12, deadline=None)
@given(facts=st.lists(FACTS, min_size=1, max_size=4, unique_by=lambda fact: (fact[0], fact[1][0])), data=st.data())
def test_stating_changes_no_other_run_in_any_order_and_withdrawing_gives_the_rows_back(
    tree: Path, tmp_path_factory: pytest.TempPathFactory, facts: list[tuple[str, tuple[str, str]]], data: st.DataObject
) -> None:
    home, other = (Home(tmp_path_factory.mktemp("home")) for _ in range(2))
    before = tables(home, tree)
    for place, (name, value) in facts:
        state(home, [str(tree / place)], Stated({name: value}))
    for place, (name, value) in data.draw(st.permutations(facts)):
        state(other, [str(tree / place)], Stated({name: value}))
    assert of_home(home) == tuple(_moved(one, home) for one in of_home(other))
    after = tables(home, tree)
    touched = {run for run in RUNS for place, _ in facts if f"{run}/".startswith(f"{place}/" if place else "")}
    for name in ("runs", "steps", "settings"):
        ids = before["runs"].filter(~pl.col("run_dir").is_in([str(tree / run) for run in touched]))["run_id"].to_list()
        same = (frames[name].filter(pl.col("run_id").is_in(ids)) for frames in (before, after))
        assert next(same).equals(next(same))
    # The nearest folder's statement counts.
    for run in touched:
        mine = [
            (len(place), name, value)
            for place, (name, value) in facts
            if f"{run}/".startswith(f"{place}/" if place else "")
        ]
        row = after["runs"].filter(run_dir=str(tree / run)).row(0, named=True)
        nearest = {name: value for _, name, value in sorted(mine)}
        assert {name: str(row[name]) for name in nearest} == nearest
    for place, (name, _) in data.draw(st.permutations(facts)):
        state(home, [str(tree / place)], Stated(withdrawn=[name]))
    again = tables(home, tree)
    assert {name: frame.equals(before[name]) for name, frame in again.items()} == dict.fromkeys(before, True)


def _moved(one: Statement, home: Home) -> Statement:
    return Statement(one.folder, one.values, one.match, one.is_override, str(home.statements), one.is_of_home)


def test_the_order_in_a_file_does_not_matter() -> None:
    tables_ = [
        '[[runs]]\nmatch = "tp*"\ngbs = 1\n',
        '[[runs]]\nmatch = "tp8_*"\ngbs = 2\n',
        '[[runs]]\nmatch = "*_a"\ngbs = 3\n',
    ]
    for order in (tables_, tables_[::-1]):
        found = read_statements("\n".join(order), f"/s/{NAME}", "/s")
        assert [
            _value(resolved(found, f"/s/{path}")) for path in ("tp4_b/x.log", "tp8_b/x.log", "tp8_a/x.log", "q/x")
        ] == [
            "1",
            "2",
            "2",
            None,
        ]


def _value(text: str | None) -> str | None:
    return json.loads(text)[0][1] if text else None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", None),
        ('accelerator = "H10O"', r":1: accelerator 'H10O' is not known. Did you mean"),
        ("num_gpus = 0", r":1: num_gpus is 0. Write a number above 0"),
        ('num_gpus = "8"', r":1: num_gpus is '8'. Write a number above 0"),
        ("num_gpus = 1e30", r":1: num_gpus is 1e\+30"),
        ("zero_stage = 0", None),
        ("zero_stage = -1", r":1: zero_stage is -1"),
        ("sequence_parallel = true", None),
        ('sequence_parallel = "maybe"', r":1: sequence_parallel is 'maybe'. Write true or false"),
        ('precision = "float33"', r":1: precision 'float33' is not known"),
        ('cluster = " "', r":1: cluster is empty"),
        ("mfu = 0.4", r":1: mfu is no column that may be stated"),
        ("mem_peak_allocated_bytes = 4", r":1: mem_peak_allocated_bytes is measured"),
        ("loss = 2.0", r":1: loss is no column that may be stated"),
        ('[[runs]]\nmatch = "/abs"\ngbs = 1', r":2: match is '/abs'. Write it relative"),
        ('[[runs]]\nmatch = "a"\ngbs = 1\n[[runs]]\nmatch = "a"\ngas = 1', r":4: the same runs as above \(a\)"),
        ('[[runs]]\nmatch = "a"', r":1: it states nothing"),
        ('[[runs]]\nmatch = "a"\nfolder = "/x"\ngbs = 1', r":3: folder is not known here"),
        ('override = "yes"\ngbs = 1', r":1: override is 'yes'. Write true or false"),
        ("runs = 3", r"Write \[\[runs\]\]"),
        ("gbs = ", "is not TOML"),
    ],
)
def test_a_statement_that_cannot_be_is_refused_with_its_line(text: str, reason: str | None) -> None:
    if reason is None:
        read_statements(text, "/s/sweepscope.toml", "/s")
        return
    with pytest.raises(UsageError, match=reason):
        read_statements(text, "/s/sweepscope.toml", "/s")


@pytest.mark.parametrize(
    ("given_", "reason"),
    [
        (["acelerator=H100"], "--set acelerator=H100: acelerator is no column .* Did you mean accelerator"),
        (["cluster"], "--set cluster: what is stated"),
        (["gbs=many"], "gbs is 'many'. Write a number above 0"),
        (["gbs=4", "gbs=8"], "two values of gbs: 4 and 8"),
    ],
)
def test_an_argument_that_states_nothing_possible_is_refused(given_: list[str], reason: str) -> None:
    with pytest.raises(UsageError, match=reason):
        checked(given_)
    with pytest.raises(UsageError, match=r"--unset clster: .* Did you mean cluster"):
        checked_names(["clster"])


@given(
    st.dictionaries(
        st.tuples(st.sampled_from(["/a", "s3://b/c", "/a b/ü"]), st.sampled_from(["", "x*"]), st.booleans()),
        st.sampled_from([{"gbs": "4"}, {"cluster": "64"}, {"sequence_parallel": "true", "model": 'my "7b"'}]),
        min_size=1,
    )
)
def test_the_file_of_a_home_holds_what_was_stated(stated: Mapping[tuple[str, str, bool], dict[str, str]]) -> None:
    statements = [
        Statement(folder, dict(found), match, is_override, "/home/x", is_of_home=True)
        for (folder, match, is_override), found in stated.items()
    ]
    read = read_statements(text_of(statements), "/home/x")
    assert sorted(read, key=lambda one: one.scope) == sorted(statements, key=lambda one: one.scope)
