"""Common parts of this package's management pages."""

from Acquisition import aq_base
from App.special_dtml import DTMLFile
from collections.abc import Callable
from collections.abc import Iterable
from inspect import Parameter
from inspect import signature
from plone.pgcatalog.core.catalog import Catalog
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import ms
from plone.pgcatalog.i18n import percent
from plone.pgcatalog.i18n import translated
from plone.pgcatalog.i18n import when
from plone.pgcatalog.indexing.transition import is_unfilled
from plone.pgcatalog.queue.progress import long_jobs
from plone.pgcatalog.queue.progress import LongJob
from plone.protect import CheckAuthenticator
from Products.Five.browser import BrowserView
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from rich.filesize import decimal
from typing import Any
from urllib.parse import quote
from urllib.parse import urlencode
from zExceptions import Forbidden
from zope.component import getMultiAdapter
from zope.globalrequest import getRequest

import re


_default: list[Any] = []


def post_only(method: Callable[..., Any]) -> Callable[..., Any]:
    """Return *method*, which then raises Forbidden if it is published without POST and token.

    Calls from Python are not checked: the published code, such as an upgrade step or a view, is responsible for itself.  The
    result has the positional parameters of *method*, which ZPublisher fills from form fields.
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
    # Built from the names of parameters of this package's or ZCatalog's methods, not from input of a visitor.
    exec(f"def facade({', '.join(head + rest)}): return _curried({call})", namespace)  # noqa: S102
    facade: Callable[..., Any] = namespace["facade"]
    facade.__name__, facade.__doc__ = method.__name__, method.__doc__
    return facade


def is_published(tool: Any, request: Any) -> bool:
    """Return whether *request* is for any method of *tool*, so that no method can call another one without the check."""
    published = request.get("PUBLISHED")
    return aq_base(getattr(published, "__self__", None)) is aq_base(tool)


def check(request: Any) -> None:
    if request.get("REQUEST_METHOD", "GET") != "POST":
        raise Forbidden("Request must be POST")
    CheckAuthenticator(request)


#: A form that calls an action; the other forms (``&dtml-URL;``) only filter the page they are on.
_FORM = re.compile(r'<form\b([^>]*\baction="(?:&dtml-URL1;|manage_)[^>]*)>')
_METHOD = re.compile(r'\s+method="\w+"', re.IGNORECASE)


class PostForms(DTMLFile):
    """A page whose forms call actions by POST; plone.protect adds the token."""

    def __init__(self, page: DTMLFile) -> None:
        super().__init__(page.raw.removesuffix(".dtml"), "")
        self.__name__ = page.__name__

    def read_raw(self) -> str:
        return _FORM.sub(lambda m: f'<form{_METHOD.sub("", m[1])} method="post">', super().read_raw())


def page_of(view: str) -> Callable[[Any, Any], Any]:
    """Return a publishable method of the tool that shows the view *view*."""

    def show(self, REQUEST=None):  # type: ignore[no-untyped-def]
        """Show a management page"""
        return getMultiAdapter((self, REQUEST or self.REQUEST), name=view)()

    return show


class UnfilledNotice(BrowserView):
    """HTML of a notice for pages about the catalog tool *context*; empty if the catalog has been filled.

    Its form sends ``rebuild`` and a token to *action*, a URL, by POST.
    """

    template = ViewPageTemplateFile("templates/unfilled.pt")

    def __init__(self, context: Any, request: Any, action: str) -> None:
        super().__init__(context, request)
        self.action = action

    def __call__(self) -> str:
        html: str = self.template() if is_unfilled(self.context._core) else ""
        return html

    # -- for the template

    @property
    def advanced(self) -> str:
        """The URL of the page that shows the progress."""
        return f"{self.context.absolute_url()}/manage_catalogAdvanced"

    def job(self) -> LongJob | None:
        """Return the last rebuild; None if there is none."""
        catalog = self.context._core
        return long_jobs(catalog.session.execute, catalog.zoid).get("rebuild")


#: Seconds after which a page that shows a running job is reloaded.
RELOAD = 3


def readable(text: str) -> str:
    """Return *text* with unprintable characters in Python's notation, except line ends and tabs."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)


class ManagePage(BrowserView):
    """A page of the catalog tool: GET shows it and changes nothing; POST without a token raises Forbidden."""

    template: Any = None
    #: Name of the registered view.
    name = ""

    @property
    def catalog(self) -> Catalog:
        catalog: Catalog = self.context._core
        return catalog

    def __call__(self) -> Any:
        if self.request.get("REQUEST_METHOD") == "GET":
            return self.template()
        check(self.request)
        return self.post()

    def post(self) -> Any:
        """Process the form and return the response; by default show the page."""
        return self.template()

    #: texts of several pages
    everything = _("(everything)")
    never = _("never")
    slow_query = _("slow query")
    slow_queries = _("slow queries")

    def redirect(self, message: str) -> str:
        query = urlencode({"manage_tabs_message": translated(message, self.request)})
        self.request.response.redirect(f"{self.url()}?{query}")
        return ""

    def reload_soon(self) -> None:
        """Have the browser reload the page after RELOAD seconds, without the message that the job was started."""
        if self.request.get("REQUEST_METHOD") == "GET":
            self.request.response.setHeader("Refresh", f"{RELOAD}; url={self.url()}")

    def url(self) -> str:
        return f"{self.context.absolute_url()}/{self.name}"

    def field(self, name: str) -> str:
        """Return the form field *name*; empty if it is missing or a list."""
        value = self.request.form.get(name)
        return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""

    # -- for the templates

    def translated(self, message: str) -> str:
        return translated(message, self.request)

    def unfilled(self) -> str:
        """Return a notice, as HTML, if the catalog was not filled."""
        return UnfilledNotice(self.context, self.request, f"{self.context.absolute_url()}/manage_catalogAdvanced")()

    ms = staticmethod(ms)
    percent = staticmethod(percent)
    size = staticmethod(decimal)
    when = staticmethod(when)
    readable = staticmethod(readable)

    def mb(self, value: int) -> str:
        """Return a number of bytes as text, in megabytes as in the settings of memory."""
        return f"{value / 2**20:,.1f} MB"

    def quoted(self, name: str) -> str:
        return quote(name, safe="", errors="replace")

    def listed(self, values: Iterable[str]) -> str:
        return ", ".join(values)
