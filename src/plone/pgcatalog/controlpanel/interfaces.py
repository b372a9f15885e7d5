"""The schema of the settings."""

from plone.pgcatalog.settings import DEFAULTS
from zope import schema
from zope.i18nmessageid import MessageFactory
from zope.interface import Interface


_ = MessageFactory("plone.pgcatalog")


class IPGCatalogSettings(Interface):
    """Settings of a site's catalog; environment variables override them."""

    slow_query_ms = schema.Float(
        title=_("Slow queries from (milliseconds)"),
        description=_("Searches that take longer are recorded and shown in the tab Slow Queries. 0 records none."),
        min=0.0,
        default=DEFAULTS["slow_query_ms"],
    )
    slow_query_mask = schema.Tuple(
        title=_("Indexes with personal search terms"),
        description=_(
            "What was searched for in these indexes is not recorded with slow queries. One name per line; * stands for"
            " all."
        ),
        value_type=schema.TextLine(),
        required=False,
        default=DEFAULTS["slow_query_mask"],
        missing_value=(),
    )
    result_cache_mb = schema.Float(
        title=_("Cache of answers (megabytes)"),
        description=_("How much memory each process may use to keep answers. 0 keeps none."),
        min=0.0,
        default=DEFAULTS["result_cache_mb"],
    )
    search_timeout = schema.Float(
        title=_("Time limit of searches (seconds)"),
        description=_("A search that takes longer is stopped and answered with an error. 0 is no limit."),
        min=0.0,
        default=DEFAULTS["search_timeout"],
    )
    stemming = schema.Bool(
        title=_("Find other forms of words"),
        description=_(
            "A search for houses also finds house, in those languages of the site that have a stemmer. When this, or a"
            " language, is switched on, what is catalogued already has to be reindexed."
        ),
        required=False,
        default=DEFAULTS["stemming"],
    )
    parts_of_words = schema.Bool(
        title=_("Find parts of words"),
        description=_(
            "A search for a word finds the words that contain it, too: haus finds Baumhaus. Words in quotes are found as"
            " they are."
        ),
        required=False,
        default=DEFAULTS["parts_of_words"],
    )
