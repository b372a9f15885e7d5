"""The databases created by Plone 6.0 and 6.1: FileStorages with blobs, in one archive."""

from pathlib import Path
from tests.integration.web import MANAGER
from tests.integration.web import Site
from typing import Any

import tarfile


VERSIONS = ("6.0", "6.1")
ARCHIVE = Path(__file__).with_name("sites.tar.xz")


def unpack(version: str, folder: Path) -> None:
    """Write ``Data.fs`` and ``blobs`` of the site of *version* to *folder*."""
    with tarfile.open(ARCHIVE) as tar:
        for member in tar:
            top, _, name = member.name.partition("/")
            if top == version:
                tar.extract(member.replace(name=name), folder, filter="data")


def upgrade(site: Site) -> tuple[str, str]:
    """Upgrade *site* as a manager does in a browser; return the versions of Plone's profile before and after."""
    before = profile_version(site)
    answer = site.web.post("/plone/@@plone-upgrade", MANAGER, **{"form.submitted": "1", "_authenticator": site.token()})
    if answer.status != 200:
        raise RuntimeError(answer.text)
    return before, profile_version(site)


def upgraded(storage: Any) -> tuple[str, str]:
    """Upgrade the site in *storage*, and close it; return the versions of Plone's profile as `upgrade` does."""
    from tests.integration import site as sites

    with sites.opened_on(storage) as db:
        return upgrade(Site(db))


def profile_version(site: Site) -> str:
    """Return the version of Plone's profile in *site*."""
    from Products.CMFPlone.factory import _DEFAULT_PROFILE

    with site.inside() as portal:
        return ".".join(portal.portal_setup.getLastVersionForProfile(_DEFAULT_PROFILE))
