"""Compares `/v1/responses` and `/v1/messages` with `/v1/chat/completions`, each for a provider that has the API: CPU
microseconds of one worker's thread per request inside the engine, as in `bench.path`. Rounds of the three alternate.

    .venv/bin/python -m bench.dialects
    .venv/bin/python -m bench.dialects --calls           # calls of Python functions per request; the load has no effect
    .venv/bin/python -m bench.dialects --calls --names   # and the functions that are called more often than for a chat
"""

import argparse
import gc
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, Final, NamedTuple

import msgspec
import uvloop
from bench.path import LONG, PARALLEL_CALLS, PROSE, REQUESTS, SHORT, World, answer, pieces

from gatehouse.engine.exchange import Received
from gatehouse.foundation.secrets.sealing import Sealer
from gatehouse.policy.catalog import TenantRecords

_ANSWER: Final = (PROSE * 6)[:800]


class ResponsesWorld(World):
    """The same worker, called over the Responses API."""

    def request(self) -> Received:
        return msgspec.structs.replace(super().request(), dialect="openai_responses", path="/v1/responses")


class MessagesWorld(World):
    """The same worker with a provider that has Anthropic's Messages API, called over this API."""

    def request(self) -> Received:
        return msgspec.structs.replace(super().request(), dialect="anthropic_messages", path="/v1/messages")

    def _records(self, sealer: Sealer, *, inspected: bool) -> TenantRecords:
        records = super()._records(sealer, inspected=inspected)
        (provider,) = records.providers
        return msgspec.structs.replace(records, providers=(msgspec.structs.replace(provider, kind="anthropic"),))


def messages_request(chat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request with the same texts and settings."""
    messages = [message for message in chat["messages"] if message["role"] != "system"]
    system = [message["content"] for message in chat["messages"] if message["role"] == "system"]
    request = {"model": chat["model"], "max_tokens": chat.get("max_tokens", 256), "messages": messages}
    if system:
        request["system"] = system[0]
    if "temperature" in chat:
        request["temperature"] = chat["temperature"]
    return request


def _message(text: str | None) -> dict[str, Any]:
    """Return a message as Anthropic's API has it, at its beginning if there is no text."""
    return {
        "id": "msg_01XFDUDYJgAACzvnptvVoYEL", "type": "message", "role": "assistant", "model": "gpt-4o-mini-2024-07-18",
        "content": [] if text is None else [{"type": "text", "text": text}],
        "stop_reason": None if text is None else "end_turn", "stop_sequence": None,
        "usage": {
            "input_tokens": 42, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0,
            "output_tokens": 1 if text is None else 33, "service_tier": "standard",
        },
    }  # fmt: skip


def message_pieces(text: str) -> list[bytes]:
    """Return the same answer as a stream, with as many deltas as `bench.path.pieces` has, eight events in a piece."""
    size = len(text) // 49 + 1
    return _in_pieces(
        [
            ("message_start", {"message": _message(None)}),
            ("content_block_start", {"index": 0, "content_block": {"type": "text", "text": ""}}),
            *(
                (
                    "content_block_delta",
                    {"index": 0, "delta": {"type": "text_delta", "text": text[start : start + size]}},
                )
                for start in range(0, len(text), size)
            ),
            ("content_block_stop", {"index": 0}),
            ("message_delta", {"delta": {"stop_reason": "end_turn", "stop_sequence": None},
                               "usage": {"output_tokens": 33}}),
            ("message_stop", {}),
        ]
    )  # fmt: skip


def responses_request(chat: Mapping[str, Any]) -> dict[str, Any]:
    """Return the request with the same texts and settings."""
    request = {"model": chat["model"], "input": chat["messages"]}
    if "max_tokens" in chat:
        request |= {"temperature": chat["temperature"], "max_output_tokens": chat["max_tokens"]}
    return request


def _response(text: str | None) -> dict[str, Any]:
    """Return a response as OpenAI's API has it, in progress if there is no text."""
    part = {"type": "output_text", "annotations": [], "logprobs": [], "text": text}
    message = {
        "id": "msg_68af4031fdb88193b0b43b4c2a176a1a", "type": "message", "status": "completed", "content": [part],
        "role": "assistant",
    }  # fmt: skip
    usage = {
        "input_tokens": 42, "input_tokens_details": {"cached_tokens": 0}, "output_tokens": 33,
        "output_tokens_details": {"reasoning_tokens": 0}, "total_tokens": 75,
    }  # fmt: skip
    return {
        "id": "resp_68af4030baa48193b0b43b4c2a176a1a", "object": "response", "created_at": 1760000000,
        "status": "in_progress" if text is None else "completed", "background": False, "error": None,
        "incomplete_details": None, "instructions": None, "max_output_tokens": 256, "max_tool_calls": None,
        "model": "gpt-4o-mini-2024-07-18", "output": [] if text is None else [message], "parallel_tool_calls": True,
        "previous_response_id": None, "reasoning": {"effort": None, "summary": None}, "service_tier": "default",
        "store": False, "temperature": 0.7, "text": {"format": {"type": "text"}, "verbosity": "medium"},
        "tool_choice": "auto", "tools": [], "top_logprobs": 0, "top_p": 1.0, "truncation": "disabled",
        "usage": None if text is None else usage, "user": None, "metadata": {},
    }  # fmt: skip


def response_pieces(text: str) -> list[bytes]:
    """Return the same answer as a stream, with as many deltas as `bench.path.pieces` has, eight events in a piece."""
    size = len(text) // 49 + 1
    place = {"item_id": "msg_68af4031fdb88193b0b43b4c2a176a1a", "output_index": 0, "content_index": 0}
    whole = _response(text)
    (item,) = whole["output"]
    (part,) = item["content"]
    events: list[tuple[str, dict[str, Any]]] = [
        ("response.created", {"response": _response(None)}),
        ("response.in_progress", {"response": _response(None)}),
        ("response.output_item.added", {"output_index": 0, "item": {**item, "status": "in_progress", "content": []}}),
        ("response.content_part.added", {**place, "part": {**part, "text": ""}}),
        *(
            ("response.output_text.delta", {**place, "delta": text[start : start + size], "logprobs": [],
                                            "obfuscation": "kX9aQ2"})
            for start in range(0, len(text), size)
        ),
        ("response.output_text.done", {**place, "text": text, "logprobs": []}),
        ("response.content_part.done", {**place, "part": part}),
        ("response.output_item.done", {"output_index": 0, "item": item}),
        ("response.completed", {"response": whole}),
    ]  # fmt: skip
    return _in_pieces([(kind, {"sequence_number": number, **more}) for number, (kind, more) in enumerate(events)])


def _in_pieces(events: Sequence[tuple[str, dict[str, Any]]]) -> list[bytes]:
    """Return server-sent events with eight in each piece."""
    encoded = [
        f"event: {kind}\ndata: ".encode() + msgspec.json.encode({"type": kind, **more}) + b"\n\n"
        for kind, more in events
    ]
    return [b"".join(encoded[start : start + 8]) for start in range(0, len(encoded), 8)]


class Case(NamedTuple):
    """A kind of request."""

    inspected: bool
    streamed: bool

    def __str__(self) -> str:
        return f"{'built-in patterns' if self.inspected else 'no DLP':18}{'stream' if self.streamed else 'plain':7}"


CASES: Final = tuple(Case(inspected, streamed) for streamed in (False, True) for inspected in (False, True))


async def worlds(home: Path, case: Case) -> dict[str, World]:
    """Return a worker for each API, which has answered some requests."""
    chat = LONG if case.inspected else SHORT

    def world(kind: type[World], request: Mapping[str, Any], body: bytes, stream: Sequence[bytes]) -> World:
        folder = home / f"{kind.__name__}-{case.inspected}-{case.streamed}"
        folder.mkdir()
        return kind(folder, request, body, inspected=case.inspected, streamed=stream if case.streamed else ())

    started = {
        "chat": world(World, chat, answer(_ANSWER), pieces(_ANSWER)),
        "responses": world(
            ResponsesWorld, responses_request(chat), msgspec.json.encode(_response(_ANSWER)), response_pieces(_ANSWER)
        ),
        "messages": world(
            MessagesWorld, messages_request(chat), msgspec.json.encode(_message(_ANSWER)), message_pieces(_ANSWER)
        ),
    }
    for one in started.values():
        await one.spender.start(one.journal.writer_id)
        # The first request compiles the patterns, and gets a lease on the budget.
        await one.serve(1, at_once=1)
        await one.serve(PARALLEL_CALLS * 4)
    return started


async def compare(home: Path, case: Case, *, rounds: int, requests: int) -> None:
    """Print the lowest cost of each API, and its ratio to that of a chat."""
    measured = await worlds(home, case)
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    costs: dict[str, list[float]] = {name: [] for name in measured}
    for _ in range(rounds):
        for name, one in measured.items():
            costs[name].append(await one.serve(max(requests // 5, PARALLEL_CALLS) if case.streamed else requests))
    for one in measured.values():
        await one.close()
    _print(case, {name: min(values) for name, values in costs.items()}, "us")


async def count(home: Path, case: Case, *, names: bool) -> None:
    """Print the calls of Python functions in a request of each API."""
    calls: dict[str, Counter[str]] = {}
    for name, one in (await worlds(home, case)).items():
        calls[name] = await calls_of(one)
        await one.close()
    _print(case, {name: float(counted.total()) for name, counted in calls.items()}, "calls")
    for name in ("responses", "messages") if names else ():
        more = {place: number - calls["chat"][place] for place, number in calls[name].items()}
        for place, number in sorted(more.items(), key=lambda item: -item[1])[:40]:
            if number > 0:
                print(f"    {name:10} {number:+6.1f}  {place}")


async def calls_of(world: World, requests: int = 20) -> Counter[str]:
    """Return how often a request calls each Python function. One request at a time is served."""
    counted: Counter[str] = Counter()

    def on_event(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            code = frame.f_code
            counted[f"{code.co_filename.rpartition('gatehouse/')[2]}:{code.co_firstlineno} {code.co_qualname}"] += 1

    sys.setprofile(on_event)
    try:
        await world.serve(requests, at_once=1)
    finally:
        sys.setprofile(None)
    return Counter({place: number / requests for place, number in counted.items()})  # type: ignore[misc]


def _print(case: Case, costs: Mapping[str, float], unit: str) -> None:
    shown = "   ".join(
        f"{name} {cost:7.1f} {unit}" + ("" if name == "chat" else f" (ratio {cost / costs['chat']:.2f})")
        for name, cost in costs.items()
    )
    print(f"{case} {shown}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--requests", type=int, default=REQUESTS, help="of one round; a fifth of them for streams")
    parser.add_argument("--calls", action="store_true", help="count calls of Python functions instead of time")
    parser.add_argument("--names", action="store_true", help="with --calls: the functions with the largest difference")
    arguments = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="bench-dialects-"))

    async def all_of_them() -> None:
        for case in CASES:
            if arguments.calls:
                await count(home, case, names=arguments.names)
            else:
                await compare(home, case, rounds=arguments.rounds, requests=arguments.requests)

    try:
        uvloop.run(all_of_them())
    finally:
        shutil.rmtree(home, ignore_errors=True)


if __name__ == "__main__":
    main()
