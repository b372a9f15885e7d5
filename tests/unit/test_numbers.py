"""Numbers of sheets are text as their formats show them."""

from plone.pgcatalog.files.formats.numbers import shown

import pytest


@pytest.mark.parametrize(
    ("value", "code", "text"),
    [
        ("1067", "00000", "01067"),
        ("0.30000000000000004", "General", "0.3"),
        ("0.025", "0.00%", "2.50%"),
        ("1234.5", '#,##0.00\\ "€"', "1,234.50 €"),
        ("1234.5", "#,##0.00\\ [$€-407]", "1,234.50 €"),
        ("1234.5", "[$-409]#,##0.00", "1,234.50"),
        ("-22.4", "0.00;[Red](0.00)", "(22.40)"),
        ("-22.4", "0.00", "-22.40"),
        ("0", '0;-0;"frei"', "0"),
        ("198356388", "0.00E+00", "1.98E+08"),
        ("19.99", '0" dollars and" .00 "cents"', "19.99  dollars and  cents"),
        ("1234.5", "# ##0.00", "1234.50"),
        ("45291", "[$-407]dd\\.mm\\.yyyy", "31.12.2023"),
        ("45291.5", 'd. mmmm yyyy "um" h:mm', "31. December 2023 um 12:00"),
        ("1.5", "[h]:mm", "36:00"),
        ("1e300", "dd.mm.yyyy", "1e+300"),
        ("nan", "0.00", "nan"),
        ("-1e400", "dd.mm.yyyy", "-1e400"),
        ("1", "0" * 100_000, "0" * 254 + "1"),
        ("word", "0.00", "word"),
    ],
)
def test_number_is_shown_by_its_format(value: str, code: str, text: str) -> None:
    assert shown(value, code, starts_1904=False) == text
