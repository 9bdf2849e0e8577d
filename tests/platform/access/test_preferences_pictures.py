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
from gatehouse.platform.access.preferences.pictures import NotAPicture, TooManyPictures, avatar, reencode

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


def is_close(colour: object, expected: tuple[int, ...]) -> bool:
    assert isinstance(colour, tuple)
    return all(abs(a - b) < 30 for a, b in zip(colour, expected, strict=True))


def thirds(width: int, height: int) -> Image.Image:
    """Return a picture that is red on the left, green in the middle and blue on the right."""
    picture = Image.new("RGB", (width, height), GREEN)
    draw = ImageDraw.Draw(picture)
    draw.rectangle((0, 0, width // 4, height), RED)
    draw.rectangle((width - width // 4, 0, width, height), BLUE)
    return picture


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_of(width: int, height: int, data: bytes = b"", *, more: bytes = b"") -> bytes:
    """Return a PNG with this width and height in its header."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + more + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_picture_is_cropped_to_its_middle_square(kind: str) -> None:
    picture = decoded(reencode(encoded(thirds(1200, 600), kind)))
    assert picture.mode == "RGB"
    for position in ((3, 128), (128, 128), (252, 128)):
        assert is_close(picture.getpixel(position), GREEN)


@pytest.mark.parametrize("size", [(1, 1), (16, 300), (3000, 40), (4096, 4096)])
def test_pictures_of_any_size_are_scaled_to_256_pixels(size: tuple[int, int]) -> None:
    decoded(reencode(encoded(Image.new("RGB", size, RED))))


@pytest.mark.parametrize(
    ("mode", "kind"),
    [("1", "PNG"), ("L", "PNG"), ("P", "PNG"), ("LA", "PNG"), ("RGBA", "PNG"), ("L", "JPEG"), ("CMYK", "JPEG")],
)
def test_every_pixel_format_is_read(mode: str, kind: str) -> None:
    picture = decoded(reencode(encoded(Image.new(mode, (300, 300)), kind)))
    assert picture.mode == ("RGBA" if mode in {"LA", "RGBA"} else "RGB")


def test_16_bit_grey_is_converted() -> None:
    assert is_close(decoded(reencode(encoded(Image.new("I;16", (300, 300), 32_768)))).getpixel((9, 9)), (128,) * 3)


def test_transparency_is_kept() -> None:
    picture = decoded(reencode(encoded(Image.new("RGBA", (300, 300), (9, 9, 9, 0)))))
    assert picture.getchannel("A").getextrema() == (0, 0)


def test_a_photograph_is_rotated_according_to_its_exif_data() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # decoders rotate the picture by 90 degrees, clockwise
    turned = Image.new("RGB", (400, 400), BLUE)
    ImageDraw.Draw(turned).rectangle((0, 0, 200, 400), RED)
    picture = decoded(reencode(encoded(turned, "JPEG", exif=exif, quality=95)))
    assert is_close(picture.getpixel((128, 20)), RED)
    assert is_close(picture.getpixel((128, 235)), BLUE)


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_metadata_is_removed(kind: str) -> None:
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
    # At least two texts are readable: a PNG compresses its profile.
    assert content.count(b"secret") >= 2
    assert {"exif", "icc_profile"} <= Image.open(BytesIO(content)).info.keys()
    result = reencode(content + b"<script>a secret tail</script>")
    assert b"secret" not in result
    assert [result[offset + 4 : offset + 8] for offset in _chunks(result)] == [b"IHDR", b"IDAT", b"IEND"]
    assert decoded(result).info == {}


def _chunks(png: bytes) -> list[int]:
    offsets, at = [], 8
    while at < len(png):
        offsets.append(at)
        at += 12 + int.from_bytes(png[at : at + 4], "big")
    return offsets


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
def test_a_file_that_is_not_a_picture_is_refused(content: bytes) -> None:
    with pytest.raises(NotAPicture):
        reencode(content)


def progressive(more_scans: int) -> bytes:
    """Return a JPEG whose last scan is repeated this many times."""
    content = encoded(thirds(300, 300), "JPEG", progressive=True)
    last = content[content.rindex(b"\xff\xda") : -2]
    return content[:-2] + last * more_scans + content[-2:]


def test_a_picture_with_too_many_scans_is_refused_before_it_is_decoded() -> None:
    assert is_close(decoded(reencode(progressive(0))).getpixel((128, 128)), GREEN)
    assert is_close(decoded(reencode(progressive(50))).getpixel((128, 128)), GREEN)
    with pytest.raises(NotAPicture):
        reencode(progressive(200))


@pytest.mark.parametrize("kind", ["MPO", "PNG"])
def test_the_first_of_several_pictures_in_a_file_is_used(kind: str) -> None:
    others = [Image.new("RGB", (300, 300), BLUE)] * 2
    content = encoded(Image.new("RGB", (300, 300), RED), kind, save_all=True, append_images=others)
    result = reencode(content)
    assert is_close(decoded(result).getpixel((128, 128)), RED)
    assert b"acTL" not in result


@pytest.mark.parametrize("offset", range(0, len(_JPEG), max(1, len(_JPEG) // 60)))
def test_a_damaged_file_is_decoded_or_refused(offset: int) -> None:
    damaged = bytearray(_JPEG)
    damaged[offset] ^= 0xFF
    with contextlib.suppress(NotAPicture):
        decoded(reencode(bytes(damaged)))


async def test_the_number_of_waiting_pictures_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    def slow(content: bytes) -> bytes:
        release.wait(10)
        return content

    monkeypatch.setattr(pictures, "reencode", slow)
    tasks = [asyncio.create_task(avatar(b"x")) for _ in range(12)]
    await asyncio.sleep(0.1)
    # The event loop is free while the threads work, and the pictures beyond the limit are refused at once.
    refused = [task for task in tasks if task.done()]
    assert [type(task.exception()) for task in refused] == [TooManyPictures] * 3
    release.set()
    result = await asyncio.gather(*tasks, return_exceptions=True)
    assert result.count(b"x") == 9
    assert await avatar(b"y") == b"y"
