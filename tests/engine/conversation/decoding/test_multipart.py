"""Multipart forms: how they are decoded, which are refused, and what is sent to the provider."""

from typing import Any

import pytest

from gatehouse.engine.conversation.decoding.multipart import (
    MAX_PART_HEADER_BYTES,
    MAX_PARTS,
    MAX_VALUE_BYTES,
    MalformedForm,
    read_form,
    write_form,
)
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.foundation.errors import Refusal

TYPE = "multipart/form-data; boundary=b"


def form(*parts: tuple[str, bytes]) -> bytes:
    """Return a form. Each of its parts has a head and a content."""
    return b"".join(b"--b\r\n" + head.encode() + b"\r\n\r\n" + data + b"\r\n" for head, data in parts) + b"--b--\r\n"


def value(name: str, data: bytes | str = "x") -> tuple[str, bytes]:
    return f'Content-Disposition: form-data; name="{name}"', data.encode() if isinstance(data, str) else data


def file(name: str, data: bytes, filename: str = "a.png") -> tuple[str, bytes]:
    head = f'content-disposition: form-data; name="{name}"; filename="{filename}"\r\nContent-Type: image/png'
    return head, data


def test_values_lists_objects_and_files_are_read() -> None:
    picture = b"\x89PNG\r\n--bc\r\nx--bb\r\n\x00"
    body = form(
        value("model", "a/b"), value("words[]", "one"), value("words[]", "two"), value("plan[kind]", "vad"),
        value("plan[deep][er]", "2"), file("image", picture, "My Card 4111.PNG"),
    )  # fmt: skip
    values, files = read_form('Multipart/Form-Data; charset=utf-8; boundary="b"', body)
    assert values == {"model": "a/b", "words": ["one", "two"], "plan": {"kind": "vad", "deep": {"er": "2"}}}
    [image] = files
    assert (image.name, image.extension, image.media_type) == ("image", "png", "image/png")
    assert bytes(image.data) == picture


def test_a_form_that_is_written_and_read_is_unchanged() -> None:
    values: dict[str, Any] = {"model": "m", "n": 2, "stream": False, "words": ["é", "two"], "plan": {"a": {"b": "c"}}}
    _, files = read_form(TYPE, form(file("image[]", b"\x89PNG", "secret name.png"), file("mask", b"GIF89a", "x.exe")))
    body, content_type = write_form(values, files)
    assert b"secret name" not in body
    assert b'filename="image.png"' in body
    assert b'filename="mask"' in body
    again, again_files = read_form(content_type, body)
    assert again == {**values, "n": "2", "stream": "false"}
    assert [(file.name, bytes(file.data)) for file in again_files] == [("image[]", b"\x89PNG"), ("mask", b"GIF89a")]


@pytest.mark.parametrize(
    ("content_type", "body", "named"),
    [
        (None, b"", "multipart/form-data"),
        ("application/json", b"{}", "multipart/form-data"),
        ("multipart/form-data", b"", "boundary"),
        (TYPE, b"", "begin"),
        (TYPE, b"--c\r\n", "begin"),
        (TYPE, b"--b\r\n", "Part 1"),
        (TYPE, form(value("a"))[:-9], "Part 1"),
        (TYPE, form(value("a"), value("b"))[:-10], "Part 2"),
        (TYPE, form(("X: " + "y" * MAX_PART_HEADER_BYTES, b"")), "Part 1"),
        (TYPE, form(("nonsense", b"")), "Part 1"),
        (TYPE, form(("Content-Disposition: attachment; name=a", b"")), "Part 1"),
        (TYPE, form(("Content-Disposition: form-data", b"")), "Part 1"),
        (TYPE, form(('Content-Disposition: form-data; name="a"; name="b"', b"")), "`name` twice"),
        (
            TYPE,
            form(("Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b", b"")),
            "Part 1",
        ),
        (TYPE, form(value("a b")), "`a b`"),
        (TYPE, form(value("a[b][c][d][e]")), "`a[b][c][d][e]`"),
        (TYPE, form(*[value(f"a{n}") for n in range(MAX_PARTS + 1)]), f"{MAX_PARTS} parts"),
    ],
)
def test_a_malformed_form_is_refused(content_type: str | None, body: bytes, named: str) -> None:
    with pytest.raises(MalformedForm) as refused:
        read_form(content_type, body)
    assert named in refused.value.text


@pytest.mark.parametrize(
    ("parts", "param"),
    [
        ([value("a"), value("a")], "a"),
        ([value("a"), value("a[]")], "a[]"),
        ([value("a[]"), value("a")], "a"),
        ([value("a[]"), value("a[b]")], "a[b]"),
        ([value("a[b]"), value("a[b][c]")], "a[b][c]"),
        ([value("a", b"\xff")], "a"),
        ([value("a", "x\0")], "a"),
        ([value("a", "x" * (MAX_VALUE_BYTES + 1))], "a"),
        ([(value("a")[0] + "\r\nContent-Transfer-Encoding: base64", b"eA==")], "a"),
    ],
)
def test_an_invalid_part_is_named(parts: list[tuple[str, bytes]], param: str) -> None:
    with pytest.raises(InvalidField) as refused:
        read_form(TYPE, form(*parts))
    assert refused.value.extra["param"] == param


def test_a_truncated_form_is_always_refused_with_the_expected_error() -> None:
    body = form(value("model", "m"), file("image", b"\x89PNG\r\n"))
    for length in range(len(body) - len(b"--\r\n")):
        with pytest.raises(Refusal):
            read_form(TYPE, body[:length])
