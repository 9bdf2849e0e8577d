"""Documents like those of office programs and of attackers."""

import zipfile
import zlib
from collections.abc import Mapping
from io import BytesIO

_WORD = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
_DRAWING = "http://schemas.openxmlformats.org/drawingml/2006/main"
_SHEET = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_RELATIONS = "http://schemas.openxmlformats.org/package/2006/relationships"
_HEAD = '<?xml version="1.0" encoding="UTF-8" standalone="yes"?>'
#: A picture of one pixel.
PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c489"
    "0000000d4944415478da63fccfc0500f0004850180840a3c8d0000000049454e44ae426082"
)


def archive(files: Mapping[str, str | bytes]) -> bytes:
    written = BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as file:
        for name, content in files.items():
            file.writestr(name, content)
    return written.getvalue()


def docx(*paragraphs: str, **files: str | bytes) -> bytes:
    """Return a document in which each paragraph has two runs, as after a spelling check. `files` are files in `word/`
    by name, with `_` instead of `.`."""
    runs = "".join(
        f"<w:p><w:r><w:t xml:space='preserve'>{text[:7]}</w:t></w:r><w:r><w:t>{text[7:]}</w:t></w:r></w:p>"
        for text in paragraphs
    )
    document = f'{_HEAD}<w:document xmlns:w="{_WORD}"><w:body>{runs}</w:body></w:document>'
    content = {"word/" + name.replace("_", "."): data for name, data in files.items()}
    return archive({"[Content_Types].xml": f"{_HEAD}<Types/>", "word/document.xml": document, **content})


def docx_part(tag: str, text: str) -> str:
    """Return the XML of a header, comment or similar part."""
    return f'{_HEAD}<w:{tag} xmlns:w="{_WORD}"><w:p><w:r><w:t>{text}</w:t></w:r></w:p></w:{tag}>'


def relation(target: str) -> str:
    return f'{_HEAD}<Relationships xmlns="{_RELATIONS}"><Relationship Target="{target}"/></Relationships>'


def xlsx(strings: list[str], cells: str) -> bytes:
    """Return a workbook. `cells` is the XML of its only row."""
    shared = "".join(f"<si><t>{text}</t></si>" for text in strings)
    return archive(
        {
            "[Content_Types].xml": f"{_HEAD}<Types/>",
            "xl/worksheets/sheet1.xml": f'{_HEAD}<worksheet xmlns="{_SHEET}"><sheetData><row>{cells}</row></sheetData>'
            "</worksheet>",
            "xl/sharedStrings.xml": f'{_HEAD}<sst xmlns="{_SHEET}">{shared}</sst>',
        }
    )


def pptx(text: str, notes: str = "") -> bytes:
    def slide(content: str) -> str:
        return (
            f'{_HEAD}<p:sld xmlns:p="http://schemas.openxmlformats.org/presentationml/2006/main" xmlns:a="{_DRAWING}">'
            f"<a:p><a:r><a:t>{content[:4]}</a:t></a:r><a:r><a:t>{content[4:]}</a:t></a:r></a:p></p:sld>"
        )

    return archive({"ppt/slides/slide1.xml": slide(text), "ppt/notesSlides/notesSlide1.xml": slide(notes)})


def pdf(
    text: str = "", *, comment: str = "", author: str = "", attached: bytes = b"", picture: bool = False,
    encrypted: bool = False, repeated: int = 1,
) -> bytes:  # fmt: skip
    """Return a PDF with one page. `repeated` is how often the page contains its text stream."""
    content = zlib.compress(
        f"BT /F1 12 Tf 50 700 Td ({text}) Tj ET\n".encode() * repeated
        + (b"q 9 0 0 9 9 9 cm /I1 Do Q" if picture else b"")
    )
    objects: list[bytes] = [
        b"<< /Type /Catalog /Pages 2 0 R"
        + (b" /Names << /EmbeddedFiles << /Names [(a.txt) 8 0 R] >> >>" if attached else b"")
        + b" >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 5 0 R /Annots [6 0 R]"
        b" /Resources << /Font << /F1 4 0 R >> /XObject << /I1 10 0 R >> >> >>",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
        b"<< /Length %d /Filter /FlateDecode >>\nstream\n%s\nendstream" % (len(content), content),
        f"<< /Type /Annot /Subtype /Text /Rect [0 0 9 9] /Contents ({comment}) >>".encode(),
        f"<< /Author ({author}) >>".encode(),
        b"<< /Type /Filespec /F (a.txt) /UF (a.txt) /EF << /F 9 0 R >> >>",
        b"<< /Type /EmbeddedFile /Length %d >>\nstream\n%s\nendstream" % (len(attached), attached),
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>"
        b"\nstream\n\xaa\nendstream",
        b"<< /Filter /Standard /V 1 /R 2 /Length 40 /P -4 /O <%s> /U <%s> >>" % (b"41" * 32, b"42" * 32),
    ]
    written = BytesIO()
    written.write(b"%PDF-1.4\n")
    places: list[int] = []
    for number, item in enumerate(objects, 1):
        places.append(written.tell())
        written.write(b"%d 0 obj\n%s\nendobj\n" % (number, item))
    table = written.tell()
    written.write(b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1))
    written.write(b"".join(b"%010d 00000 n \n" % place for place in places))
    security = b" /Encrypt 11 0 R /ID [<41> <41>]" if encrypted else b""
    trailer = b"trailer\n<< /Size %d /Root 1 0 R /Info 7 0 R%s >>\nstartxref\n%d\n%%%%EOF\n"
    written.write(trailer % (len(objects) + 1, security, table))
    return written.getvalue()
