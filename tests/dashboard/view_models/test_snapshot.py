"""Levels by category and the flame graph of what was alive."""

from __future__ import annotations

import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.dashboard.view_models import snapshot


def changes(*rows: tuple[str, int, int]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema={"category": pl.String, "point": pl.Int64, "change_bytes": pl.Int64}, orient="row")


def test_levels_are_the_sums_of_changes_and_unnamed_categories_are_one() -> None:
    points, levels = snapshot.category_levels(
        changes(("activations", 2, 5), ("workspace", 2, 1), ("activations", 7, -2), ("unknown", 9, 3))
    )
    assert points == [2, 7, 9]
    assert levels == {"activations": [5, 3, 3], "other": [1, 1, 4]}


def test_nothing_gives_nothing() -> None:
    assert snapshot.category_levels(changes()) == ([], {})
    assert snapshot.flame(alive()) == []


def alive(*rows: tuple[str, str | None, int]) -> pl.DataFrame:
    return pl.DataFrame(
        rows, schema={"category": pl.String, "stack": pl.String, "bytes": pl.Int64}, orient="row"
    ).with_columns(frame=pl.lit(None, pl.String))


def test_frames_hang_below_their_callers() -> None:
    nodes = snapshot.flame(
        alive(
            ("activations", "empty < forward < main", 60),
            ("activations", "mul < forward < main", 30),
            ("unknown", None, 10),
        )
    )
    by_id = {node.id: node for node in nodes}
    paths = {}
    for node in nodes:
        path, at = [node.label], node
        while at.parent:
            at = by_id[at.parent]
            path.append(at.label)
        paths["/".join(reversed(path))] = node.bytes
    assert paths == {
        "alive": 100,
        "alive/activations": 90,
        "alive/activations/main": 90,
        "alive/activations/main/forward": 90,
        "alive/activations/main/forward/empty": 60,
        "alive/activations/main/forward/mul": 30,
        "alive/unknown": 10,
        "alive/unknown/no stack": 10,
    }


def test_small_frames_of_a_caller_are_put_together() -> None:
    small = [("activations", f"op{at} < main", 1) for at in range(5)]
    nodes = snapshot.flame(alive(("activations", "big < main", 9_995), *small))
    assert [(node.label, node.bytes) for node in nodes][-1] == ("5 smaller", 5)
    assert len(nodes) == 5


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["activations", "unknown", "gradients"]),
            st.none() | st.lists(st.sampled_from("abc"), min_size=1, max_size=4).map(" < ".join),
            st.integers(1, 10_000),
        ),
        min_size=1,
        max_size=30,
    )
)
def test_children_never_exceed_their_parent(rows: list[tuple[str, str | None, int]]) -> None:
    nodes = snapshot.flame(alive(*rows))
    inside: dict[str, int] = {}
    for node in nodes:
        inside[node.parent] = inside.get(node.parent, 0) + node.bytes
    assert all(inside.get(node.id, 0) <= node.bytes for node in nodes)
    assert inside[nodes[0].id] == nodes[0].bytes == sum(size for _, _, size in rows)
    assert len({node.id for node in nodes}) == len(nodes)


def test_bytes_by_drawn_category() -> None:
    rows = alive(("workspace", None, 1), ("gradients", None, 4), ("unknown", None, 2))
    assert snapshot.by_category(rows) == [("gradients", 4), ("other", 3)]
