"""Deep nesting ends libyaml's loader with the process: such a text is for the other one."""

from __future__ import annotations

import pytest
import yaml

from sweepscope.pipeline.io.yaml_text import safe_loader

DEEP = {"lists": "[" * 50_000, "mappings": "{a: " * 50_000, "dashes": "- " * 50_000, "questions": "? " * 50_000}
INDENTED = "\n".join(" " * depth + "a:" for depth in range(3_000))


@pytest.mark.parametrize("what", DEEP)
def test_what_nests_deep_is_an_error(what: str) -> None:
    with pytest.raises((RecursionError, yaml.YAMLError)):
        yaml.load(DEEP[what], Loader=safe_loader(DEEP[what]))  # noqa: S506 -- both are safe


def test_indentation_nests_too() -> None:
    assert safe_loader(INDENTED) is yaml.SafeLoader


@pytest.mark.skipif(not hasattr(yaml, "CSafeLoader"), reason="PyYAML was built without libyaml")
def test_a_configuration_is_read_by_the_fast_one() -> None:
    text = "".join(f"key{number}: [1, {{a: b}}]\n" for number in range(300))
    assert safe_loader(text) is yaml.CSafeLoader
    assert yaml.load(text, Loader=safe_loader(text))["key7"] == [1, {"a": "b"}]  # noqa: S506 -- both are safe
