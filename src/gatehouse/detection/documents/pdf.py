"""Reads PDF files with PDFium: pages, comments, forms, attachments, and metadata."""

from collections.abc import Callable, Iterator
from ctypes import create_string_buffer
from typing import Any, Final

import pypdfium2
import pypdfium2.raw as pdfium

from gatehouse.detection.documents.limits import MAX_ANNOTATIONS, MAX_PAGE_OBJECTS, MAX_PAGES
from gatehouse.detection.documents.output import Output
from gatehouse.detection.separator import SEPARATOR

#: Keys of the texts in comments, fields of forms, and links.
_TEXT_KEYS: Final = (b"Contents", b"V", b"DV", b"TU", b"RC")


class BadPdf(Exception):
    """The file is not a PDF, or is too damaged to be read."""


def read_pdf(data: bytes, output: Output, read_file: Callable[[bytes, Output], None]) -> None:
    """Read a document. Attachments are read with `read_file`. Raises `BadPdf` and `LimitReached`."""
    try:
        document = pypdfium2.PdfDocument(data)
    except pypdfium2.PdfiumError as error:
        if error.err_code in {pdfium.FPDF_ERR_PASSWORD, pdfium.FPDF_ERR_SECURITY}:
            output.add_unread("file", "encrypted")
            return
        raise BadPdf from None
    for text in document.get_metadata_dict(skip_empty=True).values():
        output.write(text + SEPARATOR)
    pages = len(document)
    if not pages:
        raise BadPdf
    has_pictures = False
    for number in range(min(pages, MAX_PAGES)):
        output.unpacked(0)
        try:
            page = document[number]
            output.write(page.get_textpage().get_text_range() + SEPARATOR)
        except pypdfium2.PdfiumError:
            output.add_unread("file", "broken")
            continue
        for text in _annotations(page):
            output.write(text + SEPARATOR)
        has_pictures = has_pictures or _has_pictures(page)
        page.close()
    if has_pictures:
        output.add_unread("image", "no_text")
    _attached(document, output, read_file)
    if pages > MAX_PAGES:
        output.limit_reached()


def _has_pictures(page: pypdfium2.PdfPage) -> bool:
    # Usual programs nest forms at most two levels deep. A hostile file may have more levels, which are not searched.
    return _any_picture(page.raw, pdfium.FPDFPage_CountObjects, pdfium.FPDFPage_GetObject, levels=2)


def _any_picture(holder: Any, count: Any, get: Any, *, levels: int) -> bool:
    for number in range(min(count(holder), MAX_PAGE_OBJECTS)):
        page_object = get(holder, number)
        kind = pdfium.FPDFPageObj_GetType(page_object)
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE:
            return True
        if kind == pdfium.FPDF_PAGEOBJ_FORM and levels:
            inner = (pdfium.FPDFFormObj_CountObjects, pdfium.FPDFFormObj_GetObject)
            if _any_picture(page_object, *inner, levels=levels - 1):
                return True
    return False


def _annotations(page: pypdfium2.PdfPage) -> Iterator[str]:
    for number in range(min(pdfium.FPDFPage_GetAnnotCount(page.raw), MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, number)
        for name in _TEXT_KEYS:
            size = pdfium.FPDFAnnot_GetStringValue(annotation, name, None, 0)
            # A text ends with two zero bytes, so an empty text has two bytes.
            if size > 2:
                buffer = create_string_buffer(size)
                pdfium.FPDFAnnot_GetStringValue(
                    annotation, name, pdfium.cast(buffer, pdfium.POINTER(pdfium.FPDF_WCHAR)), size
                )
                yield buffer.raw[: size - 2].decode("utf-16-le", "replace")
        pdfium.FPDFPage_CloseAnnot(annotation)


def _attached(document: pypdfium2.PdfDocument, output: Output, read_file: Callable[[bytes, Output], None]) -> None:
    for number in range(document.count_attachments()):
        output.member()
        try:
            attachment = document.get_attachment(number)
            output.write(attachment.get_name() + SEPARATOR)
            data = bytes(attachment.get_data())
        except pypdfium2.PdfiumError:
            output.add_unread("file", "broken")
            continue
        output.unpacked(len(data))
        with output.level():
            read_file(data, output)
        output.write(SEPARATOR)
