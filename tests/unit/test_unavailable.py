"""Classification of errors: outage, timeout, exceeded limit, or none of these."""

from collections.abc import Iterator
from plone.pgcatalog import unavailable
from plone.pgcatalog.database import errors
from plone.pgcatalog.query.expression import LimitExceeded
from plone.pgcatalog.query.expression import QueryError
from plone.pgcatalog.storage import PackConflict
from scripts import messages
from typing import Any
from ZODB.POSException import ConflictError
from ZODB.POSException import POSKeyError
from zope.component import getGlobalSiteManager
from zope.component import provideUtility
from zope.i18n.gettextmessagecatalog import GettextMessageCatalog
from zope.i18n.interfaces import ITranslationDomain
from zope.i18n.translationdomain import TranslationDomain

import logging
import psycopg
import psycopg_pool
import pytest
import sys
import traceback


OUTAGES = {"57P01", "57P02", "57P03", "57P04", "57P05", "53300"}
TIMEOUTS = {"57014"}
#: Disk space, memory, files.
SHORTAGES = {"53000", "53100", "53200", "53400", "58000", "58030", "58P01", "58P02", "58P03"}
#: All errors of a server that psycopg classifies as operational and has names for.
OPERATIONAL = {
    error.sqlstate
    for error in vars(psycopg.errors).values()
    if isinstance(error, type) and issubclass(error, psycopg.OperationalError) and error.sqlstate
}


def test_only_a_lost_or_refused_connection_is_an_outage() -> None:
    assert {*OUTAGES, *TIMEOUTS, *SHORTAGES, "08006", "54001", "54011", "55P03"} <= OPERATIONAL
    for sqlstate in OPERATIONAL:
        is_outage = sqlstate in OUTAGES or sqlstate.startswith("08")
        told = (
            unavailable.TEXT
            if is_outage
            else unavailable.TIMED_OUT
            if sqlstate in TIMEOUTS
            else unavailable.NO_ROOM
            if sqlstate in SHORTAGES
            else None
        )
        answer = unavailable.response_to(psycopg.errors.lookup(sqlstate)("of PostgreSQL"))
        found = answer and (answer.status[:3], answer.text, answer.headers["Retry-After"])
        assert found == (told and ("503", told, "10")), sqlstate


def test_server_without_room_is_no_outage() -> None:
    """A reader would repeat the request, and finally report that there is no database."""
    for sqlstate in SHORTAGES:
        error = psycopg.errors.lookup(sqlstate)
        with pytest.raises(error) as raised, errors.transient_reads():
            raise error("of PostgreSQL")
        assert type(raised.value) is error


def test_a_lost_connection_is_a_conflict() -> None:
    """Plone renders a page without a portlet that raises any other error."""
    assert issubclass(errors.ServiceUnavailable, ConflictError)


@pytest.mark.parametrize(
    ("error", "status", "text"),
    [
        (psycopg.OperationalError("connection refused"), "503", unavailable.TEXT),
        (psycopg_pool.PoolTimeout("no connection"), "503", unavailable.TEXT),
        (errors.ServiceUnavailable("lost"), "503", unavailable.TEXT),
        (errors.SearchTimeout("longer than 3 s"), "503", unavailable.SEARCH_TIMED_OUT),
        (LimitExceeded("more than 3 words"), "400", "more than 3 words"),
    ],
)
def test_errors_have_their_answers(error: Exception, status: str, text: str) -> None:
    answer = unavailable.response_to(error)
    assert answer is not None
    assert (answer.status[:3], answer.text) == (status, text)
    assert ("Retry-After" in answer.headers) == (status == "503")


def test_other_errors_are_not_answered() -> None:
    for error in (QueryError("no such index"), ValueError("x"), psycopg.DataError("x")):
        assert unavailable.response_to(error) is None

    def application(environ: Any, start_response: Any) -> Any:
        raise psycopg.errors.LockNotAvailable("no lock")

    with pytest.raises(psycopg.errors.LockNotAvailable):
        unavailable.make_filter({})(application)({}, lambda *answer: None)


@pytest.fixture
def german() -> Iterator[None]:
    """The German translation, as registered by Zope."""
    domain = TranslationDomain(messages.DOMAIN)
    domain.addCatalog(GettextMessageCatalog("de", messages.DOMAIN, str(next(messages.LOCALES.glob("de/*/*.mo")))))
    provideUtility(domain, ITranslationDomain, messages.DOMAIN)
    yield
    getGlobalSiteManager().unregisterUtility(domain, ITranslationDomain, messages.DOMAIN)


@pytest.mark.parametrize(
    ("environ", "beginning"),
    [
        ({}, "The database"),
        ({"HTTP_ACCEPT_LANGUAGE": "fr-CA, fr"}, "The database"),
        ({"HTTP_ACCEPT_LANGUAGE": "en, de;q=0.5"}, "The database"),
        ({"HTTP_ACCEPT_LANGUAGE": "de-AT, en;q=0.5"}, "Die Datenbank"),
        ({"HTTP_ACCEPT_LANGUAGE": "en", "LANGUAGE": "de"}, "Die Datenbank"),
        ({"LANGUAGE": ["de"]}, "The database"),
    ],
)
def test_the_answer_is_in_the_language_of_the_request(environ: dict[str, Any], beginning: str, german: None) -> None:
    answer = unavailable.response_to(psycopg.OperationalError("connection refused"))
    assert answer is not None
    assert answer.message_for(environ).startswith(beginning)


@pytest.mark.parametrize(
    ("error", "is_outage"),
    [
        (psycopg_pool.PoolTimeout("couldn't get\na connection"), True),
        (psycopg.errors.AdminShutdown("terminating"), True),
        (psycopg.errors.DiskFull("no space left"), False),
        (POSKeyError(b"\0" * 8), False),
    ],
)
def test_outage_logs_one_line_and_other_errors_log_all(error: Exception, is_outage: bool) -> None:
    try:
        raise error
    except type(error):
        record = logging.LogRecord("x", logging.ERROR, "", 0, "not loaded: %s", ("100 %s",), sys.exc_info())
    assert errors.shorten_outage(record)
    told = logging.Formatter().format(record)
    assert told.startswith("not loaded: 100 %s")
    assert (len(told.splitlines()) == 1, "Traceback" in told) == (is_outage, not is_outage)
    assert type(error).__name__ in told


def test_conflicting_pack_is_one_line_for_administrators_and_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    answer = unavailable.response_to(PackConflict("nothing was packed"))
    assert answer is not None
    assert (answer.status[:3], answer.text) == ("503", unavailable.NOT_PACKED)
    logger = logging.getLogger("x.SiteErrorLog")
    logger.addFilter(errors.shorten_pack)
    for error in (PackConflict("nothing was packed"), ValueError("not ours")):
        told = "".join(traceback.format_exception(error)).rstrip()
        logger.error("17.5 http://nohost/manage_pack\nTraceback (innermost last):\n  Module x\n%s", told)
    ours, other = [record.getMessage() for record in caplog.records]
    assert "manage_pack" in ours
    assert "nothing was packed" in ours
    assert len(ours.splitlines()) == 1
    assert "Traceback" in other
