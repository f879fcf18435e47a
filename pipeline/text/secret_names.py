"""Credentials that only the name before them tells: `password: ...`, `HF_TOKEN=...`, `--wandb_key ...`.

`key` and `token` are common words in training logs, so the name decides whether its value is one, may be one, or is
not; and the value has to look like one: not a word, a number, a path, a placeholder or code.
"""

from __future__ import annotations

import re
from urllib.parse import unquote

from sweepscope.pipeline.text.secret_formats import ISSUERS, KEY_OWNERS, NOT_SECRET, TOKEN_OWNERS

MARK = "[hidden: "
"""Begins what stands in place of a credential."""

CORE = "pass(?:w(?:or)?d|phrase)?|pwd|secret|token|credentials?|auth|pat|sig(?:nature)?|key(?:[_.-]?id)?"
_SEPARATORS = (
    r"""['"\\\]]{0,6}\s{0,3}(?:=>|:=|==?|:|->|>)\s{0,3}""",  # assignments, JSON, YAML, repr
    "%3d|%3a",
    r"\s{0,40}\.{3,}\s{0,3}",  # Megatron's table of arguments
    r"\s{1,40}[|│┃]\s{1,3}",
    r"""\\?['"]\s{0,3},\s{0,3}\\?['"]value\\?['"]\s{0,3}:\s{0,3}""",  # Kubernetes
    r"""\\?['"]\s{0,3},\s{0,3}(?=\\?['"])""",  # lists of words and pairs
    r"\s{1,3}(?=\S)",  # words of a command line, if the name is an option; sentences, if the value is random
)
_NAMED = re.compile(
    rf"""(?P<core>{CORE})(?P<separator>{"|".join(_SEPARATORS)})(?P<quote>(?:[bur]{{0,2}}\\{{0,3}}['"])?)""",
    re.ASCII,
)
"""To be searched for in small letters."""

_KEY = re.compile(rf"(?:{'|'.join(KEY_OWNERS)})[_.-]?(?:access[_.-]?)?key(?:[_.-]?id)?\Z")
_PASS = re.compile(r"(?:db|pg|mysql|redis|smtp|proxy|user|admin|root|http|ftp|ldap)[_.-]?pass\Z")
_BARE = re.compile(r"""[^\s"',;&|<>(){}\[\]\\`]{1,4000}""")
_BARE_IN_ENVIRONMENT = re.compile(r"""[^\s"'\\]{1,4000}""")
_VARIABLE = re.compile(r"\s*(?:(?:declare -x|export|set(?:env)?)\s+)?[A-Z][A-Z0-9_]*")
_LONGEST, _LEAST_IN_SENTENCES = 4_000, 20
_NAME_END = re.compile(r"[A-Za-z0-9_.-]{0,80}\Z")
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,_]*(?:[eE][-+]?[0-9]+)?[%A-Za-z]{0,2}")
_CODE = re.compile(r"[A-Za-z_][A-Za-z_]*[0-9]{0,2}(?:\.[A-Za-z_]\w*)*")
_PATH = re.compile(r"(?:~|\.{1,2})?/(?:[\w.@+-]+/)*[\w.@+-]*|[A-Za-z]:\\.*|\S+\.(?:json|pem|txt|py|ya?ml|key|crt)")


def mark(kind: str) -> str:
    """What stands in place of a credential.

    >>> mark("AWS key")
    '[hidden: AWS key]'
    """
    return f"{MARK}{kind}]"


def hide_named(text: str) -> str:
    """`text` without the values of names such as `password`, `HF_TOKEN` and `--wandb_key`."""
    small = lower(text)
    parts, position, start = [], 0, 0
    while found := _NAMED.search(small, start):
        start = found.end("core")
        name = _name(text, start)
        kind = _kind_of_name(name, found["core"])
        begin, end = _value_span(text, found) if kind else (0, 0)
        if begin < end and _is_secret(kind, name, found, text[begin:end]):
            parts += [text[position:begin], mark(label(name))]
            position = start = end
    return "".join([*parts, text[position:]]) if parts else text


def label(name: str) -> str:
    """Issuer, as far as the name tells, and what it calls the credential."""
    plain = name.lower().replace("_", "").replace("-", "")
    parts = re.split(r"[_.-]", name.lower())
    issuer = next((issuer for part, issuer in ISSUERS if part in parts or (len(part) > 3 and part in plain)), "")
    noun = next((noun for noun in ("password", "secret", "token", "key") if noun in plain), "")
    noun = noun or ("password" if "pass" in plain or "pwd" in plain else "credential")
    return f"{issuer} {noun}".strip()


def is_placeholder(value: str) -> bool:
    """Whether a value stands for a credential or says that there is none."""
    return (
        value.lower() in NOT_SECRET
        or value.startswith(("${", "$(", "<", "%(", "{", "[", "**", "..."))
        or re.fullmatch(r"\$[A-Za-z_]+", value) is not None
        or (value.lower().startswith(("your", "my_", "my-", "insert", "some_")) and _is_code(value.replace("-", "_")))
        or len(set(value.strip(".-"))) < 2
        or len(value) < 3
    )


def is_mixed(value: str) -> bool:
    """Whether capitals, small letters and digits are mixed as chance mixes them, unlike in paths and hashes."""
    capitals, small, digits = (sum(map(test, value)) for test in (str.isupper, str.islower, str.isdigit))
    if any(run in value.lower() for run in ("abcdefgh", "01234567")):
        return False  # an alphabet
    few = len(value) // 8
    return capitals > 0 and small > 0 and digits > 0 and min(capitals, small) >= few and value.count("/") <= few + 1


def is_hash_or_path(value: str) -> bool:
    """Whether a word of base64 letters is a hash in hexadecimal digits, or a path."""
    return value in (value.lower(), value.upper()) or value.count("/") > 5


def looks_random(value: str) -> bool:
    """Whether a part of a value, between its punctuation, is long and has letters and digits in turn."""
    if len(value) < 16 or " " in value or _NUMBER.fullmatch(value) or "/" in value[:1]:
        return False
    value = unquote(value)
    return " " not in value and any(
        len(part) >= 12 and len(re.findall("[0-9]+", part)) >= 2 and re.search("[A-Za-z]", part)
        for part in re.split(r"[._:/-]", value)
    )


def lower(text: str) -> str:
    """`text` in small letters, character by character: some capitals of other scripts become two."""
    small = text.lower()
    return small if len(small) == len(text) else "".join(char.lower()[:1] for char in text)


def _name(text: str, end: int) -> str:
    found = _NAME_END.search(text[max(0, end - 80) : end])
    return found[0] if found else ""


def _kind_of_name(name: str, core: str) -> str:
    """What a name stands for: a `password`, a `credential`, or what `may be` one; empty for others."""
    small = name.lower()
    if core in ("password", "passwd", "passphrase", "pwd"):
        return "" if name in ("PWD", "OLDPWD") else "password"
    if core == "pass":
        return "password" if _PASS.search(small) else ""
    if core.startswith("key"):
        return "credential" if _KEY.search(small) else ""
    if core == "secret":
        return "credential"
    if core == "token":
        before = re.split(r"[_.-]|(?<=[a-z])(?=[A-Z])", re.sub(r"[_.-]?token\Z", "", name, flags=re.IGNORECASE))
        return "credential" if before[-1].lower() in TOKEN_OWNERS else "may be"
    return "may be" if re.search(rf"(?:\A|[_.-]){core}\Z", small) else ""


def _value_span(text: str, found: re.Match[str]) -> tuple[int, int]:
    quote, begin = found["quote"].lstrip("bur"), found.end()
    if quote:
        end = text.find(quote, begin, begin + _LONGEST)
        return begin, end if end >= 0 else min(len(text), begin + _LONGEST)
    line = text[text.rfind("\n", 0, found.start()) + 1 : found.end("core")]
    is_variable = found["separator"] == "=" and _VARIABLE.fullmatch(line)  # then the rest of the word is the value
    bare = (_BARE_IN_ENVIRONMENT if is_variable else _BARE).match(text, begin)
    return begin, bare.end() if bare else begin


def _is_secret(kind: str, name: str, found: re.Match[str], value: str) -> bool:
    """Whether the value of a name is a credential, judged by the name, by how it is given, and by the value."""
    if found["separator"].isspace() and not re.match("-{1,2}[A-Za-z]", name):
        return len(value) >= _LEAST_IN_SENTENCES and looks_random(value)
    is_data = _is_data(name, found)
    is_part_of_text = not is_data and _is_code(value) and _is_followed_by_code_or_prose(found, value)
    if MARK in value or "…[" in value or is_placeholder(value) or is_part_of_text:
        return False
    if kind == "password":
        return (is_data or not _is_expression(value)) and not (found["core"] == "pwd" and _PATH.fullmatch(value))
    if _NUMBER.fullmatch(value) or (_PATH.fullmatch(value) and not (len(value) == 40 and is_mixed(value))):
        return False
    if kind == "credential" and (is_data or not _is_code(value)):
        return len(value) >= 6 and " " not in value and (any(map(str.isdigit, value)) or _is_varied(value))
    return looks_random(value)


def _is_data(name: str, found: re.Match[str]) -> bool:
    """Whether the value is given as data rather than as code or in a sentence.

    That is in quotes, after a variable of the environment, an option or a parameter of a URL, or in a table. Of a list
    of words in quotes, only the one after an option or a variable is.
    """
    is_named = name.isupper() or name.startswith("-")
    if "," in found["separator"] and "value" not in found["separator"]:
        return is_named
    before = found.string[: found.end("core") - len(name)][-1:]
    is_table = any(mark in found["separator"] for mark in ("...", "|", "│", "┃"))
    return bool(found["quote"] or is_named or is_table or before in ("?", "&"))


def _is_followed_by_code_or_prose(found: re.Match[str], value: str) -> bool:
    """Whether a value is called or indexed, belongs to a name in quotes without being in any, or begins a sentence."""
    after = found.string[found.end() + len(value) : found.end() + len(value) + 2]
    is_sentence = found["separator"].endswith(" ") and re.match(" [a-z]", after) and value.islower()
    return after.startswith(("(", "[")) or bool(is_sentence) or "," in found["separator"]


def _is_expression(value: str) -> bool:
    """Whether a value without quotes is code: `self.password`, `args.db_password`, `password`."""
    words = ("password", "passwd", "pwd", "self", "args", "config", "cfg", "getpass", "os")
    return ("." in value and _is_code(value)) or value.lower() in words


def _is_code(value: str) -> bool:
    """Whether a value reads as names of a program do: capitals begin words, they are not strewn about."""
    if len(value) >= _LEAST_IN_SENTENCES and value.isalnum() and sum(map(str.isupper, value)) >= 4:
        return False
    return _CODE.fullmatch(value) is not None and len(re.findall("[a-z][A-Z]|[A-Z][a-z]", value)) <= max(
        3, len(value) // 4
    )


def _is_varied(value: str) -> bool:
    return len(value) >= 16 or (value.lower() != value and value.upper() != value)
