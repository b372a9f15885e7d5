"""The schema of the settings by which a site's editors tune its search."""

from collections.abc import Callable
from plone.pgcatalog.fulltext.ranking import Weights
from plone.pgcatalog.fulltext.tuning import DEFAULTS
from plone.pgcatalog.fulltext.tuning import MAX_BOOST
from plone.pgcatalog.fulltext.tuning import problems
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import translated
from plone.pgcatalog.settings import MAX_RELATED
from plone.pgcatalog.settings import SEARCH_DEFAULTS
from zope import schema
from zope.globalrequest import getRequest
from zope.interface import Interface
from zope.interface import Invalid


#: Lines that a message names.
MAX_PROBLEMS = 5


def readable(name: str) -> Callable[[str], bool]:
    """Return a constraint for the setting *name*, which is read line by line: it raises Invalid, with what is wrong."""

    def constraint(text: str) -> bool:
        wrong = problems(name, text)
        if wrong:
            request = getRequest()
            raise Invalid("; ".join(translated(problem, request) for problem in wrong[:MAX_PROBLEMS]))
        return True

    return constraint


def _weight(part: str, title: str, description: str = "") -> schema.Float:
    return schema.Float(title=title, description=description, min=0.0, max=MAX_BOOST, default=getattr(Weights(), part))


def _lines(name: str, title: str, description: str) -> schema.Text:
    """Return the field of a setting that is read line by line."""
    return schema.Text(
        title=title,
        description=description,
        required=False,
        default=DEFAULTS[name],
        missing_value="",
        constraint=readable(name),
    )


class IPGCatalogSearchSettings(Interface):
    """What a search finds besides its own words, and what comes first; effective at once, without reindexing."""

    weight_title = _weight(
        "title",
        _("Words in titles"),
        _("Weight of words in titles, relative to the three weights below."),
    )
    weight_description = _weight("description", _("Words in descriptions"))
    weight_keywords = _weight("keywords", _("Words in keywords"))
    weight_body = _weight("body", _("Words anywhere else"))
    type_boosts = _lines(
        "type_boosts",
        _("Content types"),
        _(
            "Factors for the relevance of content types, one type per line: News Item = 2. Other types have a factor of"
            " 1."
        ),
    )
    pins = _lines(
        "pins",
        _("Pinned pages"),
        _(
            "Pages that come first in searches for certain words, one per line: opening hours = /contact. After the"
            " equals sign, give a path in the site, or a UID, which stays valid when the page is moved. Users who may"
            " not view the page do not find it."
        ),
    )
    synonyms = _lines(
        "synonyms",
        _("Synonyms"),
        _(
            "Words that find each other, one group per line: car, automobile, motor vehicle. For one direction only:"
            " tv => television."
        ),
    )
    stop_words = _lines(
        "stop_words",
        _("Stop words"),
        _("Words that a page may lack if it has the other words of a search, one language per line: en: the, a, of."),
    )
    related_pages = schema.Int(
        title=_("Similar pages"),
        description=_(
            "How many pages with a similar text are shown below a page, of those that the visitor may view. 0 shows none."
        ),
        min=0,
        max=MAX_RELATED,
        default=SEARCH_DEFAULTS["related_pages"],
    )
    record_searches = schema.Bool(
        title=_("Count searches"),
        description=_(
            "The words that visitors search for without having logged in are counted for four weeks, to be shown on this"
            " page. Who has searched is not recorded."
        ),
        required=False,
        default=SEARCH_DEFAULTS["record_searches"],
    )
