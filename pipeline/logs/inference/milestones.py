"""Lines near the end of a log by which a trainer says, or shows, that it is done."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence

_DONE = re.compile(
    r"(?i)\btrain(?:ing|er)?\b.{0,24}\b(?:complete[d!]?|finished|done|succeeded|ended|over)\b|"
    r"\b(?:finished|completed|done|end of|finish)\b.{0,12}\btraining\b|"
    r"^\W*(?:all done|done|exiting|finished|finished successfully|run (?:completed|finished)|training time\b.*|"
    r"total (?:training )?time\b.*|training (?:took|time|runtime)\b.*)\W*$|"
    r"^\W*(?:finished|completed|done(?: after| with)?)\W{1,3}(?:all )?\d[\d,_]* "
    r"(?:steps|iters|iterations|updates|epochs)\b|"
    r"\b(?:reached|hit) (?:max(?:imum)?|the last|final)[ _](?:steps?|iters?|iterations?|epochs?|updates?)\b|"
    r"\b(?:successfully|succesfully) (?:completed|finished|trained)\b|"
    r"\b(?:run|job|experiment|pre-?training|fine-?tuning|pretrain|finetune)\b.{0,16}\b(?:complete[d!]?|finished|done)\b|"
    r"\btotal training time\b|"
    # Chinese, Japanese, Korean, Russian, Spanish and Portuguese, French, German, Indonesian, Turkish, Italian
    r"(?:训练|微调|預訓練|训练任务)(?:已|全部)?(?:完成|结束|完毕)|学習(?:が)?(?:完了|終了)|학습\s?(?:이\s?)?(?:완료|종료)|"
    r"\b(?:обучение|дообучение|тренировка)\b.{0,12}\b(?:заверш\w+|окончен\w*)|"
    r"\b(?:entrenamiento|treinamento|treino)\b.{0,12}\b(?:completad[oa]|finalizad[oa]|terminad[oa]|conclu[ií]d[oa])|"
    r"\bentra[iî]nement\b.{0,12}\btermin[ée]|\btraining\b.{0,12}\b(?:abgeschlossen|beendet)\b|"
    r"\b(?:training|pelatihan)\b.{0,12}\bselesai\b|\beğitim\b.{0,12}\btamamland[ıi]|"
    r"\baddestramento\b.{0,12}\b(?:completato|terminato)\b"
)
_NOT_YET = re.compile(
    r"(?i)\b(?:not|isn't|before|until|when|if|once|epoch|error|fail(?:ed|ure)?|abort(?:ed)?|interrupt\w*|eta|remaining|"
    r"setup|init\w*|download\w*|preprocess\w*|tokeniz\w*|loading|warm ?up|step|eval\w*|save|saving)\b"
)
_SUCCEEDED = re.compile(
    r"""["'](?:exit_?)?status["']\s*:\s*["'](?i:success|succeeded|successful|completed|finished)["']"""
)
"""Of a record, whatever else is in it."""
_ENDED = re.compile(
    r"""["'](?:event|type|kind|phase|state)["']\s*:\s*["'](?:(?:run|train(?:ing)?|job|fit)[_ .-]?)?"""
    r"""(?i:end(?:ed)?|done|finish(?:ed)?|completed?)["']"""
)
"""Of a record in which nothing speaks of trouble."""
_FINAL = re.compile(
    r"(?i)\b(?:saved|saving|wrote|writing)\b.{0,12}\b(?:final|last|trained)[ _-](?:model|checkpoint|weights)\b|"
    r"\bfinal[ _-](?:model|checkpoint|weights)\b.{0,12}\b(?:saved|written)\b"
)
"""What becomes of a model that is done."""
_STOPPED = re.compile(
    r"(?i)\bearly[ -]?stop(?:ping|ped)? (?:was )?(?:triggered|activated|after|at|in)\b|\bstopp(?:ing|ed)[ _]early\b|"
    r"\bearly[ -]?stopp(?:ing|ed)\W*$|"
    r"\btarget\b.{0,24}\b(?:achieved|reached|hit|met)\b|\b(?:reached|achieved|hit)\b.{0,12}\btarget\b"
)
"""Of a trainer that has its own measure of being done."""
_ALONE = re.compile(r"(?i)(?:.{0,80}[]|:>-] )?\W*(?P<word>(?:all )?(?:done|finished|completed?)|bye)\W*")
"""A trainer's last word, where it is the last line; in front of others it may be that of a checkpoint."""
_TROUBLE = re.compile(
    r"(?i)error|exception|traceback|fail|kill|abort|signal|interrupt|cancel|terminat|time[d ]?out|preempt|"
    r"out of memory|\bnan\b|unable|cannot|can't|refused|\blost\b|exit|core dump|restart|resum|retry|evict|requeue"
)
"""No end behind which one of these words stands is orderly."""
_NOISE = re.compile(
    r"(?i)warn|\bNCCL\b|process ?group|wandb|deprecat|leaked|destroy|\[[EW]\d{3,4} |it/s|s/it|^\W*$|^\s*\S+\.py:\d+"
)
"""What libraries print as a process ends, and bars: no trainer's own words."""
_LEAST_EPILOGUE = 2
_LEAST_EPOCHS = 3
_MOST_CHARS = 160
_MOST_OF_RECORD = 1_000
_TEXT = re.compile(r"[^\d{}]*")
_WORDS = re.compile(r"[A-Za-z]{4}|[^\W\d_a-zA-Z]{2}")
"""Enough of a word to find a line by, in any script."""


def training_end(lines: Sequence[tuple[int, str]]) -> str | None:
    """Fixed text of the first of the lines behind the last step that says so; None where no line does."""
    for _, text in lines:
        if len(text) <= _MOST_OF_RECORD and (record := _SUCCEEDED.search(text) or _ended(text)):
            return record[0]
        if len(text) > _MOST_CHARS:
            continue
        found = _STOPPED.search(text) or _FINAL.search(text) or (None if _NOT_YET.search(text) else _DONE.search(text))
        if found:
            return _fixed(text, found)
    alone = _ALONE.fullmatch(lines[-1][1]) if lines and not _NOT_YET.search(lines[-1][1]) else None
    return alone["word"] if alone else None


def _ended(text: str) -> re.Match[str] | None:
    return None if _TROUBLE.search(text) else _ENDED.search(text)


def epilogue(before: Collection[str], behind: Sequence[tuple[int, str]]) -> str | None:
    """Fixed text of the first line of an orderly end: of forms that the trainer has not printed before.

    A log that was cut ends with a step, or with lines like those between its steps.

    Args:
        before: forms (`form`) of the lines up to the last step.
        behind: the lines behind it.
    """
    if any(_TROUBLE.search(text) for _, text in behind):
        return None
    new = [text for _, text in behind if form(text) not in before and not _NOISE.search(text)]
    spoken = [text for text in new if len(text) <= _MOST_CHARS and _WORDS.search(text)]
    if len({form(text) for text in spoken}) < _LEAST_EPILOGUE:
        return None
    return next((fixed for text in spoken if (fixed := _longest(text))), None)


def end_of_epoch(
    before: Sequence[tuple[int, str]], behind: Sequence[tuple[int, str]], begins: Sequence[int]
) -> str | None:
    """The line behind the last step with which each epoch before ended; None where none does, or there was none.

    Args:
        before: lines up to the last step.
        behind: the lines behind it.
        begins: numbers of the lines with which epochs begin; the last one is the last that was planned.
    """
    if len(begins) < _LEAST_EPOCHS or any(_TROUBLE.search(text) for _, text in behind):
        return None
    ends = {form(_last_above(before, begin)) for begin in begins[1:]}
    line = next((text.strip() for _, text in behind if {form(text)} == ends), "")
    return line if _WORDS.search(line) and len(line) <= _MOST_CHARS and not set(line) & set("{}") else None


def _last_above(lines: Sequence[tuple[int, str]], line_no: int) -> str:
    return next((text for number, text in reversed(lines) if number < line_no and text.strip()), "")


def form(text: str) -> str:
    """A line without its numbers and blanks.

    >>> form("step  12: loss 2.5") == form("step 7: loss 3.25")
    True
    """
    return re.sub(r"[-+]?[0-9][0-9.,]*(?:e[-+]?[0-9]+)?|\s+", "0", text)


def _longest(text: str) -> str | None:
    plain = max((part.strip() for part in _TEXT.findall(text)), key=len)
    return plain if _WORDS.search(plain) else None


def _fixed(text: str, found: re.Match[str]) -> str | None:
    """The words that say so as far as they are fixed: neither numbers nor braces."""
    parts = [part for part in _TEXT.findall(text) if part.strip()]
    mine = [part for part in parts if found[0] in part or _DONE.search(part) or part.strip() in found[0]]
    best = max(mine or parts, key=len, default="")
    plain = re.sub(r"\s+", " ", best).strip(" \t.!-=*#[]()|:")
    return plain if _WORDS.search(plain) else None
