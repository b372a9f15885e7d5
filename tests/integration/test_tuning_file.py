"""The tuning of a site as a text file: its checks, the panel, profiles and the command."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from plone.pgcatalog.controlpanel.tuning_import import findings
from plone.pgcatalog.controlpanel.tuning_import import import_tuning
from plone.pgcatalog.controlpanel.tuning_import import MOST_BYTES
from plone.pgcatalog.controlpanel.tuning_import import tuning_text
from plone.pgcatalog.fulltext.tuning import LineError
from plone.pgcatalog.settings import site_settings
from plone.pgcatalog.setuphandlers import export_tuning_file
from plone.pgcatalog.setuphandlers import import_tuning_file
from Products.GenericSetup.context import DirectoryExportContext
from Products.GenericSetup.context import DirectoryImportContext
from tests.integration import site as sites
from tests.integration.content import create
from tests.integration.people import add_users
from tests.integration.web import MANAGER
from tests.integration.web import Site
from tests.integration.web import Web
from typing import Any

import html
import pytest
import transaction


PANEL = "/plone/@@pgcatalog-search-controlpanel"
GOOD = """\
[type_boosts]
Document = 2

[pins]
opening hours = /page

[synonyms]
car, automobile
tv => television

[stop_words]
en: the, a
"""


@pytest.fixture(scope="module")
def site(shared_site: Site) -> Iterator[Any]:
    """(portal, Web): a site with a page and users; the tests leave no change."""
    with sites.inside(shared_site.db) as portal:
        add_users(portal)
        create(portal, "Document", "page", title="Opening hours")
        transaction.commit()
        yield portal, Web(shared_site.db)
        transaction.abort()


@pytest.fixture
def tool(site: Any) -> Iterator[Any]:
    yield site[0].portal_catalog
    transaction.abort()


def upload(web: Web, login: str, content: bytes, **fields: str) -> Any:
    """Send *content* as a browser sends the file of the panel's form, with *fields*."""
    parts = [f'Content-Disposition: form-data; name="{name}"\r\n\r\n{value}' for name, value in fields.items()]
    disposition = (
        'Content-Disposition: form-data; name="tuning_file"; filename="a.txt"\r\nContent-Type: text/plain\r\n\r\n'
    )
    body = b"".join(f"--limit\r\n{part}\r\n".encode() for part in parts)
    body += b"--limit\r\n" + disposition.encode() + content + b"\r\n--limit--\r\n"
    environ = web._environ("POST", PANEL, login, "text/html") | {
        "CONTENT_TYPE": "multipart/form-data; boundary=limit",
        "CONTENT_LENGTH": str(len(body)),
        "wsgi.input": BytesIO(body),
    }
    return web._send(environ)


def test_imported_tuning_is_exported_unchanged(tool: Any) -> None:
    assert import_tuning(tool, GOOD) == ["type_boosts", "pins", "synonyms", "stop_words"]
    assert tuning_text(tool).startswith(GOOD)
    assert findings(tool, GOOD) == []
    # A missing section changes nothing, an empty one empties the setting.
    import_tuning(tool, "[pins]\n")
    saved = site_settings(tool)
    assert (saved["pins"], saved["synonyms"]) == ("", "car, automobile\ntv => television")


@pytest.mark.parametrize(
    ("section", "line", "reason"),
    [
        ("type_boosts", "Nothing = 2", "no content type"),
        ("pins", "hours = /nowhere", "no page"),
        ("pins", "hours = 3ac0c8e1b1f94bd4a3d8d4a57b2f1d10", "no page"),
        ("pins", "?! = /page", "no words for"),
        ("synonyms", "car, -", "no words for"),
        ("synonyms", "Car, car", "are the same"),
        ("synonyms", "motor vehicle => car", "only single words"),
        ("stop_words", "sv: och", "no language"),
        ("stop_words", "en: the, !", "no words for"),
    ],
)
def test_lines_without_an_effect_are_found(tool: Any, section: str, line: str, reason: str) -> None:
    [finding] = findings(tool, f"# comment\n[{section}]\n{line}\n")
    assert (finding.line, finding.is_error) == (3, False)
    assert reason in finding.message.mapping["problem"]


def test_unreadable_line_changes_nothing(tool: Any) -> None:
    before = dict(site_settings(tool))
    with pytest.raises(LineError, match="Line 5: 'nowhere' is not of the form"):
        import_tuning(tool, "[synonyms]\na, b\n[pins]\nx = /y\nnowhere")
    assert site_settings(tool) == before


def test_profile_contains_the_file(site: Any, tool: Any, tmp_path: Path) -> None:
    portal, _ = site
    profile = DirectoryImportContext(portal.portal_setup, str(tmp_path))
    import_tuning_file(profile)
    assert not site_settings(tool).get("pins")
    file = tmp_path / "pgcatalog_tuning.txt"
    file.write_bytes(GOOD.encode() + b"\n[pins]\nb = /nowhere\n")
    import_tuning_file(profile)
    assert "Line 15: there is no page '/nowhere'" in str(profile.listNotes())
    export_tuning_file(DirectoryExportContext(portal.portal_setup, str(tmp_path)))
    assert b"opening hours = /page\nb = /nowhere\n" in file.read_bytes()
    file.write_bytes(b"[pins]\nx")
    with pytest.raises(LineError):
        import_tuning_file(profile)


def test_uploaded_file_fills_the_form_and_saves_nothing(site: Any) -> None:
    portal, web = site
    page = upload(web, MANAGER, GOOD.encode() + b"[pins]\nhours = /nowhere", read_file="1")
    text = html.unescape(page.text)
    assert page.status == 200
    assert "opening hours = /page" in text.partition('name="form.widgets.pins"')[2].partition("</textarea>")[0]
    assert "Line 14: there is no page '/nowhere'" in text.partition('id="tuning-findings"')[2].partition("</ul>")[0]
    transaction.begin()
    assert not site_settings(portal.portal_catalog).get("pins")
    assert web.get("/plone/@@pgcatalog-tuning.txt", MANAGER).text == tuning_text(portal.portal_catalog)
    for content, problem in (
        (b"\xff", "not a text in UTF-8"),
        (b"# " + b"x" * MOST_BYTES, "larger than 1 MB"),
        (b"[x]", "no section 'x'"),
    ):
        assert problem in html.unescape(upload(web, MANAGER, content, read_file="1").text)


@pytest.mark.parametrize("login", [None, "mara:secret", "edith:secret"])
def test_file_needs_the_permission_of_the_panel(site: Any, login: str | None) -> None:
    assert site[1].get("/plone/@@pgcatalog-tuning.txt", login, "application/json").status == 401
