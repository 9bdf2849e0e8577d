"""OpenAI's audio API: transcriptions and translations of recordings, and speech."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

import msgspec

from gatehouse.engine.conversation.call import ModelCall
from gatehouse.engine.conversation.decoding.answers import decode
from gatehouse.engine.conversation.decoding.bodies import CallShape
from gatehouse.engine.conversation.dialect import NO_HEADERS
from gatehouse.engine.conversation.dialects.form_dialect import FormDialect
from gatehouse.engine.conversation.dialects.openai_images import usage_of
from gatehouse.engine.conversation.dialects.passing_only import PassingOnly
from gatehouse.engine.conversation.errors import InvalidField
from gatehouse.engine.conversation.usage import Usage
from gatehouse.foundation.errors import Refusal

#: the formats of a transcription that are plain text; all others are JSON
_TEXT_FORMATS: Final = ("text", "srt", "vtt")
#: maximum length of the text to be spoken, in characters
MAX_SPEECH_CHARACTERS: Final = 100_000


class _RecordingShape(CallShape, gc=False, kw_only=True):
    prompt: str | None = None
    response_format: str | None = None


class _Transcript(msgspec.Struct):
    text: str
    #: tokens, or the seconds of the recording
    usage: Any = None


_transcript = msgspec.json.Decoder(_Transcript)


class _Recordings(FormDialect):
    shape = _RecordingShape
    file_kind = "audio"
    required_file = "file"
    file_names = frozenset({"file"})

    def answer_form(self, values: Mapping[str, Any]) -> Literal["json", "text"]:
        return "text" if values.get("response_format") in _TEXT_FORMATS else "json"

    def check_reply(self, body: bytes) -> Usage | None:
        return usage_of(decode(_transcript, body).usage)


class OpenAITranscriptions(_Recordings):
    name = "openai_transcriptions"
    operation: Literal["transcription"] = "transcription"


class OpenAITranslations(_Recordings):
    name = "openai_translations"
    operation: Literal["translation"] = "translation"


class _SpeechShape(CallShape, gc=False, kw_only=True):
    input: Annotated[str, msgspec.Meta(min_length=1, max_length=MAX_SPEECH_CHARACTERS)]
    voice: str | dict[str, Any] | None = None
    instructions: str | None = None
    response_format: str | None = None
    stream_format: str | None = None


class OpenAISpeech(PassingOnly):
    """Speech. The answer is a recording, which is passed on in pieces."""

    name = "openai_speech"
    operation: Literal["speech"] = "speech"
    shape = _SpeechShape

    def decode(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ModelCall:
        call = super().decode(body, headers)
        if call.body.get("stream_format") not in {None, "audio"}:
            raise InvalidField("stream_format", "`stream_format` must be `audio`.")
        return msgspec.structs.replace(call, answer_form="binary")

    def check_reply(self, body: bytes) -> None:
        return None

    def render_stream_error(self, error: Refusal) -> bytes:
        # A recording cannot contain an error, so the connection is closed.
        return b""
