"""The site looked at over HTTP, as a visitor, an integrator and an administrator do."""

from collections.abc import Iterator
from dataclasses import dataclass
from plone.pgcatalog.demo import people
from plone.pgcatalog.demo.item import LANGUAGE_TITLES
from plone.pgcatalog.demo.site import acting_as
from plone.pgcatalog.zmi.browse import COUNTED
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import build_opener
from urllib.request import HTTPRedirectHandler
from urllib.request import Request

import base64
import json


TIMEOUT = 60
SEARCH = {"SearchableText": "Bürger", "sort_on": "modified"}


class _NoRedirect(HTTPRedirectHandler):
    """A redirect to the login form is an answer, not something to follow."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@dataclass
class Response:
    """What came back."""

    status: int
    text: str


def get(url: str, accept: str = "text/html", login: str | None = None) -> Response:
    """Fetch a page; an error status is an answer, too."""
    headers = {"Accept": accept}
    if login:
        token = base64.b64encode(f"{login}:{login}".encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    request = Request(url, headers=headers)
    try:
        with build_opener(_NoRedirect).open(request, timeout=TIMEOUT) as response:
            return Response(response.status, response.read().decode())
    except HTTPError as error:
        with error:
            return Response(error.code, error.read().decode(errors="replace"))


def problems(site: Any, root_url: str) -> Iterator[str]:
    """Fetch the pages a newcomer looks at; yield a line for each thing wrong."""
    base = f"{root_url}/{site.getId()}"
    expected = count(site)
    yield from _page("front page", base, f">{LANGUAGE_TITLES['de']}<")
    yield from _page("front page", base, "Who may log in")
    yield from _page("folder", f"{base}/de/news", site["de"]["news"]["climate"].title)
    yield from _page("search form", f"{base}/@@search?SearchableText=water", "water")

    url = f"{base}/@search?{urlencode(SEARCH)}"
    response = get(url, accept="application/json")
    if response.status != 200:
        yield f"@search: status {response.status} ({url})"
    elif (total := json.loads(response.text)["items_total"]) != expected:
        yield f"@search: items_total {total}, the same query in Python: {expected}"

    zmi = f"{base}/portal_catalog/manage_catalogView"
    objects = len(site.portal_catalog)
    total = f"{objects:,}" if objects <= COUNTED else "about "
    yield from _page("catalog in the ZMI", zmi, f'id="total">{total}', login=people.ADMIN)
    for tab in ("Indexes", "Schema", "Advanced"):
        url = f"{base}/portal_catalog/manage_catalog{tab}"
        yield from _page(f"tab {tab} in the ZMI", url, "</html>", login=people.ADMIN)
    if (response := get(zmi)).status not in (302, 401):
        yield f"catalog in the ZMI as anonymous: status {response.status} ({zmi})"


def count(site: Any) -> int:
    """Return what @search has to count for anonymous."""
    path = "/".join(site.getPhysicalPath())
    with acting_as(site, None):
        return int(site.portal_catalog(path=path, **SEARCH).actual_result_count)


def _page(name: str, url: str, text: str, login: str | None = None) -> Iterator[str]:
    response = get(url, login=login)
    if response.status != 200:
        yield f"{name}: status {response.status} ({url})"
    elif "Traceback" in response.text:
        yield f"{name}: a traceback ({url})"
    elif text not in response.text:
        yield f"{name}: does not show {text!r} ({url})"
