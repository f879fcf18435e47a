"""Commands of scripts: what their variables hold, and what nobody can know of them."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from sweepscope.pipeline.text.shell_script import commands_of


def last(script: str, **known: str) -> str:
    return " ".join(list(commands_of(script, known))[-1])


@pytest.mark.parametrize(
    ("script", "command"),
    [
        ("A=1\nrun $A ${A} \"$A\" '$A'", "run 1 1 1 1"),
        ("export A=1 B=2\nrun $A$B", "run 12"),
        ("A='--x 1'; A+=' --y 2'\nrun $A", "run --x 1 --y 2"),
        ("ARGS=(\n  --x 1  # how many\n  --y\n)\nARGS+=(--z)\nrun ${ARGS[@]}", "run --x 1 --y --z"),
        ('A=" \\\n  --x 1 \\\n  --y 2"\nrun \\\n  $A', "run --x 1 --y 2"),
        ("N=4\nG=8\nW=$((N * $G)); D=$(( W / (2*2) ))\nrun $W $D", "run 32 8"),
        ("A=1\nA=2\nrun $A", "run 2"),
        ("A=1\nrun $A > out.log 2>&1 &", "run 1"),
        ("A=1\nA=2 B=3 run $A", "run 1"),
        ("export A=1\nexport A\nrun $A", "run 1"),
        ("A=1\ncd / && run $A", "run 1"),
        ("CMD='run --x 1'\nsrun bash -c \"$CMD\" 2>&1 | tee log\n", "tee log"),
        ("# it's nothing\nrun a#b", "run a#b"),
        ("cat <<EOF > ds.json\nit's {\nEOF\nrun 1", "run 1"),
    ],
)
def test_what_a_script_sets_is_known(script: str, command: str) -> None:
    assert last(script) == command


SHELL = shutil.which("bash")


@pytest.mark.skipif(SHELL is None, reason="bash is not here: nothing to compare")
@pytest.mark.parametrize(
    "script",
    [
        "A='--x 1'; A+=' --y 2'\nrun $A",
        "ARGS=(\n  --x 1  # how many\n  --y\n)\nARGS+=(--z)\nrun ${ARGS[@]}",
        "N=4\nG=8\nW=$((N * $G)); D=$(( W / (2*2) ))\nrun $W $D",
        "A=1\nA=2 B=3 run $A",
        "A=1\nif [ $A -gt 2 ]; then B=x\nelif [ $A = 1 ]; then B=y; else B=z; fi\nrun $B",
        'A=" \\\n --x 1 \\\n --y 2"\nrun \\\n  $A',
        "cat <<EOF > /dev/null\nit's {\nEOF\nrun 1 > /dev/stdout 2>&1",
        "A=2\nfalse || run $A",
    ],
)
def test_the_shell_itself_runs_the_same(script: str) -> None:
    assert SHELL is not None
    shown = subprocess.run(
        [SHELL, "-c", f"run() {{ echo run $*; }}\n{script}"], capture_output=True, text=True, check=True
    )
    assert shown.stdout.strip() == last(script)


def test_a_command_in_a_variable_is_that_command() -> None:
    assert ["srun", "bash", "-c", "run", "--x", "1"] in list(commands_of("C='run --x 1'\nsrun bash -c '$C' | tee log"))


@pytest.mark.parametrize(
    "script",
    [
        "run $A",
        "A=$1\nrun $A",
        "A=${A:-1}\nrun $A",
        "A=$(nproc)\nrun $A",
        "A=`nproc`\nrun $A",
        "A=$((B * 2))\nrun $A",
        "A=$((1 / 0))\nrun $A",
        "for A in 1 2 4; do run $A; done",
        "if [ $B = 1 ]; then A=1; else A=2; fi\nrun $A",
        "A=1\nwhile read line; do A=2; done\nrun $A",
        "f() { A=1; }\nrun $A",
        '[ -z "$B" ] && A=1\nrun $A',
        '[ -n "$B" ] || A=1\nrun $A',
    ],
)
def test_what_comes_from_outside_or_from_a_branch_stays_unknown(script: str) -> None:
    assert "$" in last(script)


@pytest.mark.parametrize(
    ("condition", "expected"),
    [("[ $A = full ]", "1"), ("[[ $A != full ]]", "3"), ('[ "$N" -gt 4 ]', "3"), ("[ $N -eq 2 ]", "1")],
)
def test_a_branch_that_compares_known_values_is_taken_or_not(condition: str, expected: str) -> None:
    script = f"A=full\nN=2\nif {condition}; then X=1\nelif [ $A = none ]\nthen X=2\nelse\nX=3\nfi\nrun $X"
    assert last(script) == f"run {expected}"


def test_commands_of_a_branch_that_is_not_taken_are_none() -> None:
    assert list(commands_of("D=0\nif [ $D = 1 ]; then\n  debug\nelse\n  run\nfi\nend")) == [["run"], ["end"]]


def test_options_that_a_branch_may_add_change_none_of_those_before_them() -> None:
    assert last('A="--x 1"\nif [ $D = 1 ]; then A="$A --y"; fi\nrun $A') == "run --x 1"


def test_variables_from_outside_may_be_known() -> None:
    assert last("run $((SLURM_NNODES * 8))", SLURM_NNODES="4") == "run 32"


@pytest.mark.parametrize(
    "damaged", ["A='", 'run "', "run $(", "A=(", "fi\ndone\nrun", "if", "elif x", "}", "$((", "<<EOF"]
)
def test_a_damaged_script_is_read_as_far_as_it_goes(damaged: str) -> None:
    assert all(isinstance(words, list) for words in commands_of(damaged))


def test_a_value_that_doubles_itself_does_not_grow_without_end() -> None:
    script = "A=0123456789\n" + "A=$A$A\n" * 60 + "run $A"
    assert len(last(script)) < 300_000
