"""Turns an uploaded file into a safe picture: decodes, crops and re-encodes it, so that only its pixels are kept.

One thread handles one picture at a time, because an open picture takes up to 130 MB."""

from functools import partial
from io import BytesIO
from typing import Final

from PIL import Image, ImageOps

from gatehouse.foundation.errors import BadRequest, Unavailable
from gatehouse.foundation.tasks import BoundedThreadPool

#: Width and height in pixels.
SIZE_PIXELS: Final = 256
#: Maximum number of pixels of a picture, checked before decoding. A file of a few kilobytes can claim any number of
#: pixels.
MAX_PIXELS: Final = 4096 * 4096
#: Maximum number of scans of a progressive JPEG, which usually has about ten. Decoding a scan costs as much as a whole
#: picture, and an empty scan takes 33 bytes.
MAX_SCANS: Final = 100
_SCAN_MARKER: Final = b"\xff\xda"
_MAX_WAITING_PICTURES: Final = 8


class NotAPicture(BadRequest):
    code = "unsupported_image"
    message = "file: this is neither a PNG nor a JPEG picture that can be read, of at most 16 megapixels."


class TooManyPictures(Unavailable):
    code = "pictures_busy"
    message = "Too many pictures at once; try again in a moment."


_POOL: Final = BoundedThreadPool("pictures", threads=1, max_waiting=_MAX_WAITING_PICTURES, busy=TooManyPictures)


async def avatar(content: bytes) -> bytes:
    """Return a PNG of `SIZE_PIXELS` by `SIZE_PIXELS`. Raises `NotAPicture`, `TooManyPictures`."""
    return await _POOL.run(partial(reencode, content))


def reencode(content: bytes) -> bytes:
    """Return the middle square of a PNG or JPEG, upright, as a PNG. Raises `NotAPicture`."""
    try:
        picture = _square(content)
    except NotAPicture:
        raise
    except Exception:
        # The decoder raises errors of many kinds for a hostile file.
        raise NotAPicture from None
    # Pixels only: no color profile, no text, no camera position.
    pixels_only = Image.frombytes(picture.mode, picture.size, picture.tobytes())
    encoded = BytesIO()
    pixels_only.save(encoded, "PNG", optimize=True)
    return encoded.getvalue()


def _square(content: bytes) -> Image.Image:
    # The content decides the format. The file's name and the client's media type are ignored.
    with Image.open(BytesIO(content), formats=("PNG", "JPEG")) as source:
        if source.width * source.height > MAX_PIXELS:
            raise NotAPicture
        if source.format != "PNG" and content.count(_SCAN_MARKER) > MAX_SCANS:
            raise NotAPicture
        # Decodes a large JPEG at a fraction of its size; other formats do not support this.
        source.draft("RGB", (2 * SIZE_PIXELS, 2 * SIZE_PIXELS))
        # Rotates in place, because a copy would double the memory of a large picture.
        ImageOps.exif_transpose(source, in_place=True)
        picture: Image.Image = source
        if picture.mode.startswith("I"):
            # Scales 16 bits of grey to 8. The conversion below would truncate the values instead.
            picture = picture.convert("I").point(lambda value: value * (1 / 256)).convert("L")
        mode = "RGBA" if picture.has_transparency_data else "RGB"
        if picture.mode != mode:
            picture = picture.convert(mode)
        return ImageOps.fit(picture, (SIZE_PIXELS, SIZE_PIXELS), method=Image.Resampling.LANCZOS)
