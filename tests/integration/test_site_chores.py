"""Operations of managers on a whole site: upgrades, snapshots, repeated steps of Plone, workflow and sharing updates.

After each the catalog is ours, and has for all users the hits of a newly filled ZCatalog.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from plone.app.contentrules.actions.workflow import WorkflowAction
from plone.app.contentrules.rule import Rule
from plone.app.iterate.interfaces import ICheckinCheckoutPolicy
from plone.contentrules.engine.assignments import RuleAssignment
from plone.contentrules.engine.interfaces import IRuleAssignmentManager
from plone.contentrules.engine.interfaces import IRuleStorage
from plone.distribution.api.site import create as make_site
from plone.distribution.core import Distribution
from plone.distribution.handler import post_handler
from plone.distribution.interfaces import IDistribution
from plone.exportimport.exporters import get_exporter
from plone.exportimport.importers import get_importer
from plone.pgcatalog.catalog import PlonePGCatalogTool
from Products.CMFPlone.factory import _DEFAULT_PROFILE
from Products.CMFPlone.factory import addPloneSite
from Products.GenericSetup.context import TarballImportContext
from tests.integration import site as sites
from tests.integration.catalog_xml import exported
from tests.integration.catalog_xml import importable
from tests.integration.catalog_xml import imported
from tests.integration.content import create
from tests.integration.content import populate
from tests.integration.fixtures import PROFILE
from tests.integration.fixtures import SiteWith
from tests.integration.oracle import answer
from tests.integration.oracle import make_oracle
from tests.integration.people import acting_as
from tests.integration.people import add_users
from tests.integration.people import make_content
from tests.integration.people import PEOPLE
from tests.integration.people import publish
from tests.integration.people import share
from tests.integration.web import MANAGER
from tests.integration.web import Site
from typing import Any
from zope.component import getGlobalSiteManager
from zope.component import getUtility
from zope.component.hooks import setSite
from zope.lifecycleevent import IObjectAddedEvent

import json
import plone.volto
import pytest
import shutil
import transaction


pytestmark = pytest.mark.slow

#: The last version of the profile of Plone 6.0 and the first of 6.1, without later steps.
OLDER = {"6.0": "6027", "6.1": "6100"}
QUERIES: tuple[dict[str, Any], ...] = (
    {"path": "/plone", "sort_on": "getId"},
    {"path": "/plone", "sort_on": "sortable_title", "review_state": "published"},
    {"review_state": "private", "sort_on": "getId"},
    {"SearchableText": "page"},
    {"Subject": "Rot", "sort_on": "getId"},
    {"object_provides": "plone.app.contenttypes.interfaces.IDocument", "sort_on": "getId"},
)


def fill(portal: Any) -> None:
    populate(portal)
    add_users(portal)


@pytest.fixture
def site(site_with: SiteWith) -> Iterator[Site]:
    with sites.opened(site_with(fill)) as db:
        yield Site(db)


def assert_agrees(portal: Any) -> None:
    """Check that our catalog has for all users the answers of a ZCatalog filled from the same objects."""
    assert isinstance(portal.portal_catalog.aq_base, PlonePGCatalogTool)
    transaction.commit()
    oracle = make_oracle(portal)
    for person in PEOPLE:
        with acting_as(portal, person):
            for query in QUERIES:
                method = "searchResults"
                assert answer(portal.portal_catalog, query, method) == answer(oracle, query, method), (person, query)
    assert answer(portal.portal_catalog, QUERIES[0])[1] > 10


@pytest.mark.parametrize("version", OLDER)
def test_an_older_site_is_upgraded_with_our_catalog_in_place(site: Site, version: str) -> None:
    with site.inside() as portal:
        portal.portal_setup.setLastVersionForProfile(_DEFAULT_PROFILE, OLDER[version])
        paths = set(portal.portal_catalog._catalog.uids)
    assert site.web.get("/plone/@@plone-upgrade", MANAGER).status == 200
    done = site.post("/plone/@@plone-upgrade", **{"form.submitted": "1"})
    assert done.status == 200, done.text[-2000:]
    with site.inside() as portal:
        setup = portal.portal_setup
        version = setup.getVersionForProfile(_DEFAULT_PROFILE)
        assert ".".join(setup.getLastVersionForProfile(_DEFAULT_PROFILE)) == version
        assert set(portal.portal_catalog._catalog.uids) == paths
        assert_agrees(portal)


def test_an_export_of_the_whole_site_has_our_tool_and_is_imported_by_its_steps(site: Site) -> None:
    with site.inside() as portal:
        archive = portal.portal_setup.runAllExportSteps()["tarball"]
    with site.inside() as portal:
        context = TarballImportContext(portal.portal_setup, archive, should_purge=False)
        assert b'meta_type="PG Catalog Tool"' in context.readDataFile("catalog.xml")
        for step in ("toolset", "rolemap", "workflow", "typeinfo"):
            portal.portal_setup._doRunImportStep(step, context)
        assert_agrees(portal)


def add_fields(portal: Any) -> None:
    """Add an index and a metadata column that a new site does not have."""
    portal.portal_catalog.addIndex("addon_field", "FieldIndex")
    portal.portal_catalog.addColumn("addon_column")


def import_everything(portal: Any, archive: bytes) -> dict[str, type[Exception]]:
    """Run all import steps with a snapshot of another site; return the failed steps, each undone, and their errors."""
    setup, failed = portal.portal_setup, {}
    context = TarballImportContext(setup, archive, should_purge=True)
    for step in setup.getSortedImportSteps():
        savepoint = transaction.savepoint()
        try:
            setup._doRunImportStep(step, context)
        except Exception as error:  # noqa: BLE001  Plone's steps raise any error; both sites are compared
            savepoint.rollback()
            failed[step] = type(error)
    return failed


def test_a_snapshot_of_a_site_is_imported_into_a_new_one(site_with: SiteWith) -> None:
    """As far as Plone can: five of its steps cannot read their own export, among them that of DateRecurringIndex."""
    failed = {}
    for stock in (True, False):
        with sites.opened(site_with(add_fields, stock)) as db, Site(db).inside() as portal:
            archive = portal.portal_setup.runAllExportSteps()["tarball"]
            text = importable(exported(portal.portal_catalog))
        with sites.opened(site_with(lambda portal: None, stock)) as db, Site(db).inside() as portal:
            failed[stock] = import_everything(portal, archive)
            if stock:
                continue
            imported(portal.portal_catalog, text, purge=True)
            assert exported(portal.portal_catalog) == text
            assert "addon_field" in portal.portal_catalog.indexes()
            assert "addon_column" in portal.portal_catalog.schema()
            fill(portal)
            assert_agrees(portal)
    assert failed[False] == failed[True]
    assert "catalog" in failed[True]


def test_steps_of_plones_profile_can_be_run_again(site: Site) -> None:
    for step in ("toolset", "catalog", "workflow", "rolemap", "typeinfo"):
        with site.inside() as portal:
            portal.portal_setup.runImportStepFromProfile(f"profile-{_DEFAULT_PROFILE}", step, run_dependencies=False)
        with site.inside() as portal:
            portal.portal_catalog.refreshCatalog(clear=0)
            assert_agrees(portal)


@contextmanager
def without_a_site(dsn: str) -> Iterator[Any]:
    """Yield the application in *dsn*, whose site is deleted."""
    with sites.opened(dsn) as db:
        with Site(db).inside() as portal:
            portal.aq_parent._delObject("plone")
        with sites.application(db) as app:
            sites.login(app)
            yield app


def test_site_is_created_with_our_profile(stock_dsn: str) -> None:
    with without_a_site(stock_dsn) as app:
        profiles = ("plone.app.contenttypes:default", "plonetheme.barceloneta:default", PROFILE)
        portal = addPloneSite(app, "plone", title="Made", setup_content=False, extension_ids=profiles)
        setSite(portal)
        fill(portal)
        assert_agrees(portal)


@pytest.fixture
def distribution(zope: None, tmp_path: Path) -> Iterator[str]:
    """Name of the distribution for Volto, with our profile."""
    shutil.copytree(Path(plone.volto.__file__).parent / "distributions" / "volto", tmp_path / "ours")
    (tmp_path / "ours" / "profiles.json").write_text(
        json.dumps({"base": ["plone.volto:initial", PROFILE], "content": []})
    )
    made = Distribution("ours", "Volto on PostgreSQL", "", tmp_path / "ours", post_handler=post_handler)
    manager = getGlobalSiteManager()
    manager.registerUtility(made, IDistribution, "ours")
    yield "ours"
    manager.unregisterUtility(made, IDistribution, "ours")


def test_site_is_created_from_a_distribution_with_our_profile(distribution: str, stock_dsn: str) -> None:
    answers = {"site_id": "plone", "title": "Made", "description": "", "setup_content": True}
    answers |= {"default_language": "en", "portal_timezone": "UTC"}
    with without_a_site(stock_dsn) as app:
        portal = make_site(app, distribution, answers)
        setSite(portal)
        assert [b.getPath() for b in portal.portal_catalog(path="/plone")] == ["/plone"]
        add_users(portal)
        page = create(portal, "Document", "page", title="A page with pages in it", subject=("Rot",))
        for number in range(12):
            publish(create(page, "Document", f"page{number:02}", title=f"Page {number}"))
        assert_agrees(portal)


def fill_plainly(portal: Any) -> None:
    """Create content that plone.exportimport can import into a ZCatalog: ids of letters, no recurrent events in UTC."""
    add_users(portal)
    make_content(portal)


def test_a_site_is_exported_and_imported_as_content(site_with: SiteWith, tmp_path: Path) -> None:
    with sites.opened(site_with(fill_plainly)) as db, Site(db).inside() as portal:
        get_exporter(portal).export_site(tmp_path)
        expected = set(portal.portal_catalog._catalog.uids)
    with sites.opened(site_with(add_users)) as db:
        with Site(db).inside() as portal:
            get_importer(portal).import_site(tmp_path)
        with Site(db).inside() as portal:
            assert set(portal.portal_catalog._catalog.uids) == expected
            assert_agrees(portal)


def test_permissions_of_a_workflow_are_changed_and_updated(site: Site) -> None:
    with site.inside() as portal:
        workflow = portal.portal_workflow.simple_publication_workflow
        for permission in ("View", "Access contents information"):
            workflow.states.private.setPermission(permission, False, ["Manager", "Owner", "Member"])
        changed = portal.portal_workflow.updateRoleMappings()
        assert changed > 3
        assert_agrees(portal)
        with acting_as(portal, "mara"):
            assert portal.portal_catalog(review_state="private")


def test_a_tree_is_shared(site: Site) -> None:
    with site.inside() as portal:
        for folder in range(2):
            parent = create(portal.my_folder.a, "Folder", f"f{folder}")
            for number in range(3):
                create(parent, "Document", f"d{number}")
    with site.inside() as portal:
        share(portal.my_folder, "mara", "Reader")
        with acting_as(portal, "mara"):
            assert len(portal.portal_catalog(path="/plone/my_folder/a")) >= 9
        assert_agrees(portal)
    with site.inside() as portal:
        portal.my_folder.a.f1.__ac_local_roles_block__ = True
        portal.my_folder.a.f1.reindexObjectSecurity()
        with acting_as(portal, "mara"):
            assert not portal.portal_catalog(path="/plone/my_folder/a/f1")
        assert_agrees(portal)


def test_a_working_copy_is_checked_in(site: Site) -> None:
    with site.inside() as portal:
        portal.portal_setup.runAllImportStepsFromProfile("profile-plone.app.iterate:default")
        page = portal.my_folder.page
        copy = ICheckinCheckoutPolicy(page).checkout(portal.my_folder.a)
        copy.title = "A page in work"
        copy.reindexObject()
        assert_agrees(portal)
        assert [b.getPath() for b in portal.portal_catalog(Title="work")] == ["/".join(copy.getPhysicalPath())]
        ICheckinCheckoutPolicy(copy).checkin("done")
        assert_agrees(portal)
        assert [b.getPath() for b in portal.portal_catalog(Title="work")] == ["/plone/my_folder/page"]


def test_content_rule_publishes_added_objects(site: Site) -> None:
    with site.inside() as portal:
        rule = Rule()
        rule.event, rule.enabled = IObjectAddedEvent, True
        action = WorkflowAction()
        action.transition = "publish"
        rule.actions.append(action)
        storage = getUtility(IRuleStorage)
        storage.active = True
        storage["publish"] = rule
        IRuleAssignmentManager(portal.my_folder)["publish"] = RuleAssignment("publish")
    with site.inside() as portal:
        create(portal.my_folder, "Document", "by-rule", title="A page by rule")
        with acting_as(portal, None):
            assert [b.getId for b in portal.portal_catalog(getId="by-rule")] == ["by-rule"]
        assert_agrees(portal)
