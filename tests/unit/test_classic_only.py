"""Only the room ``classic`` needs packages of Classic UI, and no room needs ZCML to know the types of indexes."""

import subprocess
import sys


#: Imports each module of ours but those of ``classic``, without packages that may leave the core with Classic UI.
SCRIPT = """
import importlib, pkgutil, sys
REFUSED = ("plone.app.contentmenu", "plone.app.layout", "plone.app.portlets", "plone.app.theming",
           "plone.app.viewletmanager", "plone.classicui", "plonetheme")
class Refusal:
    def find_spec(self, name, path=None, target=None):
        if any(f"{name}.".startswith(f"{refused}.") for refused in REFUSED):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Refusal())
import plone.pgcatalog.core.configuration
from plone.pgcatalog.indexes.registry import translator_class
print(*(translator_class(name).__name__ for name in ("ZCTextIndex", "FieldIndex")))
for module in pkgutil.walk_packages(plone.pgcatalog.__path__, "plone.pgcatalog."):
    if not module.name.startswith("plone.pgcatalog.classic") and not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except ModuleNotFoundError as error:
            print(module.name, "needs", error)
"""


def test_no_other_room_needs_packages_of_classic_ui_and_index_types_are_known_without_zcml() -> None:
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", SCRIPT], capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stdout) == (0, "ZCTextIndexTranslator FieldIndexTranslator\n"), done.stderr
