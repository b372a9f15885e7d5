"""Messages to PostgreSQL are named by their statements, and the nearest ones to the COMMIT of a write are chosen."""

from checks.fails.relay import Message
from checks.fails.relay import name_of
from checks.fails.trial import nearest

import pytest


SAVE = ["BEGIN", "COMMIT", "BEGIN", "INSERT INTO transaction_log (tid)", "INSERT INTO a", "COMMIT", "BEGIN", "COMMIT"]
PACK = ["BEGIN", "COMMIT", "DELETE FROM object_state", "DROP TABLE b", "COMMIT"]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (b"COMMIT\0", "COMMIT"),
        (b"-- Purpose.\n  SELECT\n  1", "SELECT 1"),
        (b'DELETE FROM "pgcatalog_24a1_2"', 'DELETE FROM "pgcatalog_…"'),
        (b"DELETE FROM pgcatalog_changes", "DELETE FROM pgcatalog_changes"),
    ],
)
def test_name_of_a_statement_is_its_beginning_without_comments_and_numbers(text: bytes, name: str) -> None:
    assert name_of(text) == name


@pytest.mark.parametrize(
    ("texts", "most", "numbers"),
    [
        (SAVE, 1, [5]),
        (SAVE, 3, [4, 5, 6]),
        (SAVE, 0, range(8)),
        (PACK, 1, [4]),
        (["SELECT 1", "SELECT 2"], 1, [0]),
        ([], 1, []),
    ],
)
def test_chosen_messages_are_nearest_to_the_commit_of_the_first_write(
    texts: list[str], most: int, numbers: list[int]
) -> None:
    messages = [Message(text, texts[:number].count(text) + 1) for number, text in enumerate(texts)]
    assert nearest(messages, most) == [messages[number] for number in numbers]
