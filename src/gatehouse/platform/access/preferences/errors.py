"""Errors of preferences and pictures."""

from typing import Final

from gatehouse.foundation.errors import BadRequest, FieldFault, NotFound, PayloadTooLarge, Unavailable, Unprocessable

#: Maximum size of an uploaded picture.
MAX_PICTURE_BYTES: Final = 1024 * 1024


class AvatarNotFound(NotFound):
    message = "The user has no avatar"


class NotAPicture(BadRequest):
    code = "unsupported_image"
    message = "file: this is neither a PNG nor a JPEG picture that can be read, of at most 16 megapixels."


class PictureTooLarge(PayloadTooLarge):
    message = f"file: a picture may have at most {MAX_PICTURE_BYTES} bytes."


class BadAvatarForm(BadRequest):
    message = "The form cannot be read: send multipart/form-data with the part `file`."


class NoFile(Unprocessable):
    def __init__(self) -> None:
        super().__init__(faults=[FieldFault("file", "Field required: a picture, as multipart/form-data")])


class TooManyPictures(Unavailable):
    code = "pictures_busy"
    message = "Too many pictures at once; try again in a moment."
