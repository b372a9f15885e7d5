"""Web actions that change the catalog need POST and a CSRF token."""

from Acquisition import aq_base
from collections.abc import Callable
from inspect import Parameter
from inspect import signature
from plone.protect import CheckAuthenticator
from typing import Any
from zExceptions import Forbidden
from zope.globalrequest import getRequest


_default: list[Any] = []


def post_only(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return *method* refusing (Forbidden) to be published without POST and token.

    A call from Python is not the web's: what was published has looked after itself, as an upgrade step, or a view that changes
    other content.  The result has the very positional parameters of *method*, from which ZPublisher takes the form fields.
    """
    parameters = signature(method).parameters.values()
    fields = [p for p in parameters if p.kind in (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)]

    def _curried(*values: Any, **more: Any) -> Any:
        arguments = more | {
            field.name: field.default if value is _default and field.default is not Parameter.empty else value
            for field, value in zip(fields, values, strict=False)
        }
        request = getRequest()
        if request is not None and is_published(values[0], request):
            check(request)
        return method(*(arguments[field.name] for field in fields), *values[len(fields) :], **more)

    rest = ["*args", "**kw"] if len(fields) < len(parameters) else []
    head = [field.name if field.default is Parameter.empty else f"{field.name}=_default" for field in fields]
    call = ", ".join([field.name for field in fields] + rest)
    namespace: dict[str, Any] = {"_curried": _curried, "_default": _default}
    exec(f"def facade({', '.join(head + rest)}): return _curried({call})", namespace)
    facade: Callable[..., Any] = namespace["facade"]
    facade.__name__, facade.__doc__ = method.__name__, method.__doc__
    return facade


def is_published(tool: Any, request: Any) -> bool:
    """Return whether *request* is for a method of *tool*: any, so that none calls another one past the check."""
    published = request.get("PUBLISHED")
    return aq_base(getattr(published, "__self__", None)) is aq_base(tool)


def check(request: Any) -> None:
    """Raise Forbidden unless *request* is a POST with a valid token."""
    if request.get("REQUEST_METHOD", "GET") != "POST":
        raise Forbidden("Request must be POST")
    CheckAuthenticator(request)
