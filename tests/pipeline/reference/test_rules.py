"""Rules are valid data: each cites a document, and a wrong one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.reference.rules import load_rules


def test_every_rule_cites_a_section_of_a_document_and_has_its_own_name() -> None:
    book = load_rules()
    assert len({rule.id for rule in book.rules}) == len(book.rules) > 40
    assert {rule.document for rule in book.rules} == set(book.documents)
    assert all(rule.section and rule.says for rule in book.rules)
    assert [step.id for step in book.steps] == ["fit", "batch", "throughput"]


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"when": "params <"}, "is no condition"),
        ({"advice": "colour = 'red'"}, "asks for colour"),
        ({"when": "tp = 8"}, "asks for tp"),
        ({"step": "dance"}, "unknown document or step"),
    ],
)
def test_a_wrong_rule_is_named(tmp_path: Path, changed: dict[str, str], words: str) -> None:
    rule = {
        "id": "odd",
        "set": "s",
        "document": "d",
        "section": "1",
        "step": "fit",
        "says": "x",
        "when": "TRUE",
        "advice": "tp = 1",
    } | changed
    path = tmp_path / "rules.toml"
    lines = [
        "[documents.d]",
        'title = "D"',
        'short = "d"',
        "[[step]]",
        'id = "fit"',
        'name = "F"',
        'question = "?"',
        "[[rule]]",
    ]
    path.write_text("\n".join([*lines, *(f'{name} = "{value}"' for name, value in rule.items())]))
    with pytest.raises(InputError, match=f"odd.*{words}"):
        load_rules(path)
