"""Small files of Excel, PowerPoint and WordPerfect before .xlsx and .pptx, each with one way to lose words.

Functions build further ones.
"""

from struct import pack

import zlib


XLS, PPT = "application/vnd.ms-excel", "application/vnd.ms-powerpoint"
FREE, END, TABLE = 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFFD


def ole(streams: dict[str, bytes]) -> bytes:
    """Return an OLE file with *streams* by their paths."""
    small: tuple[list[bytes], list[int]] = ([], [])
    large: tuple[list[bytes], list[int]] = ([], [])

    def stored(data: bytes, size: int, places: tuple[list[bytes], list[int]]) -> int:
        sectors, table = places
        start = len(sectors)
        sectors.extend(data[at : at + size].ljust(size, b"\0") for at in range(0, len(data), size))
        table.extend([*range(start + 1, len(sectors)), END])
        return start

    paths = {path[:at] for path in streams for at in range(len(path) + 1) if path[at : at + 1] in ("", "/")}
    nodes = ["", *sorted(paths - {""}, key=lambda path: (len(path), path))]
    starts = {
        path: stored(data, *((512, large) if len(data) >= 4096 else (64, small))) for path, data in streams.items()
    }
    inner = b"".join(small[0])
    starts[""] = stored(inner, 512, large) if inner else END
    small_table = stored(pack(f"<{len(small[1])}I", *small[1]), 512, large) if inner else END
    entries = []
    for node in nodes:
        parent, name = node.rpartition("/")[::2]
        beside = [each for each in nodes[nodes.index(node) + 1 :] if node and each.rpartition("/")[0] == parent]
        inside = [each for each in nodes[1:] if each.rpartition("/")[0] == node]
        size = len(streams.get(node, b"") if node else inner)
        letters = (name or "Root Entry").encode("utf-16-le")
        links = (FREE, nodes.index(beside[0]) if beside else FREE, nodes.index(inside[0]) if inside else FREE)
        kind = 2 if node in streams else 1 if node else 5
        head = letters.ljust(64, b"\0") + pack("<HBB3I", len(letters) + 2, kind, 1, *links)
        entries.append(head + bytes(36) + pack("<IQ", starts.get(node, END), size))
    directory = stored(b"".join(entries), 512, large)
    count = -(-(len(large[0]) + 1) // 127)
    places = range(len(large[0]), len(large[0]) + count)
    table = pack(f"<{len(large[1]) + count}I", *large[1], *[TABLE] * count).ljust(512 * count, b"\xff")
    head = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(16) + pack("<5H6x", 0x3E, 3, 0xFFFE, 9, 6)
    small_count = -(-len(small[1]) // 128)
    head += pack("<9I", 0, count, directory, 0, 4096, small_table, small_count, END, 0) + pack(f"<{count}I", *places)
    return head.ljust(512, b"\xff") + b"".join(large[0]) + table


def msg(subject: str, body: str, attached: dict[str, bytes]) -> bytes:
    """Return a mail of Outlook."""
    streams = {"__properties_version1.0": bytes(32)}
    for number, text in (("0037", subject), ("1000", body)):
        streams[f"__substg1.0_{number}001F"] = text.encode("utf-16-le")
    for place, (name, data) in enumerate(attached.items()):
        folder = f"__attach_version1.0_#{place:08X}"
        streams |= {f"{folder}/__properties_version1.0": bytes(8), f"{folder}/__substg1.0_37010102": data}
        streams[f"{folder}/__substg1.0_3707001F"] = name.encode("utf-16-le")
    return ole(streams)


def rec(kind: int, data: bytes = b"") -> bytes:
    """Return a record of Excel."""
    return pack("<HH", kind, len(data)) + data


def begin(kind: int = 0x10) -> bytes:
    return rec(0x809, pack("<4H8x", 0x600, kind, 0, 0))


def wide(text: str, size: str = "<H") -> bytes:
    """Return a string with its size and a byte of flags."""
    return pack(size, len(text)) + b"\1" + text.encode("utf-16-le")


def xls(*sheets: bytes, formats: tuple[str, ...] = (), more: bytes = b"", kind: int = 0) -> bytes:
    """Return a workbook of Excel 97 with *sheets* of the *kind*, and the styles 1 and more for *formats*."""
    head = begin(5) + rec(0x42, pack("<H", 1200)) + more
    head += b"".join(rec(0x41E, pack("<H", 164 + n) + wide(code)) for n, code in enumerate(formats))
    head += b"".join(rec(0xE0, pack("<2H16x", 0, code)) for code in (0, *range(164, 164 + len(formats))))
    names = [wide(f"Blatt{n}", "<B") for n in range(len(sheets))]
    start = len(head) + sum(10 + len(name) for name in names) + 4
    for name, sheet in zip(names, sheets, strict=True):
        head += rec(0x85, pack("<IBB", start, 0, kind) + name)
        start += len(begin() + sheet) + 4
    part = begin(0x20 if kind else 0x10)
    return head + rec(10) + b"".join(part + sheet + rec(10) for sheet in sheets)


def book(*sheets: bytes, formats: tuple[str, ...] = (), more: bytes = b"", kind: int = 0) -> bytes:
    """Return an .xls file with *sheets*."""
    return ole({"Workbook": xls(*sheets, formats=formats, more=more, kind=kind)})


def number(value: float, style: int = 0, row: int = 0) -> bytes:
    return rec(0x203, pack("<3Hd", row, 0, style, value))


def label(text: str, row: int = 0) -> bytes:
    return rec(0x204, pack("<3H", row, 0, 0) + wide(text))


def box(*texts: str) -> bytes:
    """Return the records of a text box, whose text is divided."""
    head = rec(0x1B6, pack("<2H6xHH4x", 0, 0, sum(map(len, texts)), 16))
    return head + b"".join(rec(0x3C, b"\1" + text.encode("utf-16-le")) for text in texts) + rec(0x3C, bytes(16))


def old_xls(mark: int, version: int, *records: bytes) -> bytes:
    """Return a sheet of Excel 2 to 4, which has no container."""
    return rec(mark, pack("<3H", version, 0x10, 0)) + b"".join(records) + rec(10)


def excel_95(*records: bytes) -> bytes:
    first = rec(0x809, pack("<4H", 0x500, 5, 0, 0)) + rec(0x42, pack("<H", 1251)) + rec(0xE0, bytes(16))
    name = rec(0x85, pack("<IBBB", len(first) + 19, 0, 0, 4) + "Лист".encode("cp1251"))
    sheet = rec(0x809, pack("<4H", 0x500, 0x10, 0, 0)) + b"".join(records) + rec(10)
    return ole({"Book": first + name + rec(10) + sheet})


def native(name: str, data: bytes) -> bytes:
    """Return the stream of an embedded file, behind which is the path of its copy in UTF-16."""
    paths = name.encode() + b"\0C:\\x\0" + bytes(4) + pack("<I", 5) + b"C:\\x\0"
    return bytes(6) + paths + pack("<I", len(data)) + data + pack("<I", 4) + "C:\\x".encode("utf-16-le")


CHART = (
    begin(0x20) + rec(0x100D, pack("<H", 0) + wide("Diagrammtitel", "<B")) + label("Rubrik") + number(4711) + rec(10)
)
STRING = pack("<3H", 0, 0, 0) + b"\0\0\0\0\0\0\xff\xff" + bytes(6)
#: Name, content type, file, and texts that a person sees in it.
EXCEL: list[tuple[str, str, bytes, list[str]]] = [
    (
        "xls-formats",
        XLS,
        book(
            *(number(value, n + 1) for n, value in enumerate((1067, 45291, 0.5, 1234.5, -22.4, 0.30000000000000004))),
            formats=("00000", "[$-407]dd\\.mm\\.yyyy", "0.00%", "#,##0.00\\ [$€-407]", "0.00;(0.00)", "General"),
        ),
        ["01067", "31.12.2023", "50.00", "1 234.50", "22.40", "0.3", "Blatt5"],
    ),
    ("xls-1904", XLS, book(number(43829, 1), formats=("dd.mm.yyyy",), more=rec(0x22, pack("<H", 1))), ["31.12.2023"]),
    ("xls-formula", XLS, book(rec(6, STRING) + rec(0x207, wide("Formelwert"))), ["Formelwert"]),
    (
        "xls-shared",
        XLS,
        book(
            rec(0xFD, pack("<3HI", 0, 0, 0, 0)),
            more=rec(0xFC, pack("<2IH", 1, 1, 13) + b"\0Verkehrs") + rec(0x3C, b"\1" + "wende".encode("utf-16-le")),
        ),
        ["Verkehrswende"],
    ),
    ("xls-text-box", XLS, book(label("x") + box("Text", "kasten")), ["Textkasten"]),
    (
        "xls-header-footer",
        XLS,
        book(rec(0x14, wide('&L&"Arial,Bold"Kopfwort&R&P')) + rec(0x15, wide("&CFusswort"))),
        ["Kopfwort", "Fusswort"],
    ),
    ("xls-chart", XLS, book(CHART + label("Danach")), ["Diagrammtitel", "Rubrik", "4711", "Danach"]),
    ("xls-chart-sheet", XLS, book(CHART[20:-4], kind=2), ["Blatt0", "Diagrammtitel"]),
    (
        "xls-prompt",
        XLS,
        book(rec(0x1BE, bytes(4) + b"".join(map(wide, ("Titel", "-", "Eingabe", "-"))))),
        ["Titel Eingabe"],
    ),
    ("xls-without-a-container", XLS, xls(label("München")), ["München"]),
    ("xls-object", XLS, ole({"Workbook": xls(label("x")), "MBD01/Workbook": xls(label("Inneres"))}), ["Inneres"]),
    (
        "xls-native-object",
        XLS,
        ole({"Workbook": xls(label("x")), "MBD01/\1Ole10Native": native("notiz.txt", b"Inneres")}),
        ["notiz.txt Inneres"],
    ),
    (
        "xls-broken-records",
        XLS,
        book(rec(0x1C, b"\1") + rec(0x1B8, pack("<4H", 0, 65535, 0, 255)) + rec(0x14, b"\x09") + label("Zelle")),
        ["Zelle"],
    ),
    ("xls-truncated", XLS, ole({"Workbook": xls(label("Zelle"))[:-2]}), ["Zelle"]),
    (
        "xls-95",
        XLS,
        excel_95(
            rec(0x204, pack("<4H", 0, 0, 0, 6) + "Москва".encode("cp1251")),
            rec(0x14, b"\4" + "Верх".encode("cp1251")),
            rec(0x1C, pack("<3H", 0, 0, 4) + "Заме".encode("cp1251")),
        ),
        ["Лист", "Москва", "Верх", "Заме"],
    ),
    (
        "xls-4",
        XLS,
        old_xls(0x409, 0x400, rec(0x443, bytes(12)), rec(0x204, pack("<4H", 0, 0, 0, 5) + b"Fr\xfchf")),
        ["Frühf"],
    ),
    ("xls-2", XLS, old_xls(9, 2, rec(4, pack("<2H3xB", 0, 0, 5) + b"Fr\xfchf")), ["Frühf"]),
]


def atom(kind: int, data: bytes = b"", instance: int = 0) -> bytes:
    """Return a record of PowerPoint."""
    return pack("<HHI", instance << 4, kind, len(data)) + data


def container(kind: int, *records: bytes, instance: int = 0) -> bytes:
    data = b"".join(records)
    return pack("<HHI", instance << 4 | 15, kind, len(data)) + data


def shape(text: str, is_place: bool = False) -> bytes:
    client = container(0xF011, atom(3011, bytes(8))) if is_place else b""
    return container(0xF004, client, container(0xF00D, atom(4000, text.encode("utf-16-le"))))


def listed(instance: int, *places: tuple[int, int, str]) -> bytes:
    """Return a list of slides: the number, the id and the text of each."""
    records = (
        atom(1011, pack("<5I", ref, 0, 0, id, 0)) + atom(4008, text.encode("cp1252")) for ref, id, text in places
    )
    return container(4080, *records, instance=instance)


def ppt(records: dict[int, bytes], edits: tuple[dict[int, bytes], ...] = (), has_directory: bool = True) -> bytes:
    """Return a presentation of *records* by their numbers, of which 1 is the document, saved again with each of *edits*."""
    data, last = b"", 0
    for part in (records, *edits):
        places = {}
        for number, record in part.items():
            places[number] = len(data)
            data += record
        directory = len(data)
        if has_directory:
            data += atom(6002, b"".join(pack("<2I", number | 1 << 20, place) for number, place in places.items()))
            data += atom(4085, pack("<2I3I2I", 0, 0, last, directory, 1, 0, 0))
            last = len(data) - 36
    return ole({"PowerPoint Document": data, "Current User": pack("<5I", 0, 0, 20, 0xE391C05F, last)})


def record_95(kind: int, data: bytes, is_container: bool = True) -> bytes:
    return pack("<4I", kind, 0xFFFF if is_container else 0, len(data), 0) + data


def string_95(text: str) -> bytes:
    return record_95(4064, record_95(2030, text.encode("cp1252"), False))


def comment(text: str) -> bytes:
    texts = (atom(4026, each.encode("utf-16-le"), n) for n, each in enumerate(("Anna", text)))
    return container(5000, container(5002, atom(5003, container(12000, *texts))))


WORDART = "Schmuckschrift\0".encode("utf-16-le")
DECK = {
    1: container(
        1000,
        listed(0, (3, 256, "Gliederung"), (2, 257, "")),
        listed(1, (4, 0, "")),
        listed(2, (5, 256, "")),
        container(4057, atom(4026, "Fusszeile".encode("utf-16-le"), 2)),
    ),
    2: container(1006, container(1036, shape("Zweite Folie") + shape("*"))),
    3: container(
        1006,
        container(1036, shape("Erste\rFolie"), atom(0xF00B, pack("<HI", 0x80C0, len(WORDART)) + WORDART, 1)),
        comment("Randbemerkung"),
    ),
    4: container(1016, shape("Titel bearbeiten", is_place=True), shape("Auf jeder Folie")),
    5: container(1008, atom(1009, pack("<2I", 256, 0)), shape("Notiz")),
    6: atom(4113, bytes(4) + zlib.compress(ole({"Workbook": xls(label("Diagrammwert"))})), 1),
}
SLIDES_95 = record_95(
    3, record_95(1000, record_95(1006, string_95("Größe") + record_95(4068, string_95("Klicken"))) * 2)
)
POWERPOINT: list[tuple[str, str, bytes, list[str]]] = [
    (
        "ppt-slides",
        PPT,
        ppt(DECK),
        ["Gliederung Erste Folie Schmuckschrift Randbemerkung Notiz Zweite Folie", "Fusszeile"],
    ),
    ("ppt-master", PPT, ppt(DECK), ["Auf jeder Folie"]),
    ("ppt-chart", PPT, ppt(DECK), ["Diagrammwert"]),
    ("ppt-edited", PPT, ppt(DECK, ({2: container(1006, shape("Geändert"))},)), ["Notiz Geändert"]),
    (
        "ppt-without-directory",
        PPT,
        ppt(DECK, has_directory=False),
        ["Gliederung", "Erste Folie", "Zweite Folie", "Notiz"],
    ),
    ("ppt-95", PPT, ole({"PowerPoint Document": SLIDES_95}), ["Größe Größe"]),
]
WORDPERFECT = b"\xcb\n\1\xf6\1\xcbViele Gr\xe1\x81\xe1\xe1\xe1\xe1e\r\x82an\xa0alle\n"
OLDER = [*EXCEL, *POWERPOINT, ("doc-wordperfect-4", "application/msword", WORDPERFECT, ["Viele Grüße an alle"])]
