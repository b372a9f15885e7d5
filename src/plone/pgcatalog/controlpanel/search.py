"""The schema of the settings by which a site's editors tune its search."""

from collections.abc import Callable
from plone.pgcatalog.controlpanel.interfaces import _
from plone.pgcatalog.fulltext.ranking import Weights
from plone.pgcatalog.fulltext.tuning import DEFAULTS
from plone.pgcatalog.fulltext.tuning import MAX_BOOST
from plone.pgcatalog.fulltext.tuning import problems
from zope import schema
from zope.interface import Interface
from zope.interface import Invalid


#: Lines that a message names.
MAX_PROBLEMS = 5


def readable(name: str) -> Callable[[str], bool]:
    """Return a constraint for the setting *name*, which is read line by line: it raises Invalid, with what is wrong."""

    def constraint(text: str) -> bool:
        wrong = problems(name, text)
        if wrong:
            raise Invalid("; ".join(wrong[:MAX_PROBLEMS]))
        return True

    return constraint


def _weight(part: str, title: str, description: str = "") -> schema.Float:
    return schema.Float(title=title, description=description, min=0.0, max=MAX_BOOST, default=getattr(Weights(), part))


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
    type_boosts = schema.Text(
        title=_("Content types"),
        description=_(
            "Factors for the relevance of content types, one type per line: News Item = 2. Other types have a factor of"
            " 1."
        ),
        required=False,
        default=DEFAULTS["type_boosts"],
        missing_value="",
        constraint=readable("type_boosts"),
    )
    pins = schema.Text(
        title=_("Pinned pages"),
        description=_(
            "Pages that come first in searches for certain words, one per line: opening hours = /contact. After the"
            " equals sign, give a path in the site, or a UID, which stays valid when the page is moved. Users who may"
            " not view the page do not find it."
        ),
        required=False,
        default=DEFAULTS["pins"],
        missing_value="",
        constraint=readable("pins"),
    )
    synonyms = schema.Text(
        title=_("Synonyms"),
        description=_(
            "Words that find each other, one group per line: car, automobile, motor vehicle. For one direction only:"
            " tv => television."
        ),
        required=False,
        default=DEFAULTS["synonyms"],
        missing_value="",
        constraint=readable("synonyms"),
    )
    stop_words = schema.Text(
        title=_("Stop words"),
        description=_(
            "Words that a page may lack if it has the other words of a search, one language per line: en: the, a, of."
        ),
        required=False,
        default=DEFAULTS["stop_words"],
        missing_value="",
        constraint=readable("stop_words"),
    )
