"""The control panels in Classic UI."""

from AccessControl import getSecurityManager
from AccessControl import Unauthorized
from AccessControl.Permissions import manage_zcatalog_entries
from datetime import date
from functools import cached_property
from plone.app.registry.browser.controlpanel import ControlPanelFormWrapper
from plone.app.registry.browser.controlpanel import RegistryEditForm
from plone.app.z3cform.widgets.contentbrowser import get_contentbrowser_options
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchPageSettings
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSearchSettings
from plone.pgcatalog.controlpanel.interfaces import IPGCatalogSettings
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.controlpanel.trial import MOST_FINDINGS
from plone.pgcatalog.controlpanel.trial import percents
from plone.pgcatalog.controlpanel.trial import Trial
from plone.pgcatalog.controlpanel.tuning_import import decoded
from plone.pgcatalog.controlpanel.tuning_import import findings
from plone.pgcatalog.controlpanel.tuning_import import MOST_BYTES
from plone.pgcatalog.controlpanel.tuning_import import tuning_text
from plone.pgcatalog.discovery.preview import PreviewHit
from plone.pgcatalog.discovery.replay import Replay
from plone.pgcatalog.fulltext.site import site_languages
from plone.pgcatalog.fulltext.tuning import LineError
from plone.pgcatalog.fulltext.tuning import on_search_pages
from plone.pgcatalog.fulltext.tuning import Pin
from plone.pgcatalog.fulltext.tuning import read_pin
from plone.pgcatalog.fulltext.tuning import read_synonyms
from plone.pgcatalog.fulltext.tuning import Tuning
from plone.pgcatalog.fulltext.tuning import tuning_in
from plone.pgcatalog.fulltext.tuning_file import read_file
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import translated
from plone.pgcatalog.interfaces import IPGCatalogTool
from plone.pgcatalog.observe.search_lists import read_searches
from plone.pgcatalog.observe.search_lists import SearchLists
from plone.pgcatalog.observe.search_lists import top_searches
from plone.pgcatalog.observe.search_lists import week_of
from plone.pgcatalog.observe.searches import days_of
from plone.pgcatalog.queue import long
from plone.pgcatalog.queue.long import JobError
from plone.pgcatalog.results.view import RowsFetch
from plone.pgcatalog.settings import site_settings
from plone.pgcatalog.zmi.overview import FiguresView
from plone.pgcatalog.zmi.page import check
from plone.pgcatalog.zmi.page import UnfilledNotice
from Products.Five.browser import BrowserView
from Products.Five.browser.pagetemplatefile import ViewPageTemplateFile
from Products.statusmessages.interfaces import IStatusMessage
from typing import Any

import json


class PanelForm(RegistryEditForm):
    """A form that can only be saved by POST with a token; otherwise Forbidden is raised."""

    schema_prefix = PREFIX

    def applyChanges(self, data: Any) -> Any:
        check(self.request)
        return super().applyChanges(data)


class SettingsForm(PanelForm):
    """The form of the settings."""

    id = "PGCatalogSettings"
    label = _("PostgreSQL Catalog")
    description = _(
        "Settings of searches and of the log of slow queries. If set, the environment variables"
        " PGCATALOG_SLOW_QUERY_MS and PGCATALOG_RESULT_CACHE_MB override the slow query threshold and the result cache."
    )
    schema = IPGCatalogSettings


class SettingsPanel(ControlPanelFormWrapper):
    """The control panel of the settings, with a notice and a button if the catalog has not been filled."""

    form = SettingsForm
    index = ViewPageTemplateFile("settings.pt")

    def update(self) -> None:
        """See IView."""
        if "rebuild" in self.request.form:
            self._fill()
        else:
            super().update()

    def _fill(self) -> None:
        check(self.request)
        tool = self.context.portal_catalog
        if not getSecurityManager().checkPermission(manage_zcatalog_entries, tool):
            raise Unauthorized("no permission to fill the catalog")
        try:
            long.start_for(tool, "rebuild")
            message, kind = _("The catalog is being filled."), "info"
        except JobError as error:
            message, kind = error.message, "error"
        IStatusMessage(self.request).addStatusMessage(message, kind)
        self.request.response.redirect(self.url)

    @property
    def url(self) -> str:
        return f"{self.context.absolute_url()}/@@{self.__name__}"

    def unfilled(self) -> str:
        """Return a notice, as HTML, if the catalog has not been filled; otherwise ""."""
        tool = self.context.portal_catalog
        return UnfilledNotice(tool, self.request, self.url)() if IPGCatalogTool.providedBy(tool) else ""

    def figures(self) -> str:
        """Return figures of the catalog as HTML; "" for users who may not manage it."""
        tool = self.context.portal_catalog
        may = getSecurityManager().checkPermission(manage_zcatalog_entries, tool)
        return FiguresView(tool, self.request)() if may and IPGCatalogTool.providedBy(tool) else ""


class SearchPageForm(PanelForm):
    """The form of the settings of the search page."""

    id = "PGCatalogSearchPageSettings"
    label = _("Search Page")
    description = _("Settings of the search page of Classic UI.")
    schema = IPGCatalogSearchPageSettings


class SearchPagePanel(ControlPanelFormWrapper):
    """The control panel of the search page."""

    form = SearchPageForm


PARTS = {
    "title": (_("Title"), "bg-primary"),
    "description": (_("Description"), "bg-success"),
    "keywords": (_("Tags"), "bg-warning"),
    "body": (_("Text"), "bg-secondary"),
}
#: Buttons besides Save and Cancel; none of them saves anything.
BUTTONS = ("try", "try_for", "pin", "pin_for", "add_pin", "synonym_for", "add_synonym", "compare", "read_file")


class SearchForm(PanelForm):
    """The form of the settings that tune the search; ``values`` are those to try, None if one of them is invalid."""

    id = "PGCatalogSearchSettings"
    label = _("Search Tuning")
    description = _(
        "Settings of the order of results, of synonyms, and of search by meaning. Changes take effect immediately."
    )
    schema = IPGCatalogSearchSettings
    #: The first field is the box above the form.
    enable_autofocus = False
    values: dict[str, Any] | None = None

    def update(self) -> None:
        """See IForm."""
        super().update()
        if not any(button in self.request.form for button in BUTTONS):
            return
        if not any(name.startswith("form.widgets.") for name in self.request.form):
            self.values = {}
            return
        values, errors = self.extractData()
        if errors:
            self.status = self.formErrorsMessage
        else:
            self.values = values


class SearchPanel(ControlPanelFormWrapper):
    """The control panel of the form, with a box to try a query, and lists of searches.

    The buttons beside the form change the values in the form; they are not saved before the user saves the form.
    """

    form = SearchForm
    index = ViewPageTemplateFile("search.pt")
    form_id = SearchForm.id
    problem = ""
    #: messages about lines of a file that cannot be read or have no effect
    findings: tuple[str, ...] = ()
    _read: RowsFetch | None = None

    def update(self) -> None:
        """See IView."""
        form = self.request.form
        for name in ("try_for", "pin_for", "synonym_for"):
            form["try_text"] = self._field(name) or self.text
        try:
            if "add_pin" in form or "pin" in form:
                words = self._field("pin_words" if "add_pin" in form else "try_text")
                page = self._field("pin_page" if "add_pin" in form else "pin")
                self._add("pins", f"{words.replace('=', ' ')} = {page}", read_pin)
                form["try_text"] = words
            if "add_synonym" in form:
                words = self._field("synonym_word")
                self._add("synonyms", f"{words}, {self._field('synonym_other')}", read_synonyms)
                form["try_text"] = words
            if "read_file" in form:
                self._read_file()
        except LineError as error:
            self.problem = translated(error.message, self.request)
        super().update()

    def _add(self, name: str, line: str, read: Any) -> None:
        """Append *line* to the setting *name* in the form.  Raises LineError if *read* cannot read it."""
        read(line)
        lines = self.request.form.get(f"form.widgets.{name}")
        if not isinstance(lines, str):
            lines = site_settings(self.context.portal_catalog).get(name) or ""
        self.request.form[f"form.widgets.{name}"] = "\r\n".join(filter(None, (lines.rstrip(), line)))

    def _read_file(self) -> None:
        """Fill the form with the settings of an uploaded file.  Raises LineError if it cannot be read."""
        upload, tool = self.request.form.get("tuning_file"), self.context.portal_catalog
        text = decoded(upload.read(MOST_BYTES + 1)) if hasattr(upload, "read") else ""
        for name, lines in read_file(text).items():
            self.request.form[f"form.widgets.{name}"] = lines.replace("\n", "\r\n")
        if IPGCatalogTool.providedBy(tool):
            found = findings(tool, text)[:MOST_FINDINGS]
            self.findings = tuple(translated(finding.message, self.request) for finding in found)

    def _field(self, name: str) -> str:
        value = self.request.form.get(name)
        return " ".join(value.split()) if isinstance(value, str) else ""

    # -- for the template

    @property
    def text(self) -> str:
        """The query to try."""
        return self._field("try_text")

    @property
    def pin_words(self) -> str:
        return self._field("pin_for") or self.text

    @property
    def synonym_word(self) -> str:
        return self._field("synonym_for") or self.text

    def focus(self, name: str) -> str | None:
        """Return the attribute ``autofocus`` for the field *name* if its button was pressed, otherwise None."""
        return "autofocus" if self._field(name) else None

    @cached_property
    def trial(self) -> Trial | None:
        """The settings in the form; None if one of them is invalid, or nothing is to be tried."""
        tool, values = self.context.portal_catalog, self.form_instance.values
        is_possible = values is not None and IPGCatalogTool.providedBy(tool)
        return Trial(self.context, self.request, values) if is_possible else None

    @cached_property
    def hits(self) -> list[PreviewHit] | None:
        """The first hits of the query to try; None if there is no query, or the form is invalid."""
        if self.trial is None or not self.text:
            return None
        with self.context.portal_catalog._core.session.batch():
            self._read_searches()
            return self.trial.hits(self.text, self.section)

    @property
    def section(self) -> str:
        """The section of the site in which the query is tried; "" for the whole site."""
        return self._field("try_section")

    @property
    def sections(self) -> list[str]:
        """The sections for which there are pins, in the form or saved."""
        return (self.trial or Trial(self.context, self.request, {})).sections

    @cached_property
    def replay(self) -> Replay | None:
        """The replay of the most frequent searches with the settings in the form; None if it is not wanted or possible."""
        is_wanted = "compare" in self.request.form and self.request.method == "POST"
        return self.trial.replay() if is_wanted and self.trial is not None else None

    def shares(self, hit: PreviewHit) -> list[dict[str, Any]]:
        """Return the parts of a page that make it relevant, the largest share first."""
        parts = [(*PARTS[name], percent) for name, percent in percents(hit)]
        return [{"label": label, "color": color, "percent": percent} for label, color, percent in parts]

    def moved(self, hit: PreviewHit) -> int:
        """Return the number of places by which the hit has risen, negative if it has fallen; 0 if it is new or unmoved."""
        return 0 if hit.place_before is None else hit.place_before - hit.place

    def by_both(self, hit: PreviewHit) -> str:
        """Return the places of *hit* by words and by meaning, and its similarity, as text; "" in a search for words."""
        if hit.by_words is None and hit.by_meaning is None:
            return ""
        parts = []
        if hit.by_words is not None:
            parts.append(_("by words ${place}", {"place": str(hit.by_words)}))
        if hit.by_meaning is not None and hit.similarity is not None:
            values = {"place": str(hit.by_meaning), "similarity": f"{hit.similarity:.3f}"}
            parts.append(_("by meaning ${place}, similarity ${similarity}", values))
        return "; ".join(translated(part, self.request) for part in parts)

    def _read_searches(self) -> RowsFetch | None:
        """Return a fetch of the counted searches, which joins an open batch; None if searches are not counted."""
        tool = self.context.portal_catalog
        if self._read is None and IPGCatalogTool.providedBy(tool):
            self._read = read_searches(tool, week=self.week)
        return self._read

    @property
    def week(self) -> date | None:
        """The Monday of the week whose searches are listed; None for the whole period."""
        return week_of(self.request.form.get("week"))

    @property
    def days(self) -> int:
        """The days for which searches are stored."""
        return days_of(self.context.portal_catalog)

    @cached_property
    def searches(self) -> SearchLists | None:
        """The lists of counted searches; None if searches are not counted."""
        read = self._read_searches()
        return None if read is None else top_searches(read.value())

    def search_lists(self, searches: SearchLists) -> list[dict[str, Any]]:
        """Return the title of each list, the id of its element, and its searches with their numbers."""
        lists = (
            (_("Top searches"), "top", searches.top, "searches"),
            (_("Searches without results"), "missed", searches.missed, "without_results"),
            (_("Corrected searches"), "corrected", searches.corrected, "corrected"),
            (_("Searches without an opened hit"), "unopened", searches.unopened, "searches"),
        )
        return [
            {"title": title, "id": f"{name}-searches", "searches": [(each, getattr(each, number)) for each in found]}
            for title, name, found, number in lists
        ]

    @property
    def idle_pins(self) -> list[tuple[Pin, bool]]:
        """(pin, whether it has ended) of the pins in the form, or saved, that do not apply today."""
        return (self.trial or Trial(self.context, self.request, {})).idle_pins()

    @property
    def listed_stop_words(self) -> list[tuple[str, tuple[str, ...]]]:
        """(language, stop words) for the languages of the site that have no line in the setting."""
        tool = self.context.portal_catalog
        own = tuning_in(site_settings(tool)) or Tuning()
        filled = on_search_pages(own, site_languages(tool))
        return list(filled.stop_words[len(own.stop_words) :])

    def browser_options(self) -> str:
        """Return the options of Plone's content browser, as JSON."""
        vocabulary = "plone.app.vocabularies.Catalog"
        options = get_contentbrowser_options(self.context, "", ";", vocabulary, "@@getVocabulary", "pin_page", False)
        return json.dumps({**options, "maximumSelectionSize": 1})

    def may_browse(self) -> bool:
        """Return whether the user may use the content browser, which needs more permissions than this page."""
        return bool(getSecurityManager().checkPermission("Modify portal content", self.context))


class TuningFile(BrowserView):
    """The saved tuning as a text file; empty if the catalog is not this package's."""

    def __call__(self) -> str:
        response = self.request.response
        response.setHeader("Content-Type", "text/plain; charset=utf-8")
        response.setHeader("Content-Disposition", 'attachment; filename="search-tuning.txt"')
        response.setHeader("X-Content-Type-Options", "nosniff")
        response.setHeader("Cache-Control", "private, no-store")
        return tuning_text(self.context.portal_catalog)
