"""Operators that are neither products nor attention: their counts, and laws that hold of them."""

from __future__ import annotations

from sweepscope.pipeline.estimate.physics.elementwise import OPERATORS, usual_bytes


def test_a_fused_layer_moves_what_its_inputs_and_results_are() -> None:
    # Two norms (read, write) and two residuals (two read, one written); queries and a share of keys; both halves and
    # their product; of 2 bytes each.
    assert usual_bytes("hidden") == 2 * 4 + 2 * 6
    assert usual_bytes("query") == 6
    assert usual_bytes("inner") == 6


def test_fusing_never_moves_or_keeps_more() -> None:
    for name, operator in OPERATORS.items():
        assert operator.compiled in operator.forms or name == "residual"
        if "eager" not in operator.forms:
            continue
        eager = operator.forms["eager"]
        # A loss that is sharded over the vocabulary runs operator by operator, too.
        for form in (form for word, form in operator.forms.items() if word != "sharded"):
            assert form.moved <= eager.moved, name
            assert form.kept <= eager.kept, name
