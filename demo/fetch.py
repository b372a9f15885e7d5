"""Visits the site over HTTP, as a visitor, an integrator and an administrator."""

from collections.abc import Iterator
from collections.abc import Mapping
from dataclasses import dataclass
from demo import front_page
from demo import plan
from demo.site import acting_as
from demo.words import LANGUAGE_TITLES
from html import escape
from html import unescape
from plone.pgcatalog.zmi.browse import COUNT_LIMIT
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote
from urllib.parse import urlencode
from urllib.parse import urljoin
from urllib.request import build_opener
from urllib.request import HTTPRedirectHandler
from urllib.request import Request

import base64
import json
import re
import transaction


TIMEOUT = 60
#: In a site with fewer objects, some links of the front page find nothing.
ENOUGH = 200
#: Number of recurring events to check.
EVENTS = 3
#: The search words in an address.
QUESTION = re.compile(r"(?:SearchableText|q|try_text)=(\w+)")
SEARCH = {"SearchableText": "Bürger", "sort_on": "modified"}


class _NoRedirect(HTTPRedirectHandler):
    """A redirect to the login form is an answer, and is not followed."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


@dataclass
class Response:
    """A response of the site."""

    status: int
    text: str


def get(
    url: str, accept: str = "text/html", login: str | None = None, form: Mapping[str, str] | None = None
) -> Response:
    """Fetch a page, or send it a *form*; an error status is a normal response."""
    headers = {"Accept": accept}
    if login:
        password = login if login == plan.ADMIN else plan.PASSWORD
        token = base64.b64encode(f"{login}:{password}".encode()).decode()
        headers["Authorization"] = f"Basic {token}"
    request = Request(quote(url, safe=":/?&=%+@,"), headers=headers, data=urlencode(form).encode() if form else None)
    try:
        with build_opener(_NoRedirect).open(request, timeout=TIMEOUT) as response:
            return Response(response.status, response.read().decode())
    except HTTPError as error:
        with error:
            return Response(error.code, error.read().decode(errors="replace"))


def problems(site: Any, root_url: str) -> Iterator[str]:
    """Fetch the pages that a newcomer visits; yield a line for each problem."""
    base = f"{root_url}/{site.getId()}"
    # First the queries from Python, because a database connection that is idle in its transaction for a minute is closed.
    expected = count(site)
    objects = len(site.portal_catalog)
    climate = site["de"]["news"]["climate"].title
    path_of_root = "/".join(site.getPhysicalPath()[:-1])
    with acting_as(site, None):
        found = [brain.getObject() for brain in site.portal_catalog(portal_type="Event")]
    events = [
        (root_url + "/".join(event.getPhysicalPath()).removeprefix(path_of_root), escape(event.title, quote=False))
        for event in [each for each in found if each.recurrence][:EVENTS]
    ]
    yield from _own_questions(site)
    transaction.abort()
    yield from _page("front page", base, f">{LANGUAGE_TITLES['de']}<")
    yield from _page("front page", base, "Who may log in")
    # At the numeric address, for which Plone has no style by default.
    yield from _page("style of the front page", base, 'rel="stylesheet"')
    yield from _page("folder", f"{base}/de/news", climate)
    yield from _page("search form", f"{base}/@@search?SearchableText=water", "water")
    yield from _links(base, objects >= ENOUGH)
    if objects >= ENOUGH and not events:
        yield "recurring events: visitors see none"
    for event, title in events:
        yield from _page("recurring event", event, title)
        yield from _page("recurring event as iCalendar", f"{event}/ics_view", "BEGIN:VCALENDAR")
    yield from _page("list of events", f"{base}/@@event_listing?mode=all", "</html>")

    url = f"{base}/@search?{urlencode(SEARCH)}"
    response = get(url, accept="application/json")
    if response.status != 200:
        yield f"@search: status {response.status} ({url})"
    elif (total := json.loads(response.text)["items_total"]) != expected:
        yield f"@search: items_total {total}, the same query in Python: {expected}"

    zmi = f"{base}/portal_catalog/manage_catalogView"
    total = f"{objects:,}" if objects <= COUNT_LIMIT else "about "
    yield from _page("catalog in the ZMI", zmi, f'id="total">{total}', login=plan.ADMIN)
    for tab in ("Indexes", "Schema", "Advanced"):
        url = f"{base}/portal_catalog/manage_catalog{tab}"
        yield from _page(f"tab {tab} in the ZMI", url, "</html>", login=plan.ADMIN)
    if (response := get(zmi)).status not in (302, 401):
        yield f"catalog in the ZMI as anonymous: status {response.status} ({zmi})"


def _own_questions(site: Any) -> Iterator[str]:
    """Run the searches of the front page's links; they must find other pages."""
    page = site[front_page.ID].UID()
    parts = " ".join(part for link in front_page.LINKS for part in (link.address, link.text, *link.requests))
    for text in sorted(set(QUESTION.findall(parts))):
        if site.portal_catalog(SearchableText=f"{text}*", UID=page):
            yield f"front page: is found by its own question {text!r}"


def _links(base: str, has_enough: bool) -> Iterator[str]:
    """Follow each link of the front page as its user; it must show the promised content if the site *has enough* of it."""
    items = re.findall(r"<li>(.*?)</li>", get(base).text.partition("<ol>")[2].partition("</ol>")[0], re.S)
    if len(items) != len(front_page.LINKS):
        yield f"front page: {len(items)} links ({base})"
    for link, item in zip(front_page.LINKS, items, strict=False):
        urls = [urljoin(f"{base}/", unescape(href)) for href in re.findall(r'href="([^"]*)"', item)]
        urls += [f"{base}/{address}" for address in link.requests]
        responses = [get(url, login=link.login) for url in urls]
        if link.button and (token := re.search(r'name="_authenticator"[^>]*value="(\w+)"', responses[0].text)):
            responses.append(get(urls[0], login=link.login, form={link.button: "1", "_authenticator": token[1]}))
        yield from (f"{link.title}: status {answer.status}" for answer in responses if answer.status != 200)
        for pattern in link.shows if has_enough else ():
            if not any(re.search(pattern, answer.text) for answer in responses):
                yield f"{link.title}: does not show {pattern} ({urls[0]})"


def count(site: Any) -> int:
    """Return the number of hits that @search must count for anonymous."""
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
