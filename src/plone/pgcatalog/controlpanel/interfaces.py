"""The schemas of the settings; ``settings.SETTINGS`` has the default of each."""

from collections.abc import Callable
from plone.pgcatalog import settings
from plone.pgcatalog.discovery.facet_groups import kind_of
from plone.pgcatalog.files.file_kinds import INDEX as KIND_OF_FILE
from plone.pgcatalog.fulltext.tuning import problems
from plone.pgcatalog.i18n import _
from plone.pgcatalog.i18n import translated
from plone.pgcatalog.meaning.embedder import is_url
from plone.pgcatalog.settings import LARGEST
from plone.pgcatalog.settings import Setting
from plone.registry.interfaces import IRegistry
from Products.CMFCore.utils import getToolByName
from typing import Any
from zope import schema
from zope.component import queryUtility
from zope.component.hooks import getSite
from zope.globalrequest import getRequest
from zope.i18n import translate
from zope.interface import directlyProvides
from zope.interface import Interface
from zope.interface import Invalid
from zope.schema.interfaces import IVocabularyFactory
from zope.schema.vocabulary import SimpleTerm
from zope.schema.vocabulary import SimpleVocabulary


#: Maximum number of invalid lines in a message.
MAX_PROBLEMS = 5
FIELD_TYPES = {bool: schema.Bool, float: schema.Float, int: schema.Int, str: schema.Text, tuple: schema.Tuple}


def field(setting: Setting[Any], title: str, description: str = "", **options: Any) -> schema.Field:
    """Return the field of *setting*; its type is that of the default."""
    default = setting.default
    options |= {"title": title, "description": description, "default": default}
    if isinstance(default, str | tuple):
        options |= {"required": False, "missing_value": type(default)()}
    elif isinstance(default, bool):
        options |= {"required": False}
    else:
        options |= {"min": type(default)(0), "max": None if setting.most == LARGEST else setting.most}
    return FIELD_TYPES[type(default)](**options)


def line(setting: Setting[str], title: str, description: str = "", **options: Any) -> schema.Field:
    """Return the field of a *setting* of one line."""
    texts = {"title": title, "description": description, "default": setting.default}
    return schema.TextLine(required=False, missing_value="", **texts, **options)


def is_empty_or_url(text: str) -> bool:
    """Raise Invalid unless *text* is empty or the URL of an embedder; return True."""
    if text and not is_url(text):
        raise Invalid(translated(_("Please enter a URL that begins with http:// or https://."), getRequest()))
    return True


def lines(setting: Setting[str], title: str, description: str) -> schema.Field:
    """Return the field of a *setting* whose value is parsed line by line."""
    return field(setting, title, description, constraint=readable(setting.name))


def readable(name: str) -> Callable[[str], bool]:
    """Return a constraint for the setting *name*, which is parsed line by line; it raises Invalid with the invalid lines."""

    def constraint(text: str) -> bool:
        wrong = problems(name, text)
        if wrong:
            request = getRequest()
            raise Invalid("; ".join(translated(problem, request) for problem in wrong[:MAX_PROBLEMS]))
        return True

    return constraint


class IPGCatalogSettings(Interface):
    """Settings of a site's catalog; environment variables override two of them."""

    slow_query_ms = field(
        settings.slow_query_ms,
        _("Slow query threshold (ms)"),
        _(
            "Searches that take this long or longer are recorded, and listed in the Slow Queries tab of portal_catalog."
            " 0 turns recording off."
        ),
    )
    slow_query_mask = field(
        settings.slow_query_mask,
        _("Indexes with personal search terms"),
        _(
            "Search terms for these indexes are left out of recorded slow queries. One name for each line or entry; * means"
            " all indexes."
        ),
        value_type=schema.TextLine(),
    )
    result_cache_mb = field(
        settings.result_cache_mb,
        _("Result cache (MB)"),
        _("Memory that each process may use to cache search results. 0 turns the cache off."),
    )
    search_timeout = field(
        settings.search_timeout,
        _("Search time limit (seconds)"),
        _("A search that takes longer is stopped with an error. 0 means no limit."),
    )
    stemming = field(
        settings.stemming,
        _("Find other forms of words"),
        _(
            "A search for houses also finds house, in the site's languages that have a stemmer. After switching this or a"
            " language on, rebuild the catalog to include existing content."
        ),
    )
    split_compounds = field(
        settings.split_compounds,
        _("Find compounds by their parts"),
        _(
            "A search for Antrag also finds Urlaubsantrag, if enough pages have both parts as words; in Danish, Dutch, Finnish,"
            " German, Norwegian and Swedish. Needs “Find other forms of words”. After switching this on, rebuild the catalog, which"
            " learns the parts."
        ),
    )
    parts_of_words = field(
        settings.parts_of_words,
        _("Find parts of words"),
        _(
            "A search for a word also finds words that contain it: haus finds Baumhaus. Quoted words are matched"
            " exactly."
        ),
    )
    text_of_files = field(
        settings.text_of_files,
        _("Index the text of files"),
        _(
            "Searches find the words of PDF, Office and OpenDocument files a few seconds after they were saved. Needs"
            " the extra plone.pgcatalog[files]. For existing files, run pgcatalog files --backfill."
        ),
    )
    text_of_scans = field(
        settings.text_of_scans,
        _("Recognise the text of scanned pages"),
        _(
            "Searches find the words of pages of PDF files that are pictures, and of pictures, after all other work is done."
            " Needs Tesseract with the languages of the site where the worker runs, and some seconds for each page. Saving"
            " queues the existing files."
        ),
    )

    embedder_url = line(
        settings.embedder_url,
        _("Embedder: URL"),
        _(
            "Base URL of an OpenAI-compatible API that computes vectors of texts, such as http://127.0.0.1:8000/v1."
            " The texts of pages are sent to it, so that pages can be found by meaning, too. If empty, nothing is sent"
            " and pages are found by words only. Needs the extra plone.pgcatalog[meaning], and pgvector on the"
            " database server."
        ),
        constraint=is_empty_or_url,
    )
    embedder_model = line(
        settings.embedder_model,
        _("Embedder: model"),
        _(
            "Name of the model; {kind} in it stands for query or passage. After a change, the vectors of all pages are"
            " computed again."
        ),
    )
    embedder_question_prefix = line(
        settings.embedder_question_prefix,
        _("Embedder: prefix of questions"),
        _("Text put before each question; the documentation of the model names it."),
    )
    embedder_passage_prefix = line(
        settings.embedder_passage_prefix,
        _("Embedder: prefix of pages"),
        _("Text put before each part of a page. After a change, the vectors of all pages are computed again."),
    )
    meaning_of_private = field(
        settings.meaning_of_private,
        _("Send pages that are not public to the embedder"),
        _(
            "If disabled, these pages are found by words only, and their vectors are deleted. If enabled again, all"
            " of them are sent again."
        ),
    )


class IPGCatalogSearchSettings(Interface):
    """Settings that tune the search: further words and pages, and the order of hits; no reindexing is needed."""

    weight_title = field(
        settings.weight_title,
        _("Words in titles"),
        _("Weight of words in titles, relative to the three weights below."),
    )
    weight_description = field(settings.weight_description, _("Words in descriptions"))
    weight_keywords = field(settings.weight_keywords, _("Words in tags"))
    weight_body = field(settings.weight_body, _("Words anywhere else"))
    type_boosts = lines(
        settings.type_boosts,
        _("Content types"),
        _(
            "Factors for the relevance of content types, one type per line: News Item = 2. Other types have a factor of"
            " 1, but on search pages links, files and images have one of 0.5."
        ),
    )
    half_lives = lines(
        settings.half_lives,
        _("Half-lives"),
        _(
            "Time after which a page of a content type counts half, one type per line: News Item = 90 days. It is"
            " counted from the publication date; pages without one, and other types, always count fully."
        ),
    )
    pins = lines(
        settings.pins,
        _("Pinned pages"),
        _(
            "Pages that come first in searches for certain words, one per line: opening hours = /contact. After the"
            " equals sign, give a path in the site, or a UID, which stays valid when the page is moved. Users who may"
            " not view the page do not find it. A pin can have a period and a section of the site: tickets = /fair below"
            " /en from 2026-12-01 until 2026-12-24. To leave a page out of these searches: tickets => -/old-fair."
        ),
    )
    hidden_pages = lines(
        settings.hidden_pages,
        _("Hidden pages"),
        _(
            "Pages that searches of visitors leave out, one per line: hide = /archive. A path in the site also stands for"
            " the pages below it; a UID for one page only. Listings and other pages of the site still show them."
        ),
    )
    synonyms = lines(
        settings.synonyms,
        _("Synonyms"),
        _(
            "Words with the same meaning, one group per line: car, automobile, motor vehicle. A search for one of"
            " them finds all. For one direction only: tv => television."
        ),
    )
    stop_words = lines(
        settings.stop_words,
        _("Stop words"),
        _(
            "Words of a search that are optional if a page has the other words, one language per line: en: the, a,"
            " of. On search pages, the list below the form applies to languages of the site without a line; en:"
            " without words turns it off."
        ),
    )
    search_by_meaning = field(
        settings.search_by_meaning,
        _("Search by meaning"),
        _(
            "Searches also find pages with the same meaning in other words. Needs an embedder, which is set in the"
            " control panel PostgreSQL Catalog."
        ),
    )
    meaning_threshold = field(
        settings.meaning_threshold,
        _("Minimum similarity"),
        _(
            "Similarity, from 0 to 1, from which a page without the words of a search is found by its meaning. 0"
            " stands for the value measured for the model."
        ),
    )
    related_pages = field(
        settings.related_pages,
        _("Similar pages"),
        _(
            "Maximum number of pages with a similar text that Classic UI shows below a page. Pages that the visitor"
            " may not view are left out. 0 turns this off."
        ),
    )
    record_searches = field(
        settings.record_searches,
        _("Count searches"),
        _(
            "Count the words that anonymous visitors search for, for four weeks, and show them in Search Tuning. The"
            " visitors are not recorded."
        ),
    )
    record_member_searches = field(
        settings.record_member_searches,
        _("Count searches of members"),
        _(
            "Count the words that logged-in users search for. They are shown if three different users have searched for"
            " them on one day. The users are not recorded."
        ),
    )
    record_opened = field(
        settings.record_opened,
        _("Count opened hits"),
        _(
            "Count how often visitors open a hit on the search page with facets, to list searches of whose hits none was"
            " opened. Their browsers send the words of the search, without cookies."
        ),
    )
    suggest_searches = field(
        settings.suggest_searches,
        _("Suggest searches of others"),
        _(
            "Suggest searches that found something and that several people have made in the last 90 days, if the visitor"
            " may view a page with their words. Searches are then stored for 90 days."
        ),
    )


class IPGCatalogSearchPageSettings(Interface):
    """Settings of the search page of Classic UI."""

    search_page = field(
        settings.search_page,
        _("Search page with facets"),
        _("Replace Plone's search page in Classic UI by one with facets, snippets and corrections."),
    )
    search_facets = field(
        settings.search_facets,
        _("Facets"),
        _(
            "Indexes by which visitors can filter a search in Classic UI, in this order. Date indexes are grouped by"
            " year and month, path by the top folders of the site. kind_of_file adds an index, which is filled in the"
            " background. In Volto, each search block has its own facets."
        ),
        value_type=schema.Choice(vocabulary="plone.pgcatalog.Facets"),
    )
    count_limit = field(
        settings.count_limit,
        _("Count hits up to"),
        _(
            "If more pages match, the search page of Classic UI says “more than” this number, which is faster on very large"
            " sites. 0 means no limit. Where facets are shown, all hits are counted."
        ),
    )
    all_sites = field(
        settings.all_sites,
        _("Search all sites"),
        _(
            "The search page also finds pages of other sites in the same database, if these sites are offered to other sites."
            " Visitors find what they may view there."
        ),
    )
    offered_to_sites = field(
        settings.offered_to_sites,
        _("Offer this site to other sites"),
        _(
            "Search pages of other sites in the same database may find the pages of this site that their visitors may view"
            " here."
        ),
    )
    public_url = line(
        settings.public_url,
        _("Public URL of this site"),
        _(
            "The URL with which links from other sites to pages of this site begin, such as https://www.example.org. If empty,"
            " links use the server on which the search is made."
        ),
        constraint=is_empty_or_url,
    )


def facets(context: Any) -> SimpleVocabulary:
    """Return the names of the indexes that can be facets, and the default ones, so that the default is always valid.

    The name of the index of kinds of files is included: a site that chooses it gets the index.
    """
    catalog = getToolByName(getSite(), "portal_catalog")
    names = {index.getId() for index in catalog.index_objects() if kind_of(index) is not None}
    names |= {*settings.search_facets.default, KIND_OF_FILE}
    return SimpleVocabulary([SimpleTerm(n, n, _title(n)) for n in sorted(names)])


def _title(name: str) -> str:
    """Return the name of an index, with its title in Plone's collections."""
    registry = queryUtility(IRegistry)
    title = registry.get(f"plone.app.querystring.field.{name}.title") if registry is not None else None
    if name == KIND_OF_FILE:
        title = _("Kind of file")
    return f"{name} ({translate(title, context=getRequest())})" if title else name


directlyProvides(facets, IVocabularyFactory)
