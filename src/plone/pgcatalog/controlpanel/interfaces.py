"""The schema of the settings."""

from plone.pgcatalog.i18n import _
from plone.pgcatalog.settings import DEFAULTS
from zope import schema
from zope.interface import Interface


class IPGCatalogSettings(Interface):
    """Settings of a site's catalog; environment variables override two of them."""

    slow_query_ms = schema.Float(
        title=_("Slow query threshold (ms)"),
        description=_(
            "Searches that take this long or longer are recorded, and listed in the Slow Queries tab of portal_catalog."
            " 0 turns recording off."
        ),
        min=0.0,
        default=DEFAULTS["slow_query_ms"],
    )
    slow_query_mask = schema.Tuple(
        title=_("Indexes with personal search terms"),
        description=_(
            "Search terms for these indexes are left out of recorded slow queries. One index name per line; * means all"
            " indexes."
        ),
        value_type=schema.TextLine(),
        required=False,
        default=DEFAULTS["slow_query_mask"],
        missing_value=(),
    )
    result_cache_mb = schema.Float(
        title=_("Result cache (MB)"),
        description=_("Memory that each process may use to cache search results. 0 turns the cache off."),
        min=0.0,
        default=DEFAULTS["result_cache_mb"],
    )
    search_timeout = schema.Float(
        title=_("Search time limit (seconds)"),
        description=_("A search that takes longer is stopped with an error. 0 means no limit."),
        min=0.0,
        default=DEFAULTS["search_timeout"],
    )
    stemming = schema.Bool(
        title=_("Find other forms of words"),
        description=_(
            "A search for houses also finds house, in the site's languages that have a stemmer. After switching this or a"
            " language on, rebuild the catalog to include existing content."
        ),
        required=False,
        default=DEFAULTS["stemming"],
    )
    parts_of_words = schema.Bool(
        title=_("Find parts of words"),
        description=_(
            "A search for a word also finds words that contain it: haus finds Baumhaus. Quoted words are matched"
            " exactly."
        ),
        required=False,
        default=DEFAULTS["parts_of_words"],
    )
