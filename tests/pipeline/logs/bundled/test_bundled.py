"""Dialect files that come with sweepscope: sound, cited, read late, and replaced by a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.ingest.dialect_files import in_force, remember
from sweepscope.pipeline.ingest.parser_versions import current_versions
from sweepscope.pipeline.logs import bundled, registry
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.registry import DIALECTS, IN_CODE, TABLES
from sweepscope.pipeline.store.home import Home
from sweepscope.schemas.vocab import FRAMEWORK
from tests.paths import ROOT


def test_the_list_names_every_file() -> None:
    found = {path.stem for path in (ROOT / "pipeline" / "logs" / "bundled").glob("*.toml")}
    assert sorted(bundled.NAMES) == sorted(found)
    assert [dialect.name for dialect in DIALECTS] == [*(dialect.name for dialect in IN_CODE), *bundled.NAMES]


@pytest.mark.parametrize("name", bundled.NAMES)
def test_each_is_a_file_that_a_user_could_have_written(name: str) -> None:
    text = bundled.text_of(name)
    taken = {*(dialect.name for dialect in IN_CODE), *(table.name for table in TABLES)}
    document = read_document(text, f"{name}.toml", reserved=taken, others=IN_CODE)
    trusted = read_document(text, f"{name}.toml", is_trusted=True)
    assert [rule.expression for rule in document.steps] == [rule.expression for rule in trusted.steps]
    assert (document.name, name in FRAMEWORK) == (name, True)
    assert "\n# Formats: " in text, "name the files that print the lines"


def test_signatures_are_of_one_dialect_only() -> None:
    documents = [read_document(bundled.text_of(name), name, is_trusted=True) for name in bundled.NAMES]
    literals = [literal for document in documents for literal in document.signature]
    assert len(literals) == len(set(literals))


def test_files_are_read_when_a_dialect_is_asked_for() -> None:
    dialects = registry._Dialects()
    assert "_all" not in vars(dialects)
    assert len(dialects) == len(DIALECTS)
    assert "_all" in vars(dialects)


def test_a_file_of_the_users_replaces_the_one_of_that_name(tmp_path: Path) -> None:
    home, name = Home(tmp_path / "home"), bundled.NAMES[0]
    own = tmp_path / "own.toml"
    own.write_text(bundled.text_of(name) + "# mine\n")
    remember(home, [str(own)])
    dialects = in_force(home).dialects
    (mine,) = [dialect for dialect in dialects if dialect.name == name]
    assert mine.is_declared
    assert len(dialects) == len(DIALECTS)
    assert current_versions(dialects)[name] != current_versions()[name]


def test_a_version_follows_the_content() -> None:
    name = bundled.NAMES[0]
    before = bundled._compiled(name, bundled.text_of(name))
    after = bundled._compiled(name, bundled.text_of(name) + "# more\n")
    assert before.revision != after.revision
    versions = [current_versions([*IN_CODE, dialect]) for dialect in (before, after)]
    changed = {key for key in versions[0] if versions[0][key] != versions[1][key]}
    assert changed - {"inferred"} == {name, ""}, "what is inferred hangs on what no dialect knows"
