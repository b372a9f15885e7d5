"""HTTP requests to a database, through Zope's own WSGI publisher and without a socket."""

from base64 import b64encode
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from urllib.parse import quote
from urllib.parse import urlencode

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


class Web:
    """Sends requests to the Zope of *db*, each in a thread (transaction, request, user) of its own."""

    def __init__(self, db: Any) -> None:
        self.db = db

    def get(self, path: str, login: str | None = None, **query: Any) -> Response:
        return self._request("GET", path, login, query=query)

    def post(self, path: str, login: str | None = None, **form: Any) -> Response:
        return self._request("POST", path, login, form=form)

    def _request(
        self, method: str, path: str, login: str | None, query: Any = None, form: Any = None
    ) -> Response:
        body = urlencode(form or {}, doseq=True).encode()
        environ = {
            "REQUEST_METHOD": method,
            "SERVER_NAME": "nohost",
            "SERVER_PORT": "80",
            "SERVER_PROTOCOL": "HTTP/1.1",
            "PATH_INFO": path.encode().decode("latin-1"),
            "QUERY_STRING": urlencode(query or {}, doseq=True, quote_via=quote),
            # Not text/html: errors then come as JSON, not as a rendered page.
            "HTTP_ACCEPT": "*/*",
            "wsgi.input": BytesIO(body),
            "wsgi.url_scheme": "http",
        }
        if method == "POST":
            environ["CONTENT_TYPE"] = "application/x-www-form-urlencoded"
            environ["CONTENT_LENGTH"] = str(len(body))
        if login is not None:
            environ["HTTP_AUTHORIZATION"] = "Basic " + b64encode(login.encode()).decode()
        answers: list[Response] = []
        thread = threading.Thread(target=lambda: answers.append(self._publish(environ)), name=f"{method} {path}")
        thread.start()
        thread.join()
        return answers[0]

    def _publish(self, environ: dict[str, Any]) -> Response:
        from App.ZApplication import ZApplicationWrapper
        from OFS.Application import Application
        from ZPublisher import WSGIPublisher
        from ZPublisher.httpexceptions import HTTPExceptionHandler

        WSGIPublisher._MODULES[MODULE] = (ZApplicationWrapper(self.db, "Application", Application), "Zope", False)
        start: list[Any] = []

        def publish(environ: Any, start_response: Any) -> Any:
            return WSGIPublisher.publish_module(environ, start_response, _module_name=MODULE)

        result = HTTPExceptionHandler(publish)(environ, lambda *answer: start.extend(answer[:2]))
        body = b"".join(result)
        return Response(int(start[0].split()[0]), dict(start[1]), body)
