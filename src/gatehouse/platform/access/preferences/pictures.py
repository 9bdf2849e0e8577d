"""From whatever somebody uploads to a picture that is safe to show: decoded, cropped, and encoded anew, so that nothing
of the file but its pixels is kept. In a thread, one at a time: a picture takes up to 130 MB while it is open."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO
from typing import Final

from PIL import Image, ImageOps

from gatehouse.platform.access.preferences.errors import NotAPicture, TooManyPictures

#: Width and height in pixels.
SIZE: Final = 256
#: Of a picture before it is decoded: a file of a few kilobytes can claim any number.
MOST_PIXELS: Final = 4096 * 4096
#: Of a progressive JPEG, which has ten or so. Each costs as much as a whole picture, and an empty one takes 33 bytes.
MOST_SCANS: Final = 100
_SCAN: Final = b"\xff\xda"
_WAITING: Final = 8

_pool: Final = ThreadPoolExecutor(1, thread_name_prefix="pictures")
_places: Final = threading.BoundedSemaphore(1 + _WAITING)


async def avatar(content: bytes) -> bytes:
    """A PNG of `SIZE` by `SIZE`. Raises `NotAPicture`, `TooManyPictures`."""
    if not _places.acquire(blocking=False):
        raise TooManyPictures(headers={"Retry-After": "1"})
    future = _pool.submit(drawn_anew, content)
    # Given back when the thread is done: a client that hangs up frees nothing.
    future.add_done_callback(lambda _: _places.release())
    return await asyncio.wrap_future(future)


def drawn_anew(content: bytes) -> bytes:
    """The middle square of a PNG or JPEG, upright. Raises `NotAPicture`."""
    try:
        picture = _square(content)
    except NotAPicture:
        raise
    except Exception:
        # The decoder raises whatever it stumbles over in a hostile file.
        raise NotAPicture from None
    # Pixels alone: no profile, no text, no position of the camera.
    bare = Image.frombytes(picture.mode, picture.size, picture.tobytes())
    encoded = BytesIO()
    bare.save(encoded, "PNG", optimize=True)
    return encoded.getvalue()


def _square(content: bytes) -> Image.Image:
    # What it is, its content says: neither the file's name nor what the client calls it.
    with Image.open(BytesIO(content), formats=("PNG", "JPEG")) as opened:
        if opened.width * opened.height > MOST_PIXELS:
            raise NotAPicture
        if opened.format != "PNG" and content.count(_SCAN) > MOST_SCANS:
            raise NotAPicture
        # A large JPEG is decoded at a fraction of its size; other formats know no such thing.
        opened.draft("RGB", (2 * SIZE, 2 * SIZE))
        # In place: a copy of a large picture is as large again.
        ImageOps.exif_transpose(opened, in_place=True)
        picture: Image.Image = opened
        if picture.mode.startswith("I"):
            # 16 bits of grey: the conversion below would cut them off, not scale them.
            picture = picture.convert("I").point(lambda value: value * (1 / 256)).convert("L")
        mode = "RGBA" if picture.has_transparency_data else "RGB"
        if picture.mode != mode:
            picture = picture.convert(mode)
        return ImageOps.fit(picture, (SIZE, SIZE), method=Image.Resampling.LANCZOS)
