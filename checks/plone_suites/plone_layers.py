"""Patches of the test layers, in this process only: the storage, the package's ZCML, its profile.

Layers load ZCML without z3c.autoinclude, so the package must include its requirements.
"""

from collections.abc import Callable
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from plone.pgcatalog.testing.stack import StackedDB
from plone.pgcatalog.testing.stack import StorageStack
from typing import Any

import functools
import importlib
import os
import transaction


#: Function of the dotted name of portal_catalog's class.
Report = Callable[[str], None]


def patch_layers(stack: StorageStack, profile: str | None, report: Report) -> None:
    """Put every layer's storage on PostgreSQL and install *profile* into the fixture's site.

    *report* is called with the catalog's class once the site is complete.
    """
    _patch_storage(stack)
    _patch_zcml(stack, profile)
    _patch_site(profile, report)
    _patch_distributions(profile, report)
    _patch_zope_app()
    _patch_wsgi_server()
    _patch_mock_mailhost()


def _wrap(owner: Any, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace ``owner.name`` by *wrapper*, which is called with the original as its first argument."""
    original = getattr(owner, name)
    setattr(owner, name, functools.wraps(original)(functools.partial(wrapper, original)))


def _wrap_method(owner: type, name: str, wrapper: Callable[..., Any]) -> None:
    """Replace a method by *wrapper*, which is called with the original and the instance."""
    original = getattr(owner, name)

    @functools.wraps(original)
    def method(self: Any, *args: Any) -> Any:
        return wrapper(original, self, *args)

    setattr(owner, name, method)


def _patch_storage(stack: StorageStack) -> None:
    from plone.testing import zodb

    def stack_storage(original: Callable[..., Any], db: Any = None, name: str | None = None) -> Any:
        if db is None or isinstance(db, StackedDB):
            return stack.stack(db)
        return original(db, name)

    _wrap(zodb, "stackDemoStorage", stack_storage)


def _patch_zcml(stack: StorageStack, profile: str | None) -> None:
    from plone.app.testing.layers import PloneFixture

    def set_up(original: Callable[[Any], None], self: Any) -> None:
        original(self)
        if profile:
            _load_zcml(profile.split(":")[0], self["configurationContext"])
        stack.announce_from_now_on(self["zodbDB"])

    def tear_down(original: Callable[[Any], None], self: Any) -> None:
        stack.stop_announcing()
        original(self)

    _wrap_method(PloneFixture, "setUpZCML", set_up)
    _wrap_method(PloneFixture, "tearDownZCML", tear_down)


def _load_zcml(package_name: str, context: Any) -> None:
    from zope.configuration import xmlconfig

    package = importlib.import_module(package_name)
    folder = Path(package.__path__[0])
    for filename in ("meta.zcml", "configure.zcml"):
        if (folder / filename).exists():
            xmlconfig.file(filename, package, context=context)
    if (folder / "overrides.zcml").exists():
        xmlconfig.includeOverrides(context, "overrides.zcml", package)
        context.execute_actions()


def _patch_site(profile: str | None, report: Report) -> None:
    from plone.app.testing.layers import PloneFixture

    def set_up(original: Callable[[Any, Any], None], self: Any, app: Any) -> None:
        original(self, app)
        if profile:
            transaction.commit()  # as the add-on installer finds the site
            _install(app, profile)
            transaction.commit()
        report(_catalog_class(app["plone"], profile))

    _wrap_method(PloneFixture, "setUpDefaultContent", set_up)


def _patch_distributions(profile: str | None, report: Report) -> None:
    """Install *profile* into a site created by a distribution, in its layer or in a test, before the site has content."""
    from plone.distribution.api import site as sites

    def create(original: Callable[..., Any], context: Any, *args: Any) -> Any:
        portal = original(context, *args)
        if profile:
            _install_product(context, profile)
            portal.portal_setup.runAllImportStepsFromProfile(f"profile-{profile}")
        report(_catalog_class(portal, profile))
        return portal

    _wrap(sites, "_create_bare_site", create)


def _install(app: Any, profile: str) -> None:
    from plone.app.testing.helpers import applyProfile
    from plone.testing import zope
    from zope.component.hooks import site

    _install_product(app, profile)
    with site(app["plone"]):
        applyProfile(app["plone"], profile)
    zope.logout()


def _install_product(app: Any, profile: str) -> None:
    from plone.testing import zope

    zope.installProduct(app, profile.split(":")[0], quiet=True, multiinit=True)


def _catalog_class(portal: Any, profile: str | None) -> str:
    from Acquisition import aq_base

    cls = type(aq_base(portal["portal_catalog"]))
    if profile and cls.__module__.startswith("Products.CMFPlone"):
        raise RuntimeError(f"{profile} left the standard portal_catalog in place")
    return f"{cls.__module__}.{cls.__qualname__}"


def _patch_zope_app() -> None:
    """Raise exceptions of zopeApp's commit: it swallows them, and a layer's fixture is silently lost."""
    from plone.testing import zope

    @contextmanager
    def zope_app(original: Callable[..., Any], *args: Any, **kw: Any) -> Iterator[Any]:
        failures: list[Exception] = []
        commit = transaction.commit

        def noted_commit() -> None:
            try:
                commit()
            except Exception as exc:
                failures.append(exc)
                raise

        transaction.commit = noted_commit
        try:
            with original(*args, **kw) as app:
                yield app
        finally:
            transaction.commit = commit
        if failures:
            raise failures[0]

    _wrap(zope, "zopeApp", zope_app)


def _patch_wsgi_server() -> None:
    """Use a fresh port each time: plone.testing reuses the port of the server it has just shut down."""
    from plone.testing.zope import WSGIServer

    def set_up(original: Callable[[Any], None], self: Any) -> None:
        self.port = os.environ.get("WSGI_SERVER_PORT")
        original(self)

    _wrap_method(WSGIServer, "setUpServer", set_up)


def _patch_mock_mailhost() -> None:
    """Register the mail host without its acquisition wrapper.

    Whether a commit can pickle the wrapped one depends on the order in which objects were changed.
    """
    try:
        from collective.MockMailHost import setuphandlers
    except ImportError:
        return
    from Acquisition import aq_base
    from Products.MailHost.interfaces import IMailHost

    def replace_mailhost(self: Any) -> None:
        portal = setuphandlers.getToolByName(self, "portal_url").getPortalObject()
        mailhost = aq_base(portal.MockMailHost)
        portal._delObject("MailHost")
        portal._setObject("MailHost", mailhost)
        self.getSiteManager().registerUtility(aq_base(portal.MailHost), provided=IMailHost)

    setuphandlers.replace_mailhost = replace_mailhost
