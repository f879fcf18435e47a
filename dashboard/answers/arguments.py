"""Arguments that several questions take, with the texts that callers read in a tool's schema or on the OpenAPI page."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

Origin = Annotated[
    str | None,
    Field(description="measured (the user's own runs), published or simulated; default: measured where there are any"),
]
Sweep = Annotated[str | None, Field(description="one sweep of that origin; default: all")]
Model = Annotated[str | None, Field(description="a model's name as the store has it; `overview` lists them")]
Nodes = Annotated[int | None, Field(ge=1, description="number of nodes; default: every one")]
Accelerator = Annotated[str | None, Field(description="for example H100-SXM-80GB")]
SeqLen = Annotated[int | None, Field(ge=1, description="tokens of one sequence")]
GbsTokens = Annotated[int | None, Field(ge=1, description="tokens of one step: the global batch")]
Limit = Annotated[int, Field(ge=1, le=10_000, description="rows of each table")]
