"""The request: one for code that runs outside of any, and its language."""

from Acquisition import aq_base
from io import BytesIO
from typing import Any
from zope.globalrequest import getRequest
from zope.publisher.browser import setDefaultSkin
from ZPublisher.BaseRequest import RequestContainer
from ZPublisher.HTTPRequest import HTTPRequest
from ZPublisher.HTTPResponse import HTTPResponse


def with_request(root: Any) -> Any:
    """Return the application *root* with a request, as a published object has one.

    Not Testing.makerequest: importing Testing before Zope has started swaps the configured database for a
    DemoStorage.
    """
    environ = {"SERVER_NAME": "localhost", "SERVER_PORT": "80", "REQUEST_METHOD": "GET", "SCRIPT_NAME": ""}
    request = HTTPRequest(BytesIO(), environ, HTTPResponse(stdout=BytesIO()))
    app = aq_base(root).__of__(RequestContainer(REQUEST=request))
    request["PARENTS"] = [app]
    # Views are looked up by the layer of the request.
    setDefaultSkin(request)
    return app


def request_language() -> str | None:
    """Return the code of the language in which the current request is answered, None without request or language."""
    request = getRequest()
    language = None if request is None else request.get("LANGUAGE")
    return language if isinstance(language, str) and language else None
