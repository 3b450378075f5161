"""The description of the routes (OpenAPI 3.1)."""

from __future__ import annotations

from typing import Any

import msgspec

from rue.serve.settings import Settings
from rue.version import __version__

__all__ = ["description"]

_NAME = {
    "name": "name",
    "in": "path",
    "required": True,
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$"},
}
_VALUE = {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "boolean"}, {"type": "null"}]}
_FEATURES = {"type": "object", "additionalProperties": _VALUE}
_ID = {"type": "string", "minLength": 1, "maxLength": 256}
_LABEL = {"anyOf": [{"type": "string", "minLength": 1}, {"type": "number"}, {"type": "boolean"}]}
_WEIGHT = {"type": "number", "minimum": 0}


def _line(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


_PREDICT = _line(["features"], features=_FEATURES, id=_ID)
_BY_ID = _line(["id", "label"], id=_ID, label=_LABEL, weight=_WEIGHT)
_LEARN = _line(["features", "label"], features=_FEATURES, label=_LABEL, id=_ID, weight=_WEIGHT)


def _answers(*codes: int) -> dict[str, Any]:
    words = {
        200: "Done.",
        201: "Created.",
        202: "Taken in, and not learnt yet.",
        400: "The request makes no sense; `error` says why.",
        401: "The token is missing.",
        403: "The request comes from a page of another site.",
        404: "There is no such model or id.",
        405: "Another method is meant.",
        408: "The request did not arrive in time.",
        409: "It contradicts what came before.",
        410: "The label comes too late: its prediction has expired.",
        413: "The request is too long.",
        429: "Too many requests wait.",
        503: "The log cannot be written; nothing was taken in.",
    }
    json = {"application/json": {"schema": {"type": "object"}}}
    return {
        str(code): {"description": words[code], "content": json}
        for code in (*codes, 400, 401, 403, 404, 405, 408, 413, 429, 503)
    }


def _post(summary: str, schema: dict[str, Any], *codes: int) -> dict[str, Any]:
    body = {"required": True, "content": {"application/json": {"schema": schema}}}
    return {"post": {"summary": summary, "requestBody": body, "responses": _answers(*codes)}, "parameters": [_NAME]}


def _turn(summary: str, code: int, **more: Any) -> dict[str, Any]:
    return {"post": {"summary": summary, "responses": _answers(code, 409), **more}, "parameters": [_NAME]}


def _get(summary: str, *query: dict[str, Any], named: bool = True) -> dict[str, Any]:
    return {
        "get": {"summary": summary, "parameters": list(query), "responses": _answers(200)},
        **({"parameters": [_NAME]} if named else {}),
    }


def _query(name: str, **schema: Any) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "schema": schema}


def description() -> dict[str, Any]:
    """What `/openapi.json` says."""
    (reference,), components = msgspec.json.schema_components([Settings], ref_template="#/components/schemas/{name}")
    settings = {"required": True, "content": {"application/json": {"schema": reference}}}
    batch = {"required": True, "content": {"application/x-ndjson": {"schema": {"type": "string"}}}}
    begin = {"type": "object", "properties": {"from": {"type": "integer", "minimum": 1}}}
    challenge = {"required": True, "content": {"application/json": {"schema": begin}}}
    one = "/v1/models/{name}"
    paths = {
        "/v1/models": _get("The models.", named=False),
        one: {
            "put": {
                "summary": "Create a model; the same again changes nothing.",
                "requestBody": settings,
                "responses": _answers(200, 201, 409),
            },
            "get": {"summary": "What waits, and how late labels came.", "responses": _answers(200)},
            "parameters": [_NAME],
        },
        f"{one}/predict": _post("Predict an example.", _PREDICT, 200, 409),
        f"{one}/label": _post("The label of a prediction, however late.", _BY_ID, 200, 202, 409, 410),
        f"{one}/learn": _post("Predict an example and learn its label at once.", _LEARN, 200, 202, 409),
        f"{one}/batch": {
            "post": {"summary": "Many of these, one a line.", "requestBody": batch, "responses": _answers(200)},
            "parameters": [_NAME],
        },
        f"{one}/report": _get("The report of all that was learnt."),
        f"{one}/certificate": _get(
            "What no linear model could have beaten.", _query("radius", type="number"), _query("window", type="string")
        ),
        f"{one}/weights": _get("The largest weights.", _query("top", type="integer", minimum=1)),
        f"{one}/events": _get("What changes, once a second (server-sent events)."),
        f"{one}/explain": _post("The parts of a prediction.", _PREDICT, 200),
        f"{one}/challenger": _turn(
            "Begin a race against another learner on the same log, from a record on.", 201, requestBody=challenge
        ),
        f"{one}/promote": _turn("Let the challenger take over, if it is shown to be better.", 200),
        f"{one}/rollback": _turn("Go back to a snapshot.", 200, parameters=[_query("to", type="integer", minimum=1)]),
        "/metrics": _get("Figures for Prometheus.", named=False),
        "/healthz": _get("Whether the process is alive.", named=False),
        "/readyz": _get("Whether requests are answered.", named=False),
    }
    return {
        "openapi": "3.1.0",
        "info": {"title": "rue", "version": __version__, "description": "Learns while it serves, and loses nothing."},
        "paths": paths,
        "components": {"schemas": components},
    }
