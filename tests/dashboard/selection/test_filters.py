from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.dashboard.selection.filters import ALL, UNKNOWN, Chip, Filters, Range, chips, parse_query, to_query
from sweepscope.schemas import vocab

_bounds = st.integers(1, 1024)
_ranges = (
    st.none() | st.builds(Range, _bounds) | st.builds(Range, st.none(), _bounds) | _bounds.map(lambda n: Range(n, n))
)
_tokens = st.none() | st.just(UNKNOWN) | st.integers(1, 2**30)


def _some(values: list[str]) -> st.SearchStrategy[tuple[str, ...]]:
    return st.lists(st.sampled_from(values), unique=True).map(tuple)


_filters = st.builds(
    Filters,
    origin=st.none() | st.sampled_from(sorted(vocab.ORIGIN)),
    accelerator=st.none() | st.text(min_size=1),
    seq_len=_tokens,
    gbs_tokens=_tokens,
    sweep=st.none() | st.just(ALL) | st.text(min_size=1),
    framework=_some(sorted(vocab.FRAMEWORK)),
    zero_stage=st.lists(st.integers(0, 3), unique=True).map(tuple),
    recompute=_some(sorted(vocab.RECOMPUTE)),
    precision=_some(sorted(vocab.PRECISION)),
    dp=_ranges,
    tp=_ranges,
    pp=_ranges,
    cp=_ranges,
    ep=_ranges,
)


@given(_filters)
def test_a_url_restores_every_filter(filters: Filters) -> None:
    assert parse_query(to_query(filters)) == (filters, ())


@given(
    st.dictionaries(st.sampled_from([*Filters.__dataclass_fields__, "model", "run"]), st.lists(st.text(), max_size=3))
)
def test_any_url_can_be_read(params: dict[str, list[str]]) -> None:
    filters, ignored = parse_query(params)
    assert parse_query(to_query(filters)) == (filters, ())
    assert all(text.partition("=")[0] in Filters.__dataclass_fields__ for text in ignored)


def test_a_fresh_visit_has_an_empty_url() -> None:
    assert to_query(Filters()) == {}
    assert parse_query({}) == (Filters(), ())


@pytest.mark.parametrize(
    "text", ["pp=x", "origin=guessed", "zero_stage=7", "framework=My trainer", "seq_len=-4", "tp=9-2"]
)
def test_a_value_that_means_nothing_is_named(text: str) -> None:
    name, _, value = text.partition("=")
    assert parse_query({name: [value]}) == (Filters(), (text,))


def test_parameters_of_other_widgets_are_left_alone() -> None:
    assert parse_query({"model": ["80B"], "nodes": ["16"], "run": ["a1"]}) == (Filters(), ())


def test_the_good_values_of_a_list_survive_the_bad_ones() -> None:
    filters, ignored = parse_query({"framework": ["nanotron", "MINE", "nanotron"]})
    assert filters.framework == ("nanotron",)
    assert ignored == ("framework=MINE",)


def test_each_chip_removes_its_own_filter_only() -> None:
    filters = Filters(origin="measured", seq_len=8192, zero_stage=(0, 1), pp=Range(16))
    assert [(chip.label, chip.without) for chip in chips(filters)] == [
        ("measured", filters.having("origin", None)),
        ("sequence 8,192", filters.having("seq_len", None)),
        ("ZeRO 0, 1", filters.having("zero_stage", None)),
        ("PP ≥ 16", filters.having("pp", None)),
    ]
    assert Filters(zero_stage=(0, 1)).having("zero_stage", None) == Filters()


def test_a_null_in_the_store_can_be_chosen() -> None:
    assert chips(Filters(accelerator=UNKNOWN)) == [Chip("accelerator", "accelerator unknown", Filters())]


@pytest.mark.parametrize(
    ("filters", "narrows"),
    [(Filters(), False), (Filters(origin="measured", sweep="x"), False), (Filters(pp=Range(2)), True)],
)
def test_picking_a_grid_is_not_narrowing_it(filters: Filters, narrows: bool) -> None:
    assert filters.narrows_layouts is narrows


@given(_bounds, _bounds)
def test_a_range_reads_what_it_writes(low: int, high: int) -> None:
    span = Range(min(low, high), max(low, high))
    assert Range.parse(str(span)) == span
