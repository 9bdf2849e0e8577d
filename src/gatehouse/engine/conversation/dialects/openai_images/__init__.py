"""OpenAI's images API: generation, edits and variations. The images of an answer are in base64, or at a URL of
the provider."""

from typing import Annotated, Any, Final, Literal

import msgspec

from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.decoding.bodies import CallShape
from gatehouse.engine.conversation.dialects.form_dialect import FormDialect
from gatehouse.engine.conversation.dialects.passing_only import PassingOnly
from gatehouse.engine.conversation.usage import Usage

#: maximum number of images of a call
MAX_IMAGES: Final = 128

ImageCount = Annotated[int, msgspec.Meta(ge=1, le=MAX_IMAGES)]


class _GenerationShape(CallShape, gc=False, kw_only=True):
    prompt: str
    n: ImageCount | None = None


class _Usage(msgspec.Struct):
    input_tokens: int = 0
    output_tokens: int = 0


class _Answer(msgspec.Struct):
    data: list[msgspec.Raw]
    usage: Any = None


_answer = msgspec.json.Decoder(_Answer)


def usage_of(usage: Any) -> Usage | None:
    """Return the usage in the form of OpenAI's images and recordings, or None if it is missing or has no tokens."""
    try:
        tokens = msgspec.convert(usage, _Usage)
    except msgspec.ValidationError:
        return None
    if tokens.input_tokens <= 0 and tokens.output_tokens <= 0:
        return None
    return Usage(input_tokens=max(tokens.input_tokens, 0), output_tokens=max(tokens.output_tokens, 0))


class OpenAIImageGeneration(PassingOnly):
    name = "openai_image_generation"
    operation: Literal["image_generation"] = "image_generation"
    shape = _GenerationShape

    def check_reply(self, body: bytes) -> Usage | None:
        return usage_of(decode(_answer, body).usage)


class _EditShape(CallShape, gc=False, kw_only=True):
    prompt: str
    n: ImageCount | None = None


class _VariationShape(CallShape, gc=False, kw_only=True):
    n: ImageCount | None = None


class _ImageForm(FormDialect):
    file_kind = "image"
    required_file = "image"
    file_names = frozenset({"image", "mask", "markup"})
    integers = frozenset({"n"})

    def check_reply(self, body: bytes) -> Usage | None:
        return usage_of(decode(_answer, body).usage)


class OpenAIImageEdits(_ImageForm):
    name = "openai_image_edits"
    operation: Literal["image_edit"] = "image_edit"
    shape = _EditShape


class OpenAIImageVariations(_ImageForm):
    name = "openai_image_variations"
    operation: Literal["image_variation"] = "image_variation"
    shape = _VariationShape
