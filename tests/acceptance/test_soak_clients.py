"""The soak's clients, on a real site: writes without an acknowledgement are looked up, and go on or are forgotten."""

from checks.soak import clients
from checks.soak.clients import Client
from checks.soak.clients import Gate
from checks.soak.clients import moved
from checks.soak.failover import Failover
from checks.soak.failover import settle
from checks.soak.ledger import ABSENT
from checks.soak.ledger import Page
from checks.soak.ledger import Version
from checks.soak.server import AREA
from checks.soak.server import FOLDERS
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from tests.acceptance.browser import served
from tests.integration.content import create
from tests.integration.web import MANAGER
from tests.integration.web import Site

import pytest
import time
import transaction


@pytest.fixture(scope="module")
def client(shared_site: Site) -> Iterator[Client]:
    """A client that has folders to write in, and has written nothing."""
    with shared_site.inside() as portal:
        area = create(portal, "Folder", AREA)
        for name in FOLDERS:
            create(area, "Folder", name)
        transaction.commit()
    with served(shared_site.db) as url:
        found = Client(0, [url], [], 1, Gate())
        found.session.auth = tuple(MANAGER.split(":"))
        yield found


def without_acknowledgement(client: Client, page: Page, *possible: Version) -> None:
    """Set the records to those of a write of *page* that an outage interrupted long ago."""
    page.possible, page.written = list(possible), float("-inf")
    client.retire(page)
    client.unknown.append(page)


@pytest.mark.parametrize("portal_type", ["Document", "Folder", "File"])
def test_creation_that_was_done_is_found_by_its_path(client: Client, portal_type: str) -> None:
    page = client.create(portal_type, f"{AREA}/f0")
    assert page.certain, page.events
    uid, version, page.uid = page.uid, page.version, None
    without_acknowledgement(client, page, ABSENT, version)
    client.resolve()
    assert (page.uid, page.possible) == (uid, [version])
    assert page in client.live


def test_creation_that_was_not_done_is_forgotten(client: Client) -> None:
    page = Page(None)
    without_acknowledgement(client, page, ABSENT, Version(f"{AREA}/f1/never", "never"))
    client.resolve()
    assert page.possible == [ABSENT]
    assert page not in client.live


@pytest.mark.parametrize("is_done", [True, False])
def test_move_is_found_by_the_uid(client: Client, is_done: bool) -> None:
    page = client.create("Document", f"{AREA}/f2")
    before = page.version
    name = str(before.path).rpartition("/")[2]
    after = Version(f"{AREA}/f3/{name}", before.title)
    if is_done:
        client.write(
            [page], lambda version: after, "move", "POST", f"{AREA}/f3/@move", json={"source": f"/{before.path}"}
        )
    without_acknowledgement(client, page, before, after)
    client.resolve()
    assert page.possible == [after if is_done else before]
    assert not client.stale


def test_writes_are_recorded_where_plone_redirects_them(client: Client) -> None:
    """As after a failover that has moved a folder back: its client still has the other path."""
    folder = client.create("Folder", f"{AREA}/f4")
    former, name = str(folder.version.path), str(folder.version.path).rpartition("/")[2]
    after = Version(f"{AREA}/f5/{name}", folder.version.title)
    client.write([folder], lambda version: after, "move", "POST", f"{AREA}/f5/@move", json={"source": f"/{former}"})
    page = client.create("Document", former)
    assert str(page.version.path).startswith(f"{after.path}/")
    page.possible = [replace(page.version, path=f"{former}/{str(page.version.path).rpartition('/')[2]}")]
    publish = partial(replace, state="published")
    client.write([page], publish, "workflow", "POST", f"{page.version.path}/@workflow/publish")
    assert client.found("resolve", {"UID": page.uid}) == [(page.uid, page.version)]
    client.delete(folder)


def test_page_that_a_failover_has_put_back_goes_with_its_folder(client: Client) -> None:
    """Zope repeats the move of a folder that a failover interrupts, with the pages that are in the folder then."""

    def move(page: Page, target: str) -> None:
        source = str(page.version.path)
        become = partial(moved, source, f"{target}/{source.rpartition('/')[2]}")
        client.write_folder(become, "move", "POST", f"{target}/@move", source, json={"source": f"/{source}"})

    folder = client.create("Folder", f"{AREA}/f6")
    page = client.create("Document", str(folder.version.path))
    move(page, f"{AREA}/f7")
    client.api("move", "POST", f"{folder.version.path}/@move", json={"source": f"/{page.version.path}"})
    failover = Failover(outage=(time.monotonic(), time.monotonic()))
    move(folder, f"{AREA}/f5")
    found = client.found("resolve", {"UID": [each.uid for each in client.pages if each.uid], "b_size": 1000})
    rows = {str(version.path): (uid, version.title, version.state) for uid, version in found or []}
    settle([client], rows, float("-inf"), failover)
    assert not failover.wrong
    assert str(page.version.path).startswith(f"{folder.version.path}/")
    client.delete(folder)


def test_number_of_pages_stays_where_it_is_enough(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    enough = len(client.live) + 3
    monkeypatch.setattr(clients, "ENOUGH", enough)
    sizes = []
    for _ in range(12):
        client.create_or_delete()
        sizes.append(len(client.live))
    assert set(sizes[4:]) == {enough - 1, enough}
