"""Web actions that change the catalog need POST and a CSRF token."""

from AccessControl.requestmethod import buildfacade
from collections.abc import Callable
from inspect import Parameter
from inspect import signature
from plone.protect import CheckAuthenticator
from typing import Any
from zExceptions import Forbidden
from zope.globalrequest import getRequest


_default: list[Any] = []


def post_only(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return *method* refusing (Forbidden) a call that comes from the web without POST and token.

    A call from Python, which passes no REQUEST or RESPONSE, or outside of any request, is not the web's.  The result has the very
    signature of *method*, from which ZPublisher takes the form fields.
    """
    parameters = signature(method).parameters

    def _curried(*values: Any) -> Any:
        arguments = {
            name: parameter.default if value is _default and parameter.default is not Parameter.empty else value
            for (name, parameter), value in zip(parameters.items(), values, strict=True)
        }
        request = arguments.get("REQUEST")
        if request is None and arguments.get("RESPONSE") is not None:
            request = getRequest()
        if request is not None:
            check(request)
        return method(**arguments)

    namespace: dict[str, Any] = {"_curried": _curried, "_default": _default}
    exec(buildfacade(method.__name__, method, method.__doc__), namespace)
    facade: Callable[..., Any] = namespace[method.__name__]
    return facade


def check(request: Any) -> None:
    """Raise Forbidden unless *request* is a POST with a valid token."""
    if request.get("REQUEST_METHOD", "GET") != "POST":
        raise Forbidden("Request must be POST")
    CheckAuthenticator(request)
