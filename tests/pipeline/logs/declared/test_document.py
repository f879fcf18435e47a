"""Faults of a dialect file: one line with file, line number and remedy."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sweepscope.pipeline.commands.dialect import example
from sweepscope.pipeline.errors import UsageError
from sweepscope.pipeline.logs.declared.compile import compile_document
from sweepscope.pipeline.logs.declared.document import read_document
from sweepscope.pipeline.logs.registry import IN_CODE
from tests.acme import DIALECT

HEAD = 'name = "acme"\nsignature = ["[acme-trainer]"]\n'
STEP = '[[step]]\nline = "step {step} loss {loss}"\n'


def fault(text: str) -> str:
    with pytest.raises(UsageError) as caught:
        read_document(text, "acme.toml", reserved={"megatron"}, others=IN_CODE)
    message = str(caught.value)
    assert "\n" not in message
    return message


FAULTS = [
    ("name =", r"acme.toml is not TOML: Invalid value (at end of document)"),
    (f"{HEAD}[[step]]\nline = 3", "acme.toml:4: line is 3, not a text"),
    ("signature = ['[acme-trainer]']\n" + STEP, 'acme.toml:1: name is missing. Write name = "..."'),
    ("name = 'Acme'\nsignature = ['[acme-trainer]']\n" + STEP, "acme.toml:1: name 'Acme' cannot be used"),
    ("name = 'megatron'\nsignature = ['[acme-trainer]']\n" + STEP, "acme.toml:1: name 'megatron' is taken"),
    ("name = 'acme'\n\nsignature = ['step']\n" + STEP, "acme.toml:3: signature 'step' could stand in anybody's log"),
    ("name = 'acme'\nsignature = ['Tokens per step:']\n" + STEP, "is printed by picotron as well"),
    ("name = 'acme'\nsignature = 'x'\n" + STEP, "acme.toml:2: signature has to hold 1 to 20 texts"),
    (HEAD, "acme.toml:1: no [[step]]"),
    (f"{HEAD}nmae = 1\n{STEP}", "acme.toml:3: 'nmae' is not known. Did you mean name?"),
    (
        f"{HEAD}[step]\nline = 'step {{step}}'",
        "acme.toml:3: step is a table of its own for each pattern. Write [[step]]",
    ),
    (f"{HEAD}[[step]]\nlin = 'step {{step}}'", "acme.toml:4: 'lin' is not known in [[step]]. Did you mean line?"),
    (f"{HEAD}[[step]]\nline = 'loss {{loss}}'", "acme.toml:4: [[step]] 1: the step number {step} is missing"),
    (f"{HEAD}[[step]]\nline = 'a {{?{{step}}?}}'", "every value is optional"),
    (
        f"{HEAD}[[step]]\nline = 'step {{step}} {{los}}'",
        "acme.toml:4: [[step]] 1: los is no column here. Did you mean loss?",
    ),
    (f"{HEAD}[[step]]\nline = 'step {{step}} tp {{tp}}'", "tp belongs into a [[setting]]"),
    (f"{HEAD}{STEP}[[setting]]\nline = 'loss {{loss}}'", "acme.toml:6: [[setting]] 1: loss belongs into a [[step]]"),
    (
        f"{HEAD}[[step]]\nline = 'step {{step}} t {{step_time:float}}'",
        "step_time cannot be printed as float: the unit has",
    ),
    (f"{HEAD}[[step]]\nline = 'step {{step}} t {{step_time:GiB}}'", "Use one of: s, ms, us, ns, min, h, it/s"),
    (
        f"{HEAD}[[step]]\nline = 'step {{step}} t {{step_time:msec}}'",
        "msec is not a way to print step_time. Did you mean ms",
    ),
    (f"{HEAD}[[step]]\nline = 'step {{step}} {{ts:%Q}}'", "%Q is not known"),
    (f"{HEAD}[[step]]\nline = 'step {{step}} {{ts:%H:%M}}'", "needs year, month, day"),
    (f"{HEAD}[[step]]\nline = 'step {{step}} {{loss}} {{loss}}'", "loss occurs twice"),
    (f"{HEAD}[[step]]\nline = 'step {{step'", "a lone {"),
    (f"{HEAD}[[step]]\nline = 'step {{step}} {{? x'", "not closed"),
    (f"{HEAD}[[step]]\nline = 'step {{step}} x ?}}'", "closes nothing"),
    (f"{HEAD}[[step]]\nline = '{{step}} {{loss}}'", "begins without any fixed text"),
    (f"{HEAD}[[step]]\nline = 'a {{step}}'\nregex = 'b'", "has line and regex"),
    (f"{HEAD}[[step]]\nregex = '(?P<step>\\d+'\ncontains = ['x']", "the regex is not valid: unclosed group"),
    (f"{HEAD}[[step]]\nregex = '(?P<step>\\d+)(?=x)'\ncontains = ['x']", "no look-around"),
    (f"{HEAD}[[step]]\nregex = '(?P<step>(\\w{{1000}}){{1000}})'\ncontains = ['x']", "exceeds size limit"),
    (f"{HEAD}[[step]]\nregex = '(?P<step>\\d+)'", "contains is missing"),
    (f"{HEAD}[[step]]\nregex = '(?P<step>\\d+)'\ncontains = ['x']\nunits = {{ a = 's' }}", "units names a"),
    (f"{HEAD}[[step]]\npairs = {{ a = 'loss' }}", "has no step number"),
    (f"{HEAD}[[step]]\nparts = ['loss {{loss}}', 'step {{step}}']", "it belongs into the first"),
    (f"{HEAD}[[step]]\nparts = ['step {{step}} {{*}} x']", "a part is short and whole"),
    (f"{HEAD}[[step]]\nline = 'batch {{epoch_step}} x'", "a step that is counted within its epoch needs {epoch}"),
    (
        f"{HEAD}[[step]]\nline = 'at {{step}}'\nbelow = {{ a = 'los' }}",
        "acme.toml:5: [[step]] 1: los is no column here",
    ),
    (f"{HEAD}[[step]]\nline = 'at {{step}}'\nbelow = {{ a = 'step' }}", "step is a value of the step's own line"),
    (
        f"{HEAD}{STEP}[[arguments]]\nline = '{{name}} {{value}}'\ncolumns = {{ a = 'tp' }}\nwords = {{ b = {{ x = '1' }} }}",
        "acme.toml:8: words names 'b'. There are: a.",
    ),
    (f"{HEAD}[[step]]\nline = 'x {{step}}'\nfirst_epoch = 'a'", "first_epoch is 'a', not a count"),
    (f"{HEAD}{STEP}[[event]]\nkind = 'launch'\nparts = ['x']", "an event is found by line or regex"),
    (f"{HEAD}{STEP}[[event]]\nkind = 'trainig_end'\nline = 'x'", "? There are: oom, host_oom, hang"),
    (f"{HEAD}{STEP}[[arguments]]\nline = '{{name}}'\ncolumns = {{ a = 'tp' }}", "needs {name} and {value}"),
    (f"{HEAD}{STEP}[[arguments]]\nline = '{{name}} {{value}}'\ncolumns = {{ a = 'tpp' }}", "Did you mean"),
    (f"{HEAD}{STEP}[[file]]\nname = 'a.ini'\nrequires = ['x']\ncolumns = {{ a = 'tp' }}", "'a.ini' is not a file"),
    (f"{HEAD}{STEP}[[file]]\nname = 'a.json'\ncolumns = {{ a = 'tp' }}", "requires is missing"),
]


@pytest.mark.parametrize(("text", "said"), FAULTS)
def test_faults_name_file_line_and_remedy(text: str, said: str) -> None:
    assert said in fault(text)


def test_sizes_are_bounded() -> None:
    assert "larger than 128 KiB" in fault("#" * (128 << 10) + "\n" + HEAD)
    assert "at most 50 are read" in fault(HEAD + STEP * 51)
    assert "at most 2,000 are read" in fault(f"{HEAD}[[step]]\nline = 'step {{step}} {'x' * 2000}'")
    assert "at most 60 are read" in fault(f"{HEAD}[[step]]\nline = 'step {{step}}{' {_}' * 60}'")
    assert "more than 4 deep" in fault(f"{HEAD}[[step]]\nline = 'step {{step}}{'{?a' * 5}{'?}' * 5}'")
    assert fault("a = " + "[" * 20_000).startswith("acme.toml ")
    assert "is not TOML" in fault("a = " + "1" * 20_000)


def test_the_longest_pattern_that_is_read_compiles() -> None:
    literal = " ".join(["wordword"] * 8)
    line = "step {step} " + " ".join(f"{literal}{at} {{_}}" for at in range(20))
    document = read_document(f"{HEAD}[[step]]\nline = '{line}'", "acme.toml")
    assert len(document.steps[0].template.fields) == 21  # type: ignore[union-attr]


def test_the_example_is_a_dialect_file_with_one_of_each() -> None:
    document = read_document(example(), "example.toml")
    assert all((document.steps, document.settings, document.arguments, document.events, document.files))
    uncommented = "\n".join(
        line.removeprefix("# ")
        if line.startswith(("# [[step]]", "# pairs", "# regex", "# contains", "# units"))
        else line
        for line in example().splitlines()
    )
    assert len(read_document(uncommented, "example.toml").steps) == 3


@given(st.text(max_size=60))
def test_any_text_in_a_pattern_is_read_or_refused(text: str) -> None:
    body = text.replace("'", "").replace("\n", "").replace("\r", "")
    with suppress(UsageError):
        document = read_document(f"{HEAD}[[step]]\nline = 'step {{step}} {body}'", "acme.toml")
        assert compile_document(document).name == "acme"


@given(st.integers(0, len(DIALECT)), st.integers(0, 60))
def test_a_damaged_file_is_read_or_refused(at: int, length: int) -> None:
    with suppress(UsageError):
        assert read_document(DIALECT[:at] + DIALECT[at + length :], "acme.toml").steps
