"""What the OpenAPI description of the service says of requests and answers."""

from collections.abc import Callable
from typing import Any, Literal

from fastapi import FastAPI
from pydantic import BaseModel, Field

from lrsa.studio.service_files import FORMATS
from lrsa.studio.service_models import Served
from lrsa.studio.service_quality import QuantityAnswer


class Problem(BaseModel):
    """Why there is no answer."""

    detail: str


class Health(BaseModel):
    status: Literal["ok", "stopping"]
    models: int
    waiting: int = Field(description="Cases that wait for their prediction")
    running: int = Field(description="Requests that are not answered yet")
    cases: int = Field(description="Cases that were predicted")
    batches: int = Field(description="In so many batches")


class Answer(BaseModel):
    """The predicted fields, in physical units."""

    u: list[list[float]] | list[list[list[float]]] = Field(
        description="For each point the targets; for each time these, where a list of times was asked for"
    )
    targets: list[str]
    quantities: dict[str, QuantityAnswer] = Field(description="Those of interest that the run names")
    warnings: list[str] = Field(description="Where the case is outside the ranges of training")


REASONS = {
    408: "The body did not come in time",
    413: "The body is too large",
    415: "It is neither JSON nor a form",
    422: "The case does not fit, the file is not readable, or it has too many points",
    503: "The service is stopping or busy, or there was no prediction in time",
}
FILE = {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}}
ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": Answer, "description": "The fields", "content": FILE},
    **{status: {"model": Problem, "description": reason} for status, reason in REASONS.items()},
}
"""To a case."""


def accepted(one: Served) -> dict[str, Any]:
    """The two forms of a case, as OpenAPI describes them."""
    numbers = r"^-?\d{1,9}(\.\d{1,9})?(,-?\d{1,9}(\.\d{1,9})?)*$"
    fields = {
        "file": {"type": "string", "format": "binary", "description": f"A file: {', '.join(FORMATS)}"},
        "globals": {"type": "string", "pattern": numbers, "description": "Parameters of the case: 1.5,20"},
        "time": {"type": "string", "pattern": numbers, "description": "The time that is asked for"},
        "inputs": {"type": "string", "description": "The arrays that are the inputs, where called otherwise"},
    }
    form = {"type": "object", "required": ["file"], "properties": fields}
    schema = one.body.model_json_schema()
    return {"application/json": {"schema": schema}, "multipart/form-data": {"schema": form}}


def describe(app: FastAPI, token: str | None) -> None:
    """The description says that a token is needed."""
    if token is None:
        return
    plain: Callable[[], dict[str, Any]] = app.openapi

    def described() -> dict[str, Any]:
        made = plain()
        made.setdefault("components", {})["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        made["security"] = [{"token": []}]
        made["paths"]["/health"]["get"]["security"] = []
        return made

    app.openapi = described  # pyright: ignore[reportAttributeAccessIssue]
