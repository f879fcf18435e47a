"""Links give a file several names; it goes by one of them."""

from __future__ import annotations

from pathlib import Path

import polars as pl

from sweepscope.pipeline.ingest.linked_files import KNOWN, Named, deduplicate_links
from sweepscope.pipeline.io.files import Entry, list_files


def known(*rows: tuple[str, str | None]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=KNOWN, orient="row")


def names(named: Named) -> dict[str, str | None]:
    return {entry.path: entry.linked_path for entry in named.entries}


OWN = Entry("/a/run/x.log", 1, 1.0)
LINK = Entry("/b/run/x.log", 1, 1.0, linked_path="/a/run/x.log")
OTHER = Entry("/c/run/x.log", 1, 1.0, linked_path="/a/run/x.log")


def test_nothing_is_nothing() -> None:
    assert deduplicate_links([], known()) == Named([], {})


def test_without_links_every_path_stands_once() -> None:
    assert deduplicate_links([OWN, OWN], known()) == Named([OWN], {})


def test_its_own_name_goes_before_a_link_in_either_order() -> None:
    for listed in ([OWN, LINK], [LINK, OWN]):
        named = deduplicate_links(listed, known())
        assert names(named) == {OWN.path: None}
        assert named.other_names == {OWN.path: LINK.path}


def test_of_two_links_the_first() -> None:
    assert names(deduplicate_links([LINK, OTHER], known())) == {LINK.path: OWN.path}


def test_what_the_store_knows_keeps_its_name() -> None:
    by_own, by_link = known((OWN.path, None)), known((LINK.path, OWN.path))
    assert names(deduplicate_links([LINK], by_own)) == {OWN.path: None}
    assert names(deduplicate_links([OWN, LINK], by_link)) == {LINK.path: OWN.path}


def test_a_new_file_of_a_known_directory_stays_with_the_others() -> None:
    new = Entry("/b/run/new.log", 1, 1.0, linked_path="/a/run/new.log")
    assert names(deduplicate_links([LINK, new], known((OWN.path, None)))) == {OWN.path: None, "/a/run/new.log": None}


def test_a_link_that_was_read_before_is_found_from_the_other_end(tmp_path: Path) -> None:
    (tmp_path / "a" / "run").mkdir(parents=True)
    (tmp_path / "a" / "run" / "x.log").write_text("x")
    (tmp_path / "b").symlink_to("a")
    own, link = str(tmp_path / "a" / "run" / "x.log"), str(tmp_path / "b" / "run" / "x.log")
    listed = list(list_files(str(tmp_path / "a")))
    assert names(deduplicate_links(listed, known((link, own)))) == {link: own}
    (tmp_path / "b").unlink()
    assert names(deduplicate_links(listed, known((link, own)))) == {own: None}
