"""Each translation of a language is compiled, and what our pages say has one."""

from pathlib import Path
from pythongettext.msgfmt import Msgfmt
from tests.unit.sources import SOURCE

import gettext
import io
import pytest
import re


LOCALES = SOURCE / "locales"
CATALOGS = sorted(LOCALES.glob("*/LC_MESSAGES/*.po"))


@pytest.mark.parametrize("path", CATALOGS, ids=lambda path: path.relative_to(LOCALES).as_posix())
def test_what_is_compiled_is_what_is_written(path: Path) -> None:
    written = gettext.GNUTranslations(io.BytesIO(Msgfmt(path.read_bytes().splitlines(True)).get()))
    with path.with_suffix(".mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    assert vars(compiled)["_catalog"] == vars(written)["_catalog"]


@pytest.mark.parametrize("path", CATALOGS, ids=lambda path: path.relative_to(LOCALES).as_posix())
def test_a_translation_has_the_variables_of_its_original(path: Path) -> None:
    with path.with_suffix(".mo").open("rb") as file:
        found = vars(gettext.GNUTranslations(file))["_catalog"]
    texts = {original: text for original, text in found.items() if original}
    assert len(texts) > 40
    assert {
        o for o, t in texts.items() if set(re.findall(r"\$\{\w+\}", o)) != set(re.findall(r"\$\{\w+\}", t))
    } == set()
