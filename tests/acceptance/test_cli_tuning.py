"""The command tuning, as an administrator runs it."""

from pathlib import Path
from tests.acceptance.cli import answer
from tests.acceptance.cli import invoke
from tests.acceptance.cli import write_conf

import pytest


pytestmark = pytest.mark.slow


def test_tuning_is_imported_checked_and_exported(dsn: str, tmp_path: Path) -> None:
    conf, file, copy = write_conf(tmp_path, dsn), tmp_path / "tuning.txt", tmp_path / "copy.txt"
    at = (conf, str(file), "--site", "plone")
    file.write_text("[pins]\nhours = /nowhere\n[synonyms]\ncar, auto\n")
    finding = "Line 2: there is no page '/nowhere'"
    assert answer("tuning", "check", *at) == (1, {"findings": [finding]})
    assert "car" not in invoke("tuning", "export", conf, "--site", "plone").stdout
    assert (done := invoke("tuning", "import", *at)).exit_code == 1
    assert done.stdout == f"{finding}\n"
    assert invoke("tuning", "export", conf, str(copy), "--site", "plone").exit_code == 0
    assert "[pins]\nhours = /nowhere\n\n[synonyms]\ncar, auto\n" in copy.read_text()
    file.write_text("[synonyms]\ncar, bus\n[pins]\nhours\n")
    assert (failed := invoke("tuning", "import", *at)).exit_code == 2
    assert "Line 4: 'hours' is not of the form" in failed.stderr
    file.write_text("[pins]\n")
    assert invoke("tuning", "import", *at).exit_code == 0
    assert (sound := invoke("tuning", "check", conf, "--site", "plone")).exit_code == 0
    assert sound.stdout == "check: no findings\n"
    assert "car, auto" in invoke("tuning", "export", conf, "--site", "plone").stdout
    for arguments in (("import", conf), ("import", conf, str(tmp_path / "missing"))):
        assert invoke("tuning", *arguments).exit_code == 2
