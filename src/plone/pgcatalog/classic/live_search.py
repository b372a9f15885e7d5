"""Plone's live search, which also completes words, and corrects what finds nothing.

Plone's pattern asks and shows it as before: ``items`` are pages, and nothing else.  ``livesearch.js`` shows the rest, and
makes a combobox of it all.
"""

from functools import cached_property
from plone.pgcatalog.core.searcher import bad_values
from plone.pgcatalog.discovery.suggest import Completions
from plone.pgcatalog.discovery.suggest import correction
from plone.pgcatalog.i18n import _
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.request import number_in
from plone.pgcatalog.results.results import CatalogSearchResults
from plone.pgcatalog.settings import SOURCE_INDEX
from Products.CMFCore.utils import getToolByName
from Products.CMFPlone.browser.search import AjaxSearch
from typing import Any
from urllib.parse import urlencode
from zope.i18n import translate

import json
import re


#: Words that are suggested.
WORDS = 3
#: Rows that are read at once to know whether there are more.
MAX_ROWS = 50
#: No page is further back, or has more rows.
MOST_PAGES = 10_000

#: Tried once for each word: each letter of a long one would be a beginning, too.
_LAST_WORD = re.compile(r"(?<!\w)\w++$")


class LiveSearch(AjaxSearch):
    """The answer to what has been typed so far, as JSON; in three messages to PostgreSQL at most.

    ``total`` and ``items`` are Plone's; of the corrected text if the typed one finds nothing, and ``corrected`` says so.
    ``words`` are completions of what was typed.  Both have a ``label`` and the ``url`` of their search.
    Without a text the answer has ``short``, what to tell somebody who has typed too little: the browser knows the number.
    """

    corrected: str | None = None
    #: The words that the last one may become, which are read together with the pages.
    _words: Completions | None = None

    def __call__(self) -> str:
        if not IPGCatalogTool.providedBy(getToolByName(self.context, "portal_catalog")):
            return str(super().__call__())
        for name in ("page", "perPage"):
            # Plone counts in them, whatever they are.
            number = number_in(str(self.request.form.pop(name, "")))
            if number is not None and 0 < number <= MOST_PAGES:
                self.request.form[name] = str(number)
        answer = json.loads(super().__call__())
        answer["label"] = translate(_("Suggestions and pages"), context=self.request)
        if not self._text:
            answer["short"] = translate(_("Type at least ${number} letters"), context=self.request)
        if self.corrected is not None:
            answer["corrected"] = self._link(
                self.corrected,
                _("Showing results for ${text}", {"text": self.corrected}),
            )
        answer["words"] = [
            self._link(text, _("Search for ${text}", {"text": text})) for text in self._completions(answer["total"])
        ]
        return json.dumps(answer)

    def results(self, *args: Any, **options: Any) -> Any:
        """See Search: what it finds, else what the corrected text does.  Raises BadRequest for a query that says nothing."""
        with bad_values():
            return self._results(*args, **options)

    def _results(self, *args: Any, **options: Any) -> Any:
        catalog, text = getToolByName(self.context, "portal_catalog"), self._text
        if not text or not IPGCatalogTool.providedBy(catalog):
            return super().results(*args, **options)
        with catalog._core.session.batch():
            if _LAST_WORD.search(text) and self.request.form.get("page", "1") == "1":
                self._words = Completions(catalog, text, WORDS + 1, self._place)
            found = super().results(*args, **options)
            has_rows = self._has_rows(found)
        if has_rows:
            return found
        better = correction(catalog, text, self._place)
        if better is None:
            return found
        typed = self.request.form[SOURCE_INDEX]
        self.request.form[SOURCE_INDEX] = better
        try:
            corrected = super().results(*args, **options)
        finally:
            self.request.form[SOURCE_INDEX] = typed
        if not self._has_rows(corrected):
            return found
        self.corrected = better
        return corrected

    @property
    def _text(self) -> str:
        text = self.request.form.get(SOURCE_INDEX)
        return text.strip() if isinstance(text, str) else ""

    @cached_property
    def _place(self) -> dict[str, Any]:
        """Return the query without its text and order: where words have to stand."""
        left_out = (SOURCE_INDEX, "sort_on", "sort_order", "sort_limit")
        return {name: value for name, value in self.filter_query({}).items() if name not in left_out}

    def filter_types(self, types: Any) -> Any:
        """See Search.  Each time Plone's translates and sorts a vocabulary of all types."""
        key = str(types)
        if key not in self._types:
            self._types[key] = super().filter_types(types)
        return self._types[key]

    @cached_property
    def _types(self) -> dict[str, Any]:
        return {}

    def get_image_tag(self, item: Any, image_scale: str) -> Any:
        """See AjaxSearch.  Plone's loads a page that has no image, and saves an empty list of scales in it."""
        return super().get_image_tag(item, image_scale) if getattr(item, "getIcon", True) else None

    def _has_rows(self, found: Any) -> bool:
        """Return whether *found* is not empty.  Reads one row more than is shown: whoever gets fewer need not count."""
        try:
            rows = int(self.request.form.get("page", 1)) * int(self.request.form.get("perPage", 10)) + 1
        except (TypeError, ValueError):
            rows = 1
        if isinstance(found, CatalogSearchResults):
            found.count_along()
        return len(found[: max(1, min(rows, MAX_ROWS))]) > 0

    def _completions(self, total: int) -> list[str]:
        """Return what has been typed with its last word completed; nothing on later pages, or beside a correction."""
        last = _LAST_WORD.search(self._text)
        if self._words is None or last is None or not total or self.corrected is not None:
            return []
        begin = self._text[: last.start()]
        return [begin + word for word in self._words.words() if word != last[0].lower()][:WORDS]

    def _link(self, text: str, label: Any) -> dict[str, str]:
        url = f"{self.context.absolute_url()}/@@search?{urlencode({SOURCE_INDEX: text})}"
        return {"text": text, "label": translate(label, context=self.request), "url": url}
