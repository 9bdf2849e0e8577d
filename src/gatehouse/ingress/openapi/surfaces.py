"""The operations other than chats and embeddings in the OpenAPI document, with the schemas of their bodies."""

from typing import Any, Final

from gatehouse.engine.conversation.dialects.cohere_rerank import MAX_DOCUMENTS
from gatehouse.engine.conversation.dialects.openai_audio import MAX_SPEECH_CHARACTERS
from gatehouse.engine.conversation.dialects.openai_completions import MAX_PROMPTS
from gatehouse.engine.conversation.dialects.openai_images import MAX_IMAGES
from gatehouse.engine.conversation.dialects.openai_moderations import DEFAULT_MODEL, MAX_INPUTS
from gatehouse.ingress.openapi.paths import Operation, call_operation
from gatehouse.ingress.openapi.schemas import (
    FALLBACKS,
    MODEL,
    NUMBER,
    STREAM,
    Schema,
    integer,
    list_of,
    object_of,
    or_null,
    text,
)

_COMPLETE: Final = {"model": "sandbox/echo", "prompt": "Hello, Gatehouse", "max_tokens": 64}
_COMPLETED: Final = {
    "id": "sandbox-3f1b2c4d5e6f708192a3b4c5",
    "object": "text_completion",
    "created": 1700000000,
    "model": "sandbox/echo",
    "choices": [{"index": 0, "text": "Hello, Gatehouse", "logprobs": None, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 4, "completion_tokens": 4, "total_tokens": 8},
}

_MODERATE: Final = {"model": "sandbox/moderation", "input": "I hate gates."}
_MODERATED: Final = {
    "id": "modr-3f1b2c4d5e6f708192a3b4c5",
    "model": "sandbox/moderation",
    "results": [
        {
            "flagged": True,
            "categories": {"hate": True, "violence": False},
            "category_scores": {"hate": 0.95, "violence": 0.001},
        }
    ],
}
_RERANK: Final = {
    "model": "sandbox/rerank",
    "query": "open gate",
    "documents": ["a closed door", "the open gate"],
    "top_n": 1,
    "return_documents": True,
}
_RERANKED: Final = {
    "id": "rerank-3f1b2c4d5e6f708192a3b4c5",
    "results": [{"index": 1, "relevance_score": 1.0, "document": {"text": "the open gate"}}],
    "meta": {"billed_units": {"search_units": 1}, "tokens": {"input_tokens": 11}},
}
_SPEAK: Final = {"model": "sandbox/speech", "input": "The gate is open.", "voice": "alloy", "response_format": "wav"}
_GENERATE: Final = {"model": "sandbox/image", "prompt": "a gate at night", "n": 1}
_IMAGES: Final = {
    "created": 1700000000,
    "data": [{"b64_json": "iVBORw0KGgo=", "revised_prompt": "a gate at night"}],
    "usage": {"input_tokens": 4, "output_tokens": 64, "total_tokens": 68},
}

_USAGE: Final[Schema] = or_null(object_of(prompt_tokens=integer(), completion_tokens=integer(), total_tokens=integer()))

SURFACE_SCHEMAS: Final[dict[str, Schema]] = {
    "CompletionRequest": object_of(
        ("model", "prompt"),
        model=MODEL,
        prompt={
            "anyOf": [text(), list_of(text(), minItems=1, maxItems=MAX_PROMPTS)],
            "description": "A text, or a list of texts, each of which is completed. Token ids are refused.",
        },
        suffix=or_null(text("The text after the completion. Only for providers with text completions.")),
        stream=STREAM,
        echo=or_null({"type": "boolean", "description": "Begin the answer with the prompt."}),
        logprobs=or_null(integer("Only for providers with text completions.")),
        max_tokens=or_null(integer(minimum=0)),
        n=or_null(integer("More than 1 only for providers with text completions.", minimum=1)),
        best_of=or_null(integer("More than 1 only for providers with text completions.", minimum=1)),
        stop={"anyOf": [text(), list_of(text()), {"type": "null"}]},
        temperature=or_null(dict(NUMBER)),
        top_p=or_null(dict(NUMBER)),
        fallbacks=FALLBACKS,
    ),
    "TextCompletion": object_of(
        ("choices",),
        id=text(),
        object=text(examples=["text_completion"]),
        created=integer(),
        model=text(),
        choices=list_of(
            object_of(
                ("text",),
                index=integer(),
                text=text(),
                logprobs=or_null({"type": "object", "additionalProperties": True}),
                finish_reason=or_null(text(examples=["stop"])),
            )
        ),
        usage=_USAGE,
    ),
    "ModerationRequest": object_of(
        ("input",),
        model=MODEL | {"default": DEFAULT_MODEL},
        input={
            "anyOf": [
                text(),
                list_of(
                    {"anyOf": [text(), {"type": "object", "additionalProperties": True}]},
                    minItems=1,
                    maxItems=MAX_INPUTS,
                ),
            ],
            "description": "A text, a list of texts, or a list of parts of type `text` and `image_url`.",
        },
        fallbacks=FALLBACKS,
    ),
    "Moderation": object_of(
        ("results",),
        id=text(),
        model=text(),
        results=list_of({"type": "object", "additionalProperties": True}),
    ),
    "RerankRequest": object_of(
        ("model", "query", "documents"),
        model=MODEL,
        query=text(),
        documents=list_of({"anyOf": [text(), object_of(("text",), text=text())]}, minItems=1, maxItems=MAX_DOCUMENTS),
        top_n=or_null(integer("The number of results. All documents if it is absent.", minimum=1)),
        return_documents=or_null({"type": "boolean", "description": "Return the documents with the results."}),
        fallbacks=FALLBACKS,
    ),
    "Reranking": object_of(
        ("results",),
        id=text(),
        results=list_of(
            object_of(
                index=integer("The position of the document in the request."),
                relevance_score=dict(NUMBER),
                document=or_null({"type": "object", "additionalProperties": True}),
            )
        ),
        meta=or_null({"type": "object", "additionalProperties": True}),
    ),
    "ImageRequest": object_of(
        ("model", "prompt"),
        model=MODEL,
        prompt=text(),
        n=or_null(integer("The number of images.", minimum=1, maximum=MAX_IMAGES)),
        size=or_null(text()),
        response_format=or_null(text(examples=["b64_json"])),
        fallbacks=FALLBACKS,
    ),
    "Images": object_of(
        ("data",),
        created=integer(),
        data=list_of(object_of(b64_json=or_null(text()), url=or_null(text()), revised_prompt=or_null(text()))),
        usage=or_null(object_of(input_tokens=integer(), output_tokens=integer(), total_tokens=integer())),
    ),
    "ImageEditRequest": object_of(
        ("model", "prompt", "image"),
        model=MODEL,
        prompt=text(),
        image=text("A PNG, JPEG, WebP or GIF file. Several files have the name `image[]`.", format="binary"),
        mask=text("A file of the same kinds.", format="binary"),
        n=integer("The number of images.", minimum=1, maximum=MAX_IMAGES),
        size=text(),
        response_format=text(examples=["b64_json"]),
    ),
    "ImageVariationRequest": object_of(
        ("model", "image"),
        model=MODEL,
        image=text("A PNG, JPEG, WebP or GIF file.", format="binary"),
        n=integer("The number of images.", minimum=1, maximum=MAX_IMAGES),
        size=text(),
        response_format=text(examples=["b64_json"]),
    ),
    "RecordingRequest": object_of(
        ("model", "file"),
        model=MODEL,
        file=text("An MP3, MP4, M4A, WAV, WebM, OGG or FLAC file.", format="binary"),
        prompt=text("A text that guides the model. It is inspected."),
        language=text("Of transcriptions: the language of the recording."),
        response_format=text(enum=["json", "text", "srt", "vtt", "verbose_json", "diarized_json"]),
        temperature=dict(NUMBER),
    ),
    "Transcript": object_of(
        ("text",),
        text=text(),
        usage=or_null({"type": "object", "additionalProperties": True}),
    ),
    "SpeechRequest": object_of(
        ("model", "input"),
        model=MODEL,
        input=text("The text.", minLength=1, maxLength=MAX_SPEECH_CHARACTERS),
        voice=text(examples=["alloy"]),
        instructions=or_null(text()),
        response_format=or_null(text(examples=["mp3"])),
        speed=or_null(dict(NUMBER)),
        fallbacks=FALLBACKS,
    ),
}


def surface_paths() -> dict[str, Any]:
    """Return the path items in OpenAPI 3.1."""
    return {path: {"post": operation} for path, operation in _operations().items()}


def _operations() -> dict[str, Operation]:
    return {
        "/v1/completions": call_operation(
            "completions",
            "Complete a text (OpenAI completions)",
            "Legacy text completions in the format of OpenAI, streamed or not. A provider without text completions"
            " receives the prompt as a chat.",
            request="CompletionRequest",
            examples={"plain": {"summary": "One prompt", "value": _COMPLETE}},
            answer="TextCompletion",
            example=_COMPLETED,
        ),
        "/v1/moderations": call_operation(
            "moderations",
            "Moderate texts (OpenAI moderations)",
            "Moderations in the format of OpenAI. The provider's answer passes unchanged.",
            request="ModerationRequest",
            examples={"plain": {"summary": "One text", "value": _MODERATE}},
            answer="Moderation",
            example=_MODERATED,
            streams=False,
        ),
        "/v1/rerank": _rerank("rerank", "Rerank documents (Cohere)"),
        "/v2/rerank": _rerank("rerank_v2", "Rerank documents (the path of Cohere's version 2)"),
        "/v1/images/generations": call_operation(
            "image_generations",
            "Generate images (OpenAI images)",
            "Images in the format of OpenAI. The prompt is inspected; the images are not.",
            request="ImageRequest",
            examples={"plain": {"summary": "One image", "value": _GENERATE}},
            answer="Images",
            example=_IMAGES,
            streams=False,
        ),
        "/v1/images/edits": call_operation(
            "image_edits",
            "Edit images (OpenAI images)",
            "Edits of images in the format of OpenAI. The body is a form. The prompt is inspected; the images are not.",
            request="ImageEditRequest",
            examples={"plain": {"summary": "One image", "value": {**_GENERATE, "image": "gate.png"}}},
            answer="Images",
            example=_IMAGES,
            streams=False,
            is_form=True,
        ),
        "/v1/images/variations": call_operation(
            "image_variations",
            "Vary an image (OpenAI images)",
            "Variations of an image in the format of OpenAI. The body is a form.",
            request="ImageVariationRequest",
            examples={"plain": {"summary": "One image", "value": {"model": "sandbox/image", "image": "gate.png"}}},
            answer="Images",
            example=_IMAGES,
            streams=False,
            is_form=True,
        ),
        "/v1/audio/transcriptions": _recording("transcriptions", "Transcribe a recording (OpenAI audio)"),
        "/v1/audio/translations": _recording("translations", "Translate a recording into English (OpenAI audio)"),
        "/v1/audio/speech": call_operation(
            "speech",
            "Speak a text (OpenAI audio)",
            "A recording of a text, in the format of OpenAI. The text is inspected. The recording is sent while it"
            " arrives from the provider.",
            request="SpeechRequest",
            examples={"plain": {"summary": "A text", "value": _SPEAK}},
            answer="",
            example={},
            streams=False,
            answer_types=("audio/mpeg", "audio/wav", "application/octet-stream"),
        ),
    }


def _recording(operation_id: str, summary: str) -> Operation:
    return call_operation(
        operation_id,
        summary,
        "The text of a recording, in the format of OpenAI. The body is a form. The text is inspected; the recording is"
        " not.",
        request="RecordingRequest",
        examples={"plain": {"summary": "A recording", "value": {"model": "sandbox/transcription", "file": "a.wav"}}},
        answer="Transcript",
        example={"text": "A recording of 1044 bytes."},
        streams=False,
        is_form=True,
        answer_types=("application/json", "text/plain"),
    )


def _rerank(operation_id: str, summary: str) -> Operation:
    return call_operation(
        operation_id,
        summary,
        "Documents in the order of their relevance to a query, in the format of Cohere.",
        request="RerankRequest",
        examples={"plain": {"summary": "Two documents", "value": _RERANK}},
        answer="Reranking",
        example=_RERANKED,
        streams=False,
    )
