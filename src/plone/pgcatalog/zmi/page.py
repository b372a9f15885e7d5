"""What the management pages of our own have in common."""

from collections.abc import Iterable
from datetime import datetime
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import ms
from plone.pgcatalog.i18n import percent
from plone.pgcatalog.i18n import translated
from plone.pgcatalog.i18n import when
from plone.pgcatalog.protocols import Catalog
from plone.pgcatalog.zmi.protect import check
from plone.pgcatalog.zmi.unfilled import UnfilledNotice
from Products.Five.browser import BrowserView
from rich.filesize import decimal
from typing import Any
from urllib.parse import quote
from urllib.parse import urlencode


#: Seconds after which a page that shows running work is loaded again.
RELOAD = 3


class ManagePage(BrowserView):
    """A page of the catalog tool: GET shows it and changes nothing; POST needs a token, else it is Forbidden."""

    template: Any = None
    #: The name it is registered under.
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
        """Do what the form says, and return the answer; a page without actions of its own shows itself."""
        return self.template()

    #: words of several pages
    everything = _("(everything)")
    never = _("never")
    nothing_yet = _("nothing yet")
    slow_query = _("slow query")
    slow_queries = _("slow queries")

    def redirect(self, message: str) -> str:
        """Go back to the page, which shows *message*."""
        query = urlencode({"manage_tabs_message": translated(message, self.request)})
        self.request.response.redirect(f"{self.url()}?{query}")
        return ""

    def reload_soon(self) -> None:
        """Have the browser load the page again, without the message that work was begun: it may be done by then."""
        if self.request.get("REQUEST_METHOD") == "GET":
            self.request.response.setHeader("Refresh", f"{RELOAD}; url={self.url()}")

    def url(self) -> str:
        return f"{self.context.absolute_url()}/{self.name}"

    def field(self, name: str) -> str:
        """Return the form field *name*; empty when it is not there, or no single value."""
        value = self.request.form.get(name)
        return value if isinstance(value, str) else str(value) if isinstance(value, int) else ""

    # -- for the templates

    def translated(self, message: str) -> str:
        """Return *message* in the language of the page."""
        return translated(message, self.request)

    def unfilled(self) -> str:
        """Return a notice, as HTML, if the catalog was not filled."""
        return UnfilledNotice(self.context, self.request, f"{self.context.absolute_url()}/manage_catalogAdvanced")()

    def ms(self, value: float | None) -> str:
        return ms(value)

    def percent(self, value: float) -> str:
        return percent(value)

    def size(self, value: int) -> str:
        return decimal(value)

    def mb(self, value: int) -> str:
        """Return bytes in the megabytes that settings of memory are given in."""
        return f"{value / 2**20:,.1f} MB"

    def readable(self, text: str) -> str:
        return readable(text)

    def when(self, value: datetime) -> str:
        return when(value)

    def quoted(self, name: str) -> str:
        """Return *name* as a part of a URL."""
        return quote(name, safe="", errors="replace")

    def listed(self, values: Iterable[str]) -> str:
        return ", ".join(values)


def readable(text: str) -> str:
    """Return *text* with the characters that no font shows in Python's notation; line ends stay."""
    return "".join(c if c.isprintable() or c in "\n\t" else c.encode("unicode_escape").decode() for c in text)
