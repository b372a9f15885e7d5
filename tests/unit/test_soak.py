"""Expectations of the soak's clients when Zope repeats a request after a failover has lost commits."""

from checks.soak.clients import moved
from checks.soak.clients import renamed
from checks.soak.ledger import ABSENT
from checks.soak.ledger import Version

import pytest


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (Version("f2/page", "traffic", "published"), Version("f2/page-r8", "traffic", "published")),
        # The failover has lost the move or the title: the form finds the object by its UID.
        (Version("f3/page", "traffic"), Version("f3/page-r8", "traffic")),
        (Version("f3/page", "water"), Version("f3/page-r8", "traffic")),
        (ABSENT, ABSENT),
    ],
)
def test_rename_finds_the_object_after_a_lost_move(version: Version, expected: Version) -> None:
    assert renamed("page-r8", "traffic", version) == expected


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        (Version("f2/folder"), Version("f3/folder")),
        (Version("f2/folder/page"), Version("f3/folder/page")),
        (Version("f2/folder2"), Version("f2/folder2")),
        (Version("f1/folder"), Version("f1/folder")),
        (ABSENT, ABSENT),
    ],
)
def test_move_finds_objects_at_the_path_or_below_it(version: Version, expected: Version) -> None:
    assert moved("f2/folder", "f3/folder", version) == expected
