"""Conversion of uploaded pictures, and refused uploads."""

import asyncio
import contextlib
import struct
import threading
import zlib
from io import BytesIO

import pytest
from PIL import Image, ImageDraw, PngImagePlugin

from gatehouse.platform.access.preferences import pictures
from gatehouse.platform.access.preferences.errors import NotAPicture, TooManyPictures
from gatehouse.platform.access.preferences.pictures import avatar, reencode

RED, BLUE, GREEN = (255, 0, 0), (0, 0, 255), (0, 255, 0)


def encoded(picture: Image.Image, kind: str = "PNG", **more: object) -> bytes:
    out = BytesIO()
    picture.save(out, kind, **more)
    return out.getvalue()


def decoded(png: bytes) -> Image.Image:
    picture = Image.open(BytesIO(png))
    picture.load()
    assert (picture.format, picture.size) == ("PNG", (256, 256))
    return picture


def near(one: object, other: tuple[int, ...]) -> bool:
    assert isinstance(one, tuple)
    return all(abs(a - b) < 30 for a, b in zip(one, other, strict=True))


def thirds(width: int, height: int) -> Image.Image:
    """Red left, green middle, blue right."""
    picture = Image.new("RGB", (width, height), GREEN)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0, width // 4, height), RED)
    draw.rectangle((width - width // 4, 0, width, height), BLUE)
    return picture


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width: int, height: int, data: bytes = b"", *, more: bytes = b"") -> bytes:
    """A PNG with any values in its header."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + more + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_the_middle_square_is_kept(kind: str) -> None:
    picture = decoded(reencode(encoded(thirds(1200, 600), kind)))
    assert picture.mode == "RGB"
    for place in ((3, 128), (128, 128), (252, 128)):
        assert near(picture.getpixel(place), GREEN)


@pytest.mark.parametrize("size", [(1, 1), (16, 300), (3000, 40), (4096, 4096)])
def test_any_size_becomes_the_same(size: tuple[int, int]) -> None:
    decoded(reencode(encoded(Image.new("RGB", size, RED))))


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("1", "PNG"), ("L", "PNG"), ("P", "PNG"), ("LA", "PNG"), ("RGBA", "PNG"), ("L", "JPEG"), ("CMYK", "JPEG")],
)
def test_every_kind_of_pixels_is_read(mode: str, kind: str) -> None:
    picture = decoded(reencode(encoded(Image.new(mode, (300, 300)), kind)))
    assert picture.mode == ("RGBA" if mode in {"LA", "RGBA"} else "RGB")


def test_sixteen_bits_of_grey_stay_grey() -> None:
    assert near(decoded(reencode(encoded(Image.new("I;16", (300, 300), 32_768)))).getpixel((9, 9)), (128,) * 3)


def test_what_is_transparent_stays_so() -> None:
    picture = decoded(reencode(encoded(Image.new("RGBA", (300, 300), (9, 9, 9, 0)))))
    assert picture.getchannel("A").getextrema() == (0, 0)


def test_a_photograph_that_lies_on_its_side_is_put_upright() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # to be turned by a quarter, clockwise
    turned = Image.new("RGB", (400, 400), BLUE)
    ImageDraw.Draw(turned).rectangle((0, 0, 200, 400), RED)
    picture = decoded(reencode(encoded(turned, "JPEG", exif=exif, quality=95)))
    assert near(picture.getpixel((128, 20)), RED)
    assert near(picture.getpixel((128, 235)), BLUE)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_nothing_but_pixels_is_kept(kind: str) -> None:
    exif = Image.Exif()
    exif[0x010E] = "a secret description"
    exif.get_ifd(0x8825)[2] = (48.0, 12.0, 0.0)
    more: dict[str, object] = {"exif": exif, "icc_profile": b"a secret profile" * 10}
    if kind == "PNG":
        more["pnginfo"] = info = PngImagePlugin.PngInfo()
        info.add_text("Comment", "a secret comment")
    else:
        more["comment"] = b"a secret comment"
    content = encoded(Image.new("RGB", (300, 300), RED), kind, **more)
    # A PNG's profile is compressed.
    assert content.count(b"secret") >= 2
    assert {"exif", "icc_profile"} <= Image.open(BytesIO(content)).info.keys()
    made = reencode(content + b"<script>a secret tail</script>")
    assert b"secret" not in made
    assert [made[place + 4 : place + 8] for place in _chunks(made)] == [b"IHDR", b"IDAT", b"IEND"]
    assert decoded(made).info == {}


def _chunks(png: bytes) -> list[int]:
    places, at = [], 8
    while at < len(png):
        places.append(at)
        at += 12 + int.from_bytes(png[at : at + 4], "big")
    return places


_GIF = encoded(Image.new("RGB", (30, 30)), "GIF")
_JPEG = encoded(thirds(300, 300), "JPEG")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"x",
        b"hello there, this is a text",
        b"<svg xmlns='http://www.w3.org/2000/svg'><script>alert(1)</script></svg>",
        b"<!DOCTYPE html><script>alert(1)</script>",
        b"%PDF-1.4",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0",
        _GIF,
        encoded(Image.new("RGB", (30, 30)), "WEBP"),
        encoded(Image.new("RGB", (30, 30)), "TIFF"),
        encoded(Image.new("RGB", (30, 30)), "BMP"),
        _JPEG[: len(_JPEG) // 2],
        png_of(30, 30, b"\0" * 90),
        png_of(0, 30),
        png_of(4097, 4096),
        png_of(100_000, 100_000),
        png_of(2**31 - 1, 2**31 - 1),
        png_of(30, 30, b"\0" * (30 * 91), more=chunk(b"zTXt", b"x\0\0" + zlib.compress(b"x" * 100_000_000))),
        png_of(30, 30, b"\0" * (30 * 91), more=chunk(b"IHDR", b"")),
    ],
    ids=range(20),
)
def test_what_is_no_picture_is_refused(content: bytes) -> None:
    with pytest.raises(NotAPicture):
        reencode(content)


def progressive(more_scans: int) -> bytes:
    """A JPEG whose last scan is repeated this many times."""
    content = encoded(thirds(300, 300), "JPEG", progressive=True)
    last = content[content.rindex(b"\xff\xda") : -2]
    return content[:-2] + last * more_scans + content[-2:]


def test_a_picture_of_endless_scans_is_refused_before_it_is_decoded() -> None:
    assert near(decoded(reencode(progressive(0))).getpixel((128, 128)), GREEN)
    assert near(decoded(reencode(progressive(50))).getpixel((128, 128)), GREEN)
    with pytest.raises(NotAPicture):
        reencode(progressive(200))


@pytest.mark.parametrize("kind", ["MPO", "PNG"])
def test_of_several_pictures_in_a_file_the_first_is_taken(kind: str) -> None:
    others = [Image.new("RGB", (300, 300), BLUE)] * 2
    content = encoded(Image.new("RGB", (300, 300), RED), kind, save_all=True, append_images=others)
    made = reencode(content)
    assert near(decoded(made).getpixel((128, 128)), RED)
    assert b"acTL" not in made


@pytest.mark.parametrize("place", range(0, len(_JPEG), max(1, len(_JPEG) // 60)))
def test_a_damaged_file_is_a_picture_or_refused_and_nothing_else(place: int) -> None:
    damaged = bytearray(_JPEG)
    damaged[place] ^= 0xFF
    with contextlib.suppress(NotAPicture):
        decoded(reencode(bytes(damaged)))


async def test_only_so_many_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()

    def slow(content: bytes) -> bytes:
        go_on.wait(10)
        return content

    monkeypatch.setattr(pictures, "reencode", slow)
    tasks = [asyncio.create_task(avatar(b"x")) for _ in range(12)]
    await asyncio.sleep(0.1)
    # The event loop is free meanwhile, and requests without room are refused at once.
    refused = [task for task in tasks if task.done()]
    assert [type(task.exception()) for task in refused] == [TooManyPictures] * 3
    go_on.set()
    made = await asyncio.gather(*tasks, return_exceptions=True)
    assert made.count(b"x") == 9
    assert await avatar(b"y") == b"y"
