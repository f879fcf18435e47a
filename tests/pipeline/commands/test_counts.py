"""Counts with suffixes: one reading for every command that takes one."""

from __future__ import annotations

import argparse

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.__main__ import VERBS, build_parser, main
from sweepscope.pipeline.commands.counts import count, read_count, tokens_of_a_batch


@pytest.mark.parametrize(
    ("text", "whole", "binary"),
    [
        ("7", 7, 7),
        ("1_048_576", 1_048_576, 1_048_576),
        ("1,048,576", 1_048_576, 1_048_576),
        ("4k", 4_000, 4_096),
        ("4K", 4_000, 4_096),
        ("2M", 2_000_000, 2_097_152),
        ("2Mi", 2_097_152, 2_097_152),
        ("1.5M", 1_500_000, 1_572_864),
        ("3e3", 3_000, 3_000),
        ("15T", 15 * 10**12, 15 * 2**40),
    ],
)
def test_counts_of_anything_and_of_tokens(text: str, whole: int, binary: int) -> None:
    assert (count(text), tokens_of_a_batch(text)) == (whole, binary)


@pytest.mark.parametrize("text", ["", "k", "2i", "1.5", "2X", "two", "nan", "1e99", "0x10", "2 000", "9999999999G"])
def test_what_is_no_count_is_named(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        count(text)


@given(st.integers(0, 2**63 - 1))
def test_whole_numbers_are_read_however_they_are_grouped(number: int) -> None:
    assert read_count(str(number)) == read_count(f"{number:,}") == read_count(f"{number:_}") == number


def test_no_argument_that_counts_takes_plain_digits_only() -> None:
    """Numbers that name something (a port, a seed, a device) and numbers of processes are no counts of a sweep."""
    names = {"--port", "--dagster-port", "--seed", "--device", "--workers"}
    plain = {
        option
        for action in build_parser(VERBS)._actions
        if isinstance(action, argparse._SubParsersAction)
        for verb in action.choices.values()
        for one in verb._actions
        if one.type is int
        for option in one.option_strings[:1]
    }
    assert plain <= names, plain


def test_a_search_takes_them_and_names_a_wrong_one(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["search", "--model", "Llama 3 8B", "--nodes", "1", "--accelerator", "H100-SXM-80GB", "--top", "1"]
    assert main([*words, "--seq-len", "4k", "--gbs-tokens", "256k", "--json"]) == 0
    suffixed = capsys.readouterr().out
    assert main([*words, "--seq-len", "4096", "--gbs-tokens", "262_144", "--json"]) == 0
    assert capsys.readouterr().out == suffixed
    with pytest.raises(SystemExit) as stopped:
        main([*words, "--seq-len", "4096", "--gbs-tokens", "2X"])
    assert stopped.value.code == 2
    assert "argument --gbs-tokens: not a count: '2X'" in capsys.readouterr().err
