"""HTTP requests to a database, through Zope's own WSGI publisher and without a socket."""

from base64 import b64encode
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import quote
from urllib.parse import urlencode

import json
import threading


MODULE = "plone.pgcatalog.tests"


@dataclass
class Response:
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode(errors="replace")

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Web:
    """Sends requests to the Zope of *db*; each has a thread, and with it a transaction and a user, of its own.

    A *login* is ``"name:password"``.  The default *accept* makes errors come as JSON, not as a rendered page.
    """

    def __init__(self, db: Any) -> None:
        self.db = db

    def get(self, path: str, login: str | None = None, /, accept: str = "*/*", **query: Any) -> Response:
        environ = self._environ("GET", path, login, accept)
        environ["QUERY_STRING"] = urlencode(query, doseq=True, quote_via=quote)
        return self._send(environ)

    def post(self, path: str, login: str | None = None, /, **form: Any) -> Response:
        body = urlencode(form, doseq=True).encode()
        environ = self._environ("POST", path, login, "*/*") | {
            "CONTENT_TYPE": "application/x-www-form-urlencoded",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
        }
        return self._send(environ)

    def patch(self, path: str, login: str | None, data: Any, /) -> Response:
        return self.send_json("PATCH", path, login, data)

    def send_json(self, method: str, path: str, login: str | None, data: Any, /) -> Response:
        body = json.dumps(data).encode()
        environ = self._environ(method, path, login, "application/json") | {
            "CONTENT_TYPE": "application/json",
            "CONTENT_LENGTH": str(len(body)),
            "wsgi.input": BytesIO(body),
        }
        return self._send(environ)

    def _environ(self, method: str, path: str, login: str | None, accept: str) -> dict[str, Any]:
        environ = {
            "REQUEST_METHOD": method,
            "SERVER_NAME": "nohost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "PATH_INFO": path.encode().decode("latin-1"),
            "HTTP_ACCEPT": accept,
            "wsgi.input": BytesIO(),
            "wsgi.url_scheme": "http",
        }
        if login is not None:
            environ["HTTP_AUTHORIZATION"] = "Basic " + b64encode(login.encode()).decode()
        return environ

    def _send(self, environ: dict[str, Any]) -> Response:
        answers: list[Response] = []
        thread = threading.Thread(target=lambda: answers.append(self._publish(environ)))
        thread.start()
        thread.join()
        return answers[0]

    def _publish(self, environ: dict[str, Any]) -> Response:
        start: list[Any] = []
        body = application(self.db)(environ, lambda *answer: start.extend(answer[:2]))
        return Response(int(start[0].split()[0]), dict(start[1]), b"".join(body))


def application(db: Any) -> Any:
    """Return the Zope of *db* as a WSGI application; there is one at a time."""
    from App.ZApplication import ZApplicationWrapper
    from OFS.Application import Application
    from ZPublisher import WSGIPublisher
    from ZPublisher.httpexceptions import HTTPExceptionHandler

    wrapper = ZApplicationWrapper(db, "Application", Application)
    WSGIPublisher._MODULES[MODULE] = (wrapper, "Zope", False)

    def publish(environ: Any, start_response: Any) -> Any:
        return WSGIPublisher.publish_module(environ, start_response, _module_name=MODULE)

    return HTTPExceptionHandler(publish)
