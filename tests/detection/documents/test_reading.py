"""Documents of each format, valid and hostile ones."""

import random

import pytest
from tests.support.documents import PNG, archive, docx, docx_part, pdf, pptx, relation, xlsx

from gatehouse.detection.documents import limits, output
from gatehouse.detection.documents.output import Reading, Unread
from gatehouse.detection.documents.reading import read

COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
CARD = "4111 1111 1111 1111"
NO_PICTURE = Unread("image", "no_text")


def unread(*reasons: str) -> tuple[Unread, ...]:
    return tuple(Unread("file", reason) for reason in reasons)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "data",
    [
        pdf(f"the card is {CARD}"),
        pdf("a page", comment=f"see {CARD}"),
        pdf("a page", author=CARD),
        pdf("a page", attached=f"a note with {CARD}".encode()),
        pdf("a page", attached=docx(f"card {CARD}")),
        b"\r\n" + pdf(f"the card is {CARD}"),
        docx("Dear customer,", f"card {CARD} of yours"),
        docx("a page", header1_xml=docx_part("hdr", CARD)),
        docx("a page", footnotes_xml=docx_part("footnotes", CARD)),
        docx("a page", comments_xml=docx_part("comments", CARD)),
        docx("a page", settings_xml=docx_part("settings", CARD)),
        docx("a page", document_xml_rels=relation(f"https://shop.example/{CARD}")),
        docx("a page", embeddings_xlsx=xlsx([CARD], '<c t="s"><v>0</v></c>')),
        xlsx(["name", f"card {CARD}"], '<c t="s"><v>1</v></c>'),
        xlsx(["two\nlines", "another", CARD], '<c t="s"><v>2</v></c>'),
        xlsx([], f'<c t="inlineStr"><is><t>{CARD}</t></is></c>'),
        xlsx([], f'<c t="str"><f>"{CARD}"</f><v>{CARD}</v></c>'),
        pptx(f"card {CARD}"),
        pptx("a slide", notes=f"say {CARD}"),
        archive({f"{CARD}.txt": ""}),
        archive({"a.csv": f"name,card\r\nMüller,{CARD}\r\n".encode("cp1252")}),
        archive({"inner.zip": archive({"settings.xml": f"<a><password>{CARD}</password></a>"})}),
        archive({"mimetype": "application/epub+zip", "a.xhtml": f"<html><p>4111 <b>1111</b> {CARD[10:]}</p></html>"}),
    ],
)
def test_the_texts_of_a_document_are_read(data: bytes) -> None:
    reading = read(data)
    assert CARD in reading.text
    assert reading.unread == ()
    assert reading.encoding is None


def test_a_number_in_a_cell_is_read_as_people_write_it() -> None:
    assert "4111111111111111 | " in read(xlsx([], "<c><v>4.111111111111111E+15</v></c>")).text
    assert "1E+999999999" in read(xlsx([], "<c><v>1E+999999999</v></c>")).text


def test_cells_of_a_table_are_separated() -> None:
    assert "4111 | 1111" in read(xlsx([], "<c><v>4111</v></c><c><v>1111</v></c>")).text


def test_a_picture_in_a_document_is_reported_as_unread() -> None:
    for data in (pdf(CARD, picture=True), docx(CARD, media_png=PNG), archive({"a.png": PNG, "a.txt": CARD})):
        reading = read(data)
        assert CARD in reading.text
        assert reading.unread == (NO_PICTURE,)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (PNG, (NO_PICTURE,)),
        (b"ID3\x04\x00" + random.Random(1).randbytes(500), (Unread("audio", "no_text"),)),
        (random.Random(1).randbytes(5000), unread("unknown_format")),
        (pdf(CARD, encrypted=True), unread("encrypted")),
        (b"%PDF-1.7\n" + random.Random(1).randbytes(5000), unread("broken")),
        (archive({"a": "b" * 999})[:60], unread("broken")),
        (COMPOUND + bytes(500) + "EncryptedPackage".encode("utf-16-le"), unread("encrypted")),
        (archive({"a.7z": b"7z\xbc\xaf\x27\x1c" + bytes(200)}), unread("unknown_format")),
        (docx("x", broken_xml="<a><b></a>"), unread("broken")),
    ],
)  # fmt: skip
def test_unreadable_content_is_reported_with_the_reason(data: bytes, expected: tuple[Unread, ...]) -> None:
    assert read(data).unread == expected


def test_a_truncated_document_is_read_in_part_or_unread_without_an_error() -> None:
    chance = random.Random(5)
    for whole in (pdf(f"card {CARD}", attached=b"x"), docx(f"card {CARD}"), xlsx([CARD], '<c t="s"><v>0</v></c>')):
        for _ in range(60):
            data = bytearray(whole[: chance.randint(20, len(whole))])
            for _ in range(3):
                data[chance.randrange(len(data))] = chance.randrange(256)
            assert isinstance(read(bytes(data)), Reading)


def test_an_old_office_document_shows_its_texts_and_is_unread() -> None:
    head = COMPOUND + bytes(600)
    for encoding in ("ascii", "utf-16-le"):
        reading = read(head + f"card {CARD}".encode(encoding) + bytes(300) + b"\xfe\xff" * 100)
        assert CARD in reading.text
        assert reading.unread == unread("unknown_format")


def test_an_encrypted_file_of_an_archive_is_unread_and_the_others_are_read() -> None:
    data = bytearray(archive({"secret.txt": "nothing", "open.txt": CARD}))
    entry = data.index(b"PK\x01\x02")
    data[entry + 8] |= 1
    reading = read(bytes(data))
    assert CARD in reading.text
    assert reading.unread == unread("encrypted")


def test_an_archive_bomb_is_unpacked_only_up_to_the_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    unpacked: list[int] = []
    real = output.Output.unpacked
    monkeypatch.setattr(output.Output, "unpacked", lambda self, size: unpacked.append(size) or real(self, size))
    bomb = archive({"a.txt": bytes(70 * 1024**2)})
    assert len(bomb) < 100_000
    for data in (bomb, archive({"b.zip": bomb}), pdf("x", attached=bomb)):
        unpacked.clear()
        assert read(data).unread == unread("too_large")
        assert sum(unpacked) <= limits.MAX_UNPACKED_BYTES + 256 * 1024


def test_text_is_read_up_to_its_bound() -> None:
    reading = read(archive({"a.txt": "word " * 1_000_000, "b.txt": CARD}))
    assert len(reading.text) == limits.MAX_CHARACTERS
    assert reading.unread == unread("too_large")


def test_shared_strings_that_are_used_again_and_again_are_read_up_to_the_bound() -> None:
    reading = read(xlsx(["x" * 10_000], '<c t="s"><v>0</v></c>' * 5_000))
    assert len(reading.text) == limits.MAX_CHARACTERS
    assert reading.unread == unread("too_large")


def test_an_archive_of_too_many_files_is_read_up_to_the_bound() -> None:
    files = {f"{number}": b"" for number in range(limits.MAX_MEMBERS + 5)}
    reading = read(archive(files))
    assert f"\n{limits.MAX_MEMBERS - 1}\n" in reading.text
    assert f"\n{limits.MAX_MEMBERS}\n" not in reading.text
    assert reading.unread == unread("too_large")


def test_archives_within_archives_are_read_up_to_the_bound() -> None:
    def nested(levels: int) -> bytes:
        data = archive({"a.txt": CARD})
        for _ in range(levels):
            data = archive({"a.zip": data})
        return data

    assert CARD in read(nested(limits.MAX_LEVELS - 1)).text
    deep = read(nested(limits.MAX_LEVELS + 1))
    assert CARD not in deep.text
    assert deep.unread == unread("too_large")


@pytest.mark.parametrize(
    "markup",
    [
        '<!DOCTYPE a [<!ENTITY a "aaaaaaaaaa">' + "".join(
            f'<!ENTITY {one} "{f"&{before};" * 10}">' for before, one in zip("abcdefgh", "bcdefghi", strict=True)
        ) + "]><a>&i;</a>",
        '<!DOCTYPE a [<!ENTITY x SYSTEM "file:///etc/passwd">]><a>&x;</a>',
        "<a>" * 100_000 + "</a>" * 100_000,
    ],
    ids=["entities of entities", "a file", "deep"],
)  # fmt: skip
def test_hostile_markup_is_unread(markup: str) -> None:
    reading = read(docx(CARD, evil_xml=markup))
    assert CARD in reading.text
    assert reading.unread == unread("broken")
    assert "root:" not in reading.text
    assert len(reading.text) < 10_000


def test_members_that_lie_about_their_size_are_read_up_to_the_bound() -> None:
    data = bytearray(archive({"a.txt": bytes(70 * 1024**2)}))
    for record, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        start = data.index(record) + place
        data[start : start + 4] = (10).to_bytes(4, "little")
    assert len(read(bytes(data)).text) < 1_000


def test_a_text_that_begins_like_a_document_is_read_as_text() -> None:
    for text in (f"%PDF-1.7 is how it begins. {CARD}", f"PK\x03\x04 {CARD}", f"BZh and {CARD}"):
        reading = read(text.encode())
        assert reading.text == text
        assert reading.encoding == "utf-8"


def test_a_file_declared_as_text_is_also_read_as_text() -> None:
    data = pdf("a page") + b"% " + CARD.encode()
    assert CARD not in read(data).text
    assert CARD in read(data, declared_as_text=True).text
