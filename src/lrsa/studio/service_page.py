"""The OpenAPI description as a page that loads nothing from anywhere."""

import json
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, select_autoescape


def page(description: Mapping[str, Any]) -> str:
    """HTML: every address with what it takes and what it gives."""
    templates = Environment(loader=PackageLoader("lrsa.studio"), autoescape=select_autoescape())
    schemas = description.get("components", {}).get("schemas", {})
    entries = [
        (method.upper(), path, entry)
        for path, methods in description["paths"].items()
        for method, entry in methods.items()
    ]
    shown = lambda schema: json.dumps(_resolved(schema, schemas), indent=1, ensure_ascii=False)  # noqa: E731
    return templates.get_template("service.html").render(
        info=description["info"], entries=entries, shown=shown
    )


def _resolved(schema: Any, schemas: Mapping[str, Any]) -> Any:
    """The schema with what it refers to in place."""
    if isinstance(schema, list):
        return [_resolved(part, schemas) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        return _resolved(schemas[schema["$ref"].rpartition("/")[2]], schemas)
    return {name: _resolved(part, schemas) for name, part in schema.items()}
