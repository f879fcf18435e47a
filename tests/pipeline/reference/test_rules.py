"""Rules are valid data: each cites a document, and a wrong one is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from sweepscope.pipeline.errors import InputError
from sweepscope.pipeline.reference.rules import load_rules, rules_of


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


OWN_RULE = """
off = ["chapter-8"]
[[rule]]
id = "rack-tp"
step = "throughput"
says = "On our racks TP 4"
when = "num_nodes > 1"
advice = "tp = 4"
[[rule]]
id = "slides-tp"
step = "throughput"
says = "TP last"
advice = "tp = 1"
"""


def test_rules_of_ones_own_join_replace_and_leave_out(tmp_path: Path) -> None:
    assert rules_of(tmp_path) == load_rules()
    (tmp_path / "rules.toml").write_text(OWN_RULE)
    book = rules_of(tmp_path)
    by_id = {rule.id: rule for rule in book.rules}
    assert by_id["rack-tp"].when == "num_nodes > 1"
    assert book.shorts[by_id["rack-tp"].document] == "your own"
    assert by_id["slides-tp"].says == "TP last"
    assert "chapter-8" not in by_id
    assert len(book.rules) == len(load_rules().rules)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[[rule]]\nid = 'x'\nstep = 'fit'\nsays = 's'", "rule x needs texts"),
        ("[[rule]]\nid = 'x'\nstep = 'fit'\nsays = 's'\nadvice = 'tp = 1'\ncolour = 'red'", "rule x needs texts"),
        ("[[rule]]\nid = 'x'\nstep = 'dance'\nsays = 's'\nadvice = 'tp = 1'", "x names an unknown document or step"),
        ("[[rule]]\nid = 'x'\nstep = 'fit'\nsays = 's'\nadvice = 'hue = 1'", "asks for hue"),
        ("off = ['chapter-9999']", "off names no bundled rule: chapter-9999"),
        ("rule = 'none", "not readable as TOML"),
        ("rule = ['tp = 8']", "needs texts"),
    ],
)
def test_a_wrong_rule_of_ones_own_is_named_with_its_file(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "rules.toml").write_text(text)
    with pytest.raises(InputError, match=rf"rules\.toml.*{words}"):
        rules_of(tmp_path)
