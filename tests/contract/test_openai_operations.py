"""The stock OpenAI client's calls other than chats and embeddings, with the built-in sandbox provider."""

import base64
from collections.abc import AsyncIterator

import openai
import pytest
from tests.support.platform import RunningPlatform, Tenant

CARD = "4242 4242 4242 4242"
MODELS = ["echo", "moderation", "rerank", "image", "transcription", "speech", "cut"]


@pytest.fixture(scope="module")
async def url(platform: RunningPlatform) -> AsyncIterator[str]:
    async with platform.listening() as url:
        yield url


@pytest.fixture(scope="module")
async def caller(platform: RunningPlatform) -> Tenant:
    tenant = await platform.new_tenant()
    await platform.add_provider(tenant.id, "sandbox", "sandbox", *MODELS, max_retries=0)
    return tenant


@pytest.fixture(scope="module")
async def key(platform: RunningPlatform, caller: Tenant) -> str:
    return await platform.new_key(caller.user)


@pytest.fixture
def client(url: str, key: str) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=f"{url}/v1", api_key=key, max_retries=0)


async def test_text_completions(client: openai.AsyncOpenAI) -> None:
    answer = await client.completions.create(model="sandbox/echo", prompt=["Hello", f"card {CARD}"], n=2)
    assert [choice.text for choice in answer.choices] == ["Hello", "Hello", *["card [CREDIT_CARD_1]"] * 2]
    assert answer.usage is not None
    assert answer.usage.completion_tokens > 0


async def test_streamed_text_completions(client: openai.AsyncOpenAI) -> None:
    stream = await client.completions.create(model="sandbox/echo", prompt="Hello there", stream=True, echo=True)
    assert "".join([chunk.choices[0].text async for chunk in stream if chunk.choices]) == "Hello thereHello there"


async def test_a_prompt_of_tokens_is_refused(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.BadRequestError, match="token ids cannot be inspected"):
        await client.completions.create(model="sandbox/echo", prompt=[1, 2, 3])


async def test_moderations(client: openai.AsyncOpenAI) -> None:
    answer = await client.moderations.create(model="sandbox/moderation", input=["I hate gates", "Hello"])
    assert [result.flagged for result in answer.results] == [True, False]
    assert answer.results[0].categories.hate
    parts = await client.moderations.create(model="sandbox/moderation", input=[{"type": "text", "text": "violence"}])
    assert [result.flagged for result in parts.results] == [True]


@pytest.mark.parametrize("path", ["/v1/rerank", "/v2/rerank", "/rerank"])
async def test_reranking(platform: RunningPlatform, key: str, path: str) -> None:
    documents = ["a closed door", {"text": f"the open gate of {CARD}"}]
    body = {"model": "sandbox/rerank", "query": "open gate", "documents": documents, "return_documents": True}
    answer = await platform.client(key).post(path, json=body)
    assert answer.status_code == 200, answer.text
    first, second = answer.json()["results"]
    assert (first["index"], second["index"]) == (1, 0)
    assert first["relevance_score"] > second["relevance_score"]
    assert first["document"] == {"text": "the open gate of [CREDIT_CARD_1]"}


async def test_image_generation(client: openai.AsyncOpenAI) -> None:
    answer = await client.images.generate(model="sandbox/image", prompt=f"a card {CARD}", n=2)
    assert answer.data is not None
    assert len(answer.data) == 2
    assert base64.b64decode(answer.data[0].b64_json or "").startswith(b"\x89PNG")
    assert answer.data[0].revised_prompt == "a card [CREDIT_CARD_1]"
    assert answer.usage is not None
    assert answer.usage.output_tokens > 0


async def test_edits_and_variations_of_images(client: openai.AsyncOpenAI) -> None:
    made = await client.images.generate(model="sandbox/image", prompt="a gate")
    assert made.data is not None
    picture = ("gate.png", base64.b64decode(made.data[0].b64_json or ""), "image/png")
    edited = await client.images.edit(
        model="sandbox/image", image=[picture, picture], prompt=f"a card {CARD}", n=2, size="1024x1024"
    )
    assert edited.data is not None
    assert [image.revised_prompt for image in edited.data] == ["a card [CREDIT_CARD_1]"] * 2
    varied = await client.images.create_variation(model="sandbox/image", image=picture)
    assert varied.data is not None
    assert len(varied.data) == 1


async def recording(client: openai.AsyncOpenAI) -> bytes:
    answer = await client.audio.speech.create(
        model="sandbox/speech", voice="alloy", input="The gate is open.", response_format="wav"
    )
    return await answer.aread()


async def test_speech(client: openai.AsyncOpenAI) -> None:
    spoken = await recording(client)
    assert spoken.startswith(b"RIFF")
    assert len(spoken) == 44 + 2 * len("The gate is open.")
    async with client.audio.speech.with_streaming_response.create(
        model="sandbox/speech", voice="alloy", input="a" * 20_000
    ) as answer:
        assert sum([len(piece) async for piece in answer.iter_bytes()]) == 44 + 40_000


async def test_transcriptions_and_translations(client: openai.AsyncOpenAI) -> None:
    file = ("a.wav", await recording(client), "audio/wav")
    answer = await client.audio.transcriptions.create(model="sandbox/transcription", file=file)
    assert answer.text.startswith("A recording of ")
    verbose = await client.audio.transcriptions.create(
        model="sandbox/transcription", file=file, response_format="verbose_json", timestamp_granularities=["segment"]
    )
    assert verbose.segments is not None
    plain = await client.audio.transcriptions.create(
        model="sandbox/transcription", file=file, response_format="text", prompt=f"card {CARD}"
    )
    assert plain == "card [CREDIT_CARD_1]\n"
    translated = await client.audio.translations.create(model="sandbox/transcription", file=file)
    assert translated.text.startswith("A recording of ")


async def test_a_broken_recording_is_an_error_for_the_client(client: openai.AsyncOpenAI) -> None:
    with pytest.raises(openai.APIConnectionError):
        answer = await client.audio.speech.create(model="sandbox/cut", voice="alloy", input="a" * 20_000)
        await answer.aread()
