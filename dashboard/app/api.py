"""The questions of `dashboard.answers` over HTTP: JSON at `/api/NAME?argument=value`, OpenAPI at `/api/docs`."""

from __future__ import annotations

import asyncio
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from typing import TYPE_CHECKING

from starlette.responses import JSONResponse, PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from sweepscope.pipeline.errors import StoreError, SweepscopeError
from sweepscope.pipeline.store.home import Home

if TYPE_CHECKING:
    from starlette.requests import Request

PATH = "/api"
LACKING = "The JSON API needs FastAPI: pip install 'sweepscope[api]', then start the dashboard again.\n"


def api(home: Home) -> ASGIApp:
    """The application to mount at PATH: made at its first request, because what answers takes a second to import."""
    made = cache(_made)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        app = await asyncio.to_thread(made, home)
        await app(scope, receive, send)

    return answer


def _made(home: Home) -> ASGIApp:
    """The API; without the extra `api` an application that answers how to install it.

    Only GET is answered. Errors are `{"error": text}`: status 400 for what cannot be answered, 503 where the store
    cannot be read. Its pages load nothing from elsewhere.
    """
    if find_spec("fastapi_offline") is None:
        return PlainTextResponse(LACKING, 501)
    from fastapi_offline import FastAPIOffline

    from sweepscope.dashboard.answers.answer import Answer
    from sweepscope.dashboard.answers.questions import GUIDE, questions

    app = FastAPIOffline(
        title="sweepscope",
        version=version("sweepscope"),
        description=GUIDE,
        redoc_url=None,
        static_url="/assets",
        exception_handlers={SweepscopeError: _refuse},
    )
    for question in questions(home.path):
        app.get(f"/{question.__name__}", response_model=Answer)(question)
    return app


def _refuse(_: Request, error: Exception) -> JSONResponse:
    return JSONResponse({"error": str(error)}, 503 if isinstance(error, StoreError) else 400)
