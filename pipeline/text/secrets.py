"""Texts without the credentials in them: tokens, keys and passwords are replaced before anything is stored.

`hide` judges one text, `pipeline.text.secret_columns` whole columns. What is left of a credential is its prefix and a
mark that names its kind: `hf_…[hidden: Hugging Face token]`. A second pass changes nothing.

A credential is found by its format, by its frame (a header, a URL, a PEM block) or by the name before it:
`secret_formats` and `secret_names`. Looked at, and not used: detect-secrets (keeps no positions, asks one Python plugin
per kind and line, does not know Hugging Face, W&B and most kinds of this field, reports every hash for its entropy),
gitleaks and truffleHog (programs in Go; the latter asks the issuers), secrets-patterns-db (1,600 patterns of uneven
quality, many of which match any hash), Presidio (personal data, by language models).
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import cache, partial
from typing import Any

from sweepscope.pipeline.text.secret_formats import FORMATS, FRAMES
from sweepscope.pipeline.text.secret_names import (
    MARK,
    hide_named,
    is_hash_or_path,
    is_mixed,
    is_placeholder,
    label,
    looks_random,
    lower,
    mark,
)

_LEFT = re.compile(r"(?:^|[^A-Za-z0-9]|%[0-9A-Fa-f]{2}|\\[nrt]|u00[0-9a-f]{2})\Z")
_URL = re.compile(
    r"""(?P<scheme>[A-Za-z][A-Za-z0-9+.-]{1,20}:(?://|\\/\\/))"""
    r"""(?P<user>[^\s/"'<>\\]{1,400}|[^\s/:@"'<>\\]{1,100}:(?![0-9]{1,5}/)[^\s@"'<>\\]{1,300})@(?!sha256:)"""
)
_PEM_LINE = re.compile(r"(?<![A-Za-z0-9+/=_.-])[A-Za-z0-9+/]{60,76}={0,2}(?![A-Za-z0-9+/=_.-])")
_AWS_SECRET = re.compile(r"(?<![A-Za-z0-9/+])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])")
PREFIXES = "|".join(prefix for _, prefix, _ in FORMATS)


# Compiled when the first text is judged: that takes longer than importing the rest, and most commands judge none.
@cache
def _has_prefix() -> re.Pattern[str]:
    return re.compile(PREFIXES)


@cache
def _formats() -> re.Pattern[str]:
    return re.compile("|".join(f"(?P<f{n}>{prefix}){rest}" for n, (_, prefix, rest) in enumerate(FORMATS)))


@cache
def _frame(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.ASCII)


def hide(text: str) -> str:
    """`text` with a mark in place of every credential.

    >>> hide("HF_TOKEN=hf_" + "aB3" * 12), hide("eos_token='</s>', num_tokens: 4096")
    ('HF_TOKEN=hf_…[hidden: Hugging Face token]', "eos_token='</s>', num_tokens: 4096")
    """
    if _has_prefix().search(text):
        text = _hide_formats(text)
    small = lower(text)
    for kind, literals, pattern in FRAMES:
        if any(literal in small for literal in literals):
            text = _frame(pattern).sub(partial(_without, kind=kind), text)
    if "@" in text:
        text = _URL.sub(_hide_user, text)
    text = hide_named(text)
    if f"{MARK}AWS" in text:
        text = _AWS_SECRET.sub(lambda found: found[0] if is_hash_or_path(found[0]) else mark("AWS secret key"), text)
    return _PEM_LINE.sub(lambda found: mark("line of a private key") if is_mixed(found[0]) else found[0], text)


def hide_in(value: Any) -> Any:
    """A value of JSON with `hide` applied to all of its texts."""
    if isinstance(value, str):
        return hide(value)
    if isinstance(value, Mapping):
        return {
            key: hide_value(str(key), item) if isinstance(item, str) else hide_in(item) for key, item in value.items()
        }
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [hide_in(item) for item in value]
    return value


def shorten(text: str, length: int) -> str:
    """The first `length` characters of a text without its credentials: half of one would not be recognised."""
    return hide(text)[:length]


def _hide_formats(text: str) -> str:
    parts, position, start = [], 0, 0
    while found := _formats().search(text, start):
        if _LEFT.search(text[max(0, found.start() - 6) : found.start()]):
            number = int(str(found.lastgroup)[1:])
            parts += [text[position : found.end(f"f{number}")], f"…{mark(FORMATS[number][0])}"]
            position = start = found.end()
        else:
            start = found.start() + 1
    return "".join([*parts, text[position:]]) if parts else text


def _without(found: re.Match[str], kind: str) -> str:
    if MARK in found["secret"] or not found["secret"].strip():
        return found[0]
    begin, end = (index - found.start() for index in found.span("secret"))
    return f"{found[0][:begin]}{mark(kind)}{found[0][end:]}"


def _hide_user(found: re.Match[str]) -> str:
    """A URL without the password in front of its host, and without the user where that is a token."""
    user, colon, password = found["user"].partition(":")
    if colon and password and not is_placeholder(password):
        kept = "" if looks_random(user) else f"{user}:"
        return f"{found['scheme']}{kept}{mark('password')}@"
    return f"{found['scheme']}{mark('token')}@" if looks_random(user) else found[0]


def hide_value(name: str, value: str) -> str:
    """The value of a name that is kept apart from it."""
    given = f"{name}={json.dumps(value, ensure_ascii=False)}"
    return mark(label(name)) if MARK in hide_named(given) and MARK not in value else hide(value)
