"""`sweepscope completion SHELL`: a script that completes commands, options and their words, made from the parsers."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from sweepscope.pipeline.commands.output import say_result
from sweepscope.pipeline.commands.verb import Verb

SHELLS = ("bash", "zsh", "fish")
_HELP = """Completes in a shell what it may be followed by. To have it in every new shell:

  bash: sweepscope completion bash > ~/.local/share/bash-completion/completions/sweepscope
  zsh:  echo 'source <(sweepscope completion zsh)' >> ~/.zshrc
  fish: sweepscope completion fish > ~/.config/fish/completions/sweepscope.fish"""


@dataclass(frozen=True)
class Option:
    """An option or an argument: its names (none for an argument), the words that it takes, and its help.

    `takes_value` is false for a switch. An option with a value of no fixed words takes a file.
    """

    names: tuple[str, ...]
    words: tuple[str, ...]
    takes_value: bool
    help: str


@dataclass(frozen=True)
class Command:
    """A command: its path ("plan launch"; "" for the program), what may follow it, and the commands below with help."""

    path: str
    options: tuple[Option, ...]
    below: dict[str, str]


def commands(parser: argparse.ArgumentParser, path: str = "") -> Iterator[Command]:
    """The parser's command and all below it, parents first."""
    below: dict[str, str] = {}
    children: list[tuple[str, argparse.ArgumentParser]] = []
    options = []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            below = {one.dest: _line(one.help) for one in action._choices_actions}
            children = list(action.choices.items())
        else:
            words = tuple(map(str, action.choices)) if action.choices else ()
            options.append(Option(tuple(action.option_strings), words, action.nargs != 0, _line(action.help)))
    yield Command(path, tuple(options), below)
    for name, child in children:
        yield from commands(child, f"{path} {name}".strip())


def _line(text: str | None) -> str:
    """A help in one line, without what argparse fills in."""
    return " ".join((text or "").split()).split(" (default", maxsplit=1)[0].replace("%%", "%")


def bash_script(found: list[Command]) -> str:
    """Completion for bash, and for zsh under its bashcompinit."""
    ways = [
        f"      {_quoted(f'{one.path}:{name}')}) path={_quoted(_joined(one.path, name))};;"
        for one in found
        for name in one.below
    ]
    words, values = [], []
    for one in found:
        names = [*one.below, *(name for option in one.options for name in option.names)]
        names += [word for option in one.options if not option.names for word in option.words]
        words.append(f"    {_quoted(one.path)}) words={_quoted(' '.join(names))};;")
        for option in one.options:
            if option.takes_value:
                keys = "|".join(_quoted(f"{one.path}:{name}") for name in option.names)
                action = f"words={_quoted(' '.join(option.words))}; only=1" if option.words else "only=2"
                values += [f"    {keys}) {action};;"] if keys else []
    return "\n".join(
        [
            "# Completion of sweepscope, by `sweepscope completion`.",
            "_sweepscope() {",
            "  local current previous path words only i",
            '  current="${COMP_WORDS[COMP_CWORD]}"; previous="${COMP_WORDS[COMP_CWORD-1]}"',
            "  path=''; words=''; only=0",
            "  for ((i = 1; i < COMP_CWORD; i++)); do",
            '    case "$path:${COMP_WORDS[i]}" in',
            *ways,
            "    esac",
            "  done",
            '  case "$path" in',
            *words,
            "  esac",
            '  case "$path:$previous" in',
            *values,
            "  esac",
            "  COMPREPLY=()",
            '  if [ "$only" != 2 ]; then COMPREPLY=( $(compgen -W "$words" -- "$current") ); fi',
            '  if [ "$only" = 2 ] || [ "$only" = 0 -a "${current#-}" = "$current" -a -n "$path" ]; then',
            '    COMPREPLY+=( $(compgen -f -- "$current") )',
            "  fi",
            "}",
            "complete -o filenames -F _sweepscope sweepscope",
        ]
    )


def zsh_script(found: list[Command]) -> str:
    """Completion for zsh, by its own emulation of bash's."""
    return "autoload -U +X compinit && compinit\nautoload -U +X bashcompinit && bashcompinit\n" + bash_script(found)


def fish_script(found: list[Command]) -> str:
    """Completion for fish, with a description of every command and option."""
    lines = ["# Completion of sweepscope, by `sweepscope completion fish`.", "complete -c sweepscope -e"]
    for one in found:
        seen = [f"__fish_seen_subcommand_from {name}" for name in one.path.split()]
        known = " ".join(one.below)
        where = "; and ".join([*seen, *([f"not __fish_seen_subcommand_from {known}"] if known else [])]) or "true"
        for name, does in one.below.items():
            lines.append(f"complete -c sweepscope -n {_quoted(where)} -f -a {_quoted(name)} -d {_quoted(does)}")
        here = "; and ".join(seen) or "__fish_use_subcommand"
        for option in one.options:
            names = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}" for name in option.names)
            value = f" -x -a {_quoted(' '.join(option.words))}" if option.words else " -r" if option.takes_value else ""
            if names or option.words:
                lines.append(f"complete -c sweepscope -n {_quoted(here)}{names}{value} -d {_quoted(option.help)}")
    return "\n".join(lines)


def _joined(path: str, name: str) -> str:
    return f"{path} {name}".strip()


def _quoted(text: str) -> str:
    """A word of any of the shells: quoted, and without what quoting differs in."""
    return shlex.quote(text.replace("'", "’").replace("\\", "/")) or "''"


def _add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("shell", metavar="SHELL", choices=SHELLS, help="bash, zsh or fish")


def _run(args: argparse.Namespace) -> int:
    write = {"bash": bash_script, "zsh": zsh_script, "fish": fish_script}
    script = write[args.shell](list(commands(args.whole_parser())))
    say_result({"shell": args.shell, "script": script}, script, as_json=args.json)
    return 0


VERB = Verb(
    name="completion",
    description=_HELP,
    add_arguments=_add_arguments,
    run=_run,
    needs_whole_parser=True,
)
