"""The layers of the add-on's tests."""

from plone.app.testing import applyProfile
from plone.app.testing import FunctionalTesting
from plone.app.testing import IntegrationTesting
from plone.app.testing import PLONE_FIXTURE as FIXTURE
from plone.app.testing import PloneSandboxLayer
from typing import Any

import shelves


class ShelvesLayer(PloneSandboxLayer):
    defaultBases = (FIXTURE,)

    def setUpZope(self, app: Any, configurationContext: Any) -> None:
        self.loadZCML(package=shelves)

    def setUpPloneSite(self, portal: Any) -> None:
        applyProfile(portal, "shelves:default")


SHELVES_FIXTURE = ShelvesLayer()
SHELVES_INTEGRATION_TESTING = IntegrationTesting(bases=(SHELVES_FIXTURE,), name="Shelves:Integration")
SHELVES_FUNCTIONAL_TESTING = FunctionalTesting(bases=(SHELVES_FIXTURE,), name="Shelves:Functional")
