"""The lines that only one of two compared runs has in its log, read when the reader asks for it."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from sweepscope.dashboard.app.shell import View
from sweepscope.dashboard.queries import run_logs as queries
from sweepscope.dashboard.text import log_difference as texts
from sweepscope.dashboard.view_models.compare import Subject
from sweepscope.dashboard.widgets import basic, urls
from sweepscope.pipeline.errors import SweepscopeError
from sweepscope.pipeline.inspection.log_diff import MOST_LINES, Form, Forms, forms, only_in
from sweepscope.pipeline.inspection.log_window import Known

_PAIR = 2
_FORMS_SHOWN = 25
_KNOWN = ("path", "bytes", "mtime", "content_bytes", "content_digest")


def draw(view: View, columns: Sequence[Subject]) -> None:
    """A switch, and behind it both logs; nothing of more than two columns, or of groups."""
    if len(columns) != _PAIR or any(one.is_group for one in columns):
        return
    basic.section(texts.TITLE, texts.HINT)
    if not st.toggle("Read both logs", key="logs", bind="query-params"):
        return
    rows = [queries.log_of(one.run_ids[0]).run(view.store.con).to_dicts() for one in columns]
    if not all(rows):
        basic.note(texts.NO_LOG)
        return
    logs = [found[0] for found in rows]
    try:
        read = [
            forms(Known(**{name: log[name] for name in _KNOWN}), first=log["from_line"], last=log["to_line"])
            for log in logs
        ]
    except SweepscopeError as error:
        basic.problem(str(error))
        return
    for place, column in enumerate(st.columns(_PAIR, gap="large")):
        with column, st.container(gap="xsmall"):
            _draw_one(columns[place].letter, str(logs[place]["path"]), read[place], read[1 - place])
    if note := texts.cut([one.letter for one, part in zip(columns, read, strict=True) if part.is_cut], MOST_LINES):
        basic.note(note)


def _draw_one(letter: str, path: str, own: Forms, other: Forms) -> None:
    found = only_in(own, other)
    st.html(f'<p class="ss-plain">{basic.rich(texts.found(letter, len(found), own.lines))}</p>')
    _draw_lines(path, found[:_FORMS_SHOWN])
    if found[_FORMS_SHOWN:]:
        with st.expander(f"{len(found) - _FORMS_SHOWN:,} more"):
            _draw_lines(path, found[_FORMS_SHOWN : 8 * _FORMS_SHOWN])


def _draw_lines(path: str, found: Sequence[Form]) -> None:
    if found:
        addresses = [urls.log_url(path, form.line_no) for form in found]
        basic.log_lines([(form.line_no, form.text, texts.alike(form.lines)) for form in found], addresses)
