"""The tuning of a site in and out as a text file, and its lines that cannot have an effect."""

from collections.abc import Callable
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from plone.pgcatalog.controlpanel.registry_records import PREFIX
from plone.pgcatalog.fulltext.site import site_languages
from plone.pgcatalog.fulltext.tuning import language_code
from plone.pgcatalog.fulltext.tuning import LineError
from plone.pgcatalog.fulltext.tuning import normal_words
from plone.pgcatalog.fulltext.tuning import Pin
from plone.pgcatalog.fulltext.tuning import read_line
from plone.pgcatalog.fulltext.tuning import Synonyms
from plone.pgcatalog.fulltext.tuning_file import numbered_lines
from plone.pgcatalog.fulltext.tuning_file import read_file
from plone.pgcatalog.fulltext.tuning_file import written
from plone.pgcatalog.i18n import _
from plone.pgcatalog.indexing.objects import site_path
from plone.pgcatalog.settings import site_settings
from plone.pgcatalog.settings import SOURCE_INDEX
from plone.registry.interfaces import IRegistry
from Products.CMFCore.utils import getToolByName
from typing import Any
from zope.component import getUtility


#: Most bytes of a file that is read.
MOST_BYTES = 1_000_000


def tuning_text(tool: Any) -> str:
    """Return the tuning of the site of the catalog *tool* as a text file."""
    return written(site_settings(tool))


def decoded(content: bytes) -> str:
    """Return the text of a file with the *content*; raises LineError if it is too large or not UTF-8."""
    if len(content) > MOST_BYTES:
        raise LineError(_("the file is larger than 1 MB"))
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise LineError(_("the file is not a text in UTF-8")) from error


def import_tuning(tool: Any, text: str) -> list[str]:
    """Store the sections of *text* in the registry of the site of the catalog *tool*; return the names of the settings.

    Raises LineError for the first line that cannot be read; then no setting is changed.
    """
    settings = read_file(text)
    for finding in findings(tool, text):
        if finding.is_error:
            raise LineError(finding.message)
    registry = getUtility(IRegistry, context=tool)
    for name, lines in settings.items():
        registry[f"{PREFIX}.{name}"] = lines
    return list(settings)


@dataclass(frozen=True, slots=True)
class Finding:
    """A line of the *setting* that cannot be read (*is_error*), or that cannot have an effect; the *message* says why."""

    line: int
    message: str
    is_error: bool
    setting: str


def findings(tool: Any, text: str) -> list[Finding]:
    """Return the findings about the lines of *text*, in their order.

    Raises LineError for an unknown section, and for a line before the first section.
    """
    return sorted(findings_in(tool, numbered_lines(text)), key=lambda finding: finding.line)


def findings_in(tool: Any, lines: Iterable[tuple[int, str, str]]) -> list[Finding]:
    """Return the findings about *lines*, each (number, setting, line): those about unreadable lines first."""
    found, readable = [], []
    for number, name, line in lines:
        try:
            if line:
                readable.append((number, name, read_line(name, line)))
        except LineError as error:
            found.append(Finding(number, _at(number, error.message), True, name))
    site = TunedSite(tool, [target_of(value) for _number, _name, value in readable])
    for number, name, value in readable:
        if reason := site.reason(name, value):
            found.append(Finding(number, _at(number, reason), False, name))
    return found


def _at(number: int, reason: str) -> str:
    return _("Line ${number}: ${problem}", {"number": str(number), "problem": reason})


def target_of(value: Any) -> str:
    """Return the page of *value*, a pin or a hidden page: a path in the site or a UID; "" for other values."""
    return value.target if isinstance(value, Pin) else value if isinstance(value, str) else ""


class TunedSite:
    """The data of the site of the catalog *tool* that lines of tuning refer to; *targets* are their pages."""

    def __init__(self, tool: Any, targets: list[str]) -> None:
        self._tool = tool
        self._targets = {target for target in targets if target}
        self._checks: dict[str, Callable[[Any], str | None]] = {
            "type_boosts": self._type,
            "half_lives": self._type,
            "pins": self._pin,
            "hidden_pages": self._page,
            "synonyms": self._synonyms,
            "stop_words": self._stop_words,
        }

    def reason(self, name: str, value: Any) -> str | None:
        """Return why *value*, a line of the setting *name*, cannot have an effect; None if it can."""
        check = self._checks.get(name)
        return None if check is None else check(value)

    @cached_property
    def _lexicon(self) -> Any:
        return self._tool._core.translator(SOURCE_INDEX).index.getLexicon()

    @cached_property
    def _pages(self) -> set[str]:
        """The targets that are catalogued, as they are written."""
        root = site_path(self._tool) or ""
        paths = {root + target: target for target in self._targets if target.startswith("/")}
        uids = {target.replace("-", "").lower(): target for target in self._targets if not target.startswith("/")}
        search = self._tool.unrestrictedSearchResults
        found = {brain.getPath() for brain in search(path={"query": list(paths), "depth": 0})} if paths else set()
        known = {brain.UID for brain in search(UID=list(uids))} if uids else set()
        return {paths[path] for path in found} | {uids[uid] for uid in known}

    def _type(self, value: tuple[str, Any]) -> str | None:
        if value[0] in getToolByName(self._tool, "portal_types").objectIds():
            return None
        return _("there is no content type ${name}", {"name": repr(value[0])})

    def _pin(self, pin: Pin) -> str | None:
        return self._without_words([pin.words]) or self._page(pin.target)

    def _page(self, target: str) -> str | None:
        return None if target in self._pages else _("there is no page ${target}", {"target": repr(target)})

    def _synonyms(self, line: Synonyms) -> str | None:
        if reason := self._without_words([*line.words, *line.alternatives]):
            return reason
        words = {normal_words(self._lexicon, text) for text in line.words}
        if len(words.union(normal_words(self._lexicon, text) for text in line.alternatives)) < 2:
            return _("all words are the same for the index: ${words}", {"words": ", ".join(line.words)})
        several = [text for text in line.words if " " in text]
        if several and line.words != line.alternatives:
            return _("only single words have synonyms, not ${text}", {"text": repr(several[0])})
        return None

    def _stop_words(self, value: tuple[str, tuple[str, ...]]) -> str | None:
        language, words = value
        codes = {code for each in site_languages(self._tool) for code in (language_code(each), language_code(each)[:2])}
        if language not in codes:
            return _("the site has no language ${name}", {"name": repr(language)})
        return self._without_words(words)

    def _without_words(self, texts: Any) -> str | None:
        """Return that the index has no words for one of *texts*; None if it has some for each of them."""
        for text in texts:
            if not normal_words(self._lexicon, text):
                return _("the index has no words for ${text}", {"text": repr(text)})
        return None
