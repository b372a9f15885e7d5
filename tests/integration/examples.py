"""Requests and responses in the documentation, compared with real responses.

With RECORD_REST_EXAMPLES=1 in the environment they are written anew.
"""

from pathlib import Path
from tests.integration.web import Response
from typing import Any
from urllib.parse import urlencode

import json
import os


EXAMPLES = Path(__file__).parents[2] / "docs" / "reference" / "rest-examples"
#: Keys of documents whose values differ from run to run.
VARYING = {"UID", "created", "effective", "end", "modified", "start"}


def assert_example(name: str, path: str, query: dict[str, str], response: Response) -> None:
    """Assert that *response*, to a GET of *path* with *query*, is the example *name*."""
    if os.environ.get("RECORD_REST_EXAMPLES"):
        record(name, path, query, response)
    example = json.loads((EXAMPLES / f"{name}.json").read_text("utf-8"))
    assert shape(response.json) == shape(example)
    request = (EXAMPLES / f"{name}.req").read_text("utf-8")
    assert request.startswith(f"GET {path}?")
    assert all(key in request for key in query)


def record(name: str, path: str, query: dict[str, str], response: Response) -> None:
    """Write the request and its response for the documentation."""
    EXAMPLES.mkdir(exist_ok=True)
    request = f"GET {path}?{urlencode(query)} HTTP/1.1\nAccept: application/json\n"
    (EXAMPLES / f"{name}.req").write_text(request, "utf-8")
    write(name, response.json)


def write(name: str, data: Any) -> None:
    """Write *data* as the example *name*."""
    text = json.dumps(data, indent=2, ensure_ascii=False, sort_keys=True)
    (EXAMPLES / f"{name}.json").write_text(text + "\n", "utf-8")


def shape(value: Any) -> Any:
    """Return *value* without the parts that differ from run to run."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items() if key not in VARYING}
    return [shape(item) for item in value] if isinstance(value, list) else value
