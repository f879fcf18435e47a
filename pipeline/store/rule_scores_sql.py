"""The documents' rules as SQL, for the view `rule_scores`: their conditions are SQL already, and the store has none."""

from __future__ import annotations

from sweepscope.pipeline.reference.rules import load_rules
from sweepscope.schemas.core import ddl

_KEY = "origin, model, num_nodes, num_gpus, seq_len, gbs_tokens, accelerator, run_id, tokens_per_s_per_gpu"
_NAMES, _LAYOUTS = "/* rules */", "/* layouts */"


def with_rules(view: str) -> str:
    """A view's text with the rules in place of its marks; other views stay as they are."""
    if _NAMES not in view:
        return view
    book = load_rules()
    names = [
        f"({', '.join(map(ddl.literal, (rule.id, rule.set, book.title(rule), rule.section, rule.step, rule.says)))})"
        for rule in book.rules
    ]
    layouts = [
        f"SELECT {ddl.literal(rule.id)} AS rule_id, {_KEY}, coalesce(({rule.advice}), false) AS follows\n"
        f"    FROM asked WHERE ({rule.when}) AND ({rule.among})"
        for rule in book.rules
    ]
    return view.replace(_NAMES, ",\n        ".join(names)).replace(_LAYOUTS, "\n    UNION ALL\n    ".join(layouts))
