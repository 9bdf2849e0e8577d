"""Generates requests of agents, with a tool call and its result, in the formats of OpenAI's chat completions,
Anthropic's messages and OpenAI's responses."""

import json
from collections.abc import Callable, Iterator
from typing import Any, Final, NamedTuple, TypeAlias

from bench.dlp.ordinary.fields import FIELD, Fields

#: A template. Its strings are filled with values. A string that is only `‹…›#` becomes a number.
Template: TypeAlias = Any


class Tool(NamedTuple):
    name: str
    arguments: Template
    result: Template


DEVELOPMENT: Final = (
    Tool("get_weather", {"city": "‹city›", "latitude": "‹latitude›#", "longitude": "‹longitude›#", "units": "metric"},
         {"location": {"lat": "‹latitude›#", "lon": "‹longitude›#"}, "dt": "‹epoch›#", "temp": "‹celsius›#", "station_id": "‹number7›"}),
    Tool("search_orders", {"query": "‹product›", "after": "‹iso›", "limit": "‹number_2_to_60›#"},
         {"orders": [{"id": "‹number10›#", "number": "‹order›", "total": "‹price›#", "created": "‹epoch_ms›#", "etag": "‹md5›"},
                     {"id": "‹number9›#", "number": "‹order›", "total": "‹price›#", "created": "‹epoch_ms›#", "etag": "‹md5›"}],
          "next_page_token": "‹id24›‹id20›"}),
    Tool("read_file", {"path": "‹code_path›", "offset": "‹line›#", "limit": "‹count›#"},
         "‹line›\timport ‹service›\n‹line›\tLIMIT = ‹number9›  # ‹ticket›\n‹line›\tKEY = os.environ[\"‹service›_KEY\"]\n"),
    Tool("run_shell", {"command": "date +%s", "timeout_ms": "‹number5›#"}, "‹epoch›\n"),
    Tool("run_shell", {"command": "wc -c ‹file›"}, "‹bytes› ‹file›\n"),
    Tool("run_shell", {"command": "git rev-parse HEAD && git log -1 --format=%ct"}, "‹sha1›\n‹epoch›\n"),
    Tool("run_shell", {"command": "ls -l"}, "total ‹number4›\n-rw-r--r-- 1 app app ‹bytes› Mar ‹number_2_to_60› ‹clock› ‹file›\n-rw-r--r-- 1 app app ‹bytes› Mar ‹number_2_to_60› ‹clock› ‹file›\n"),
    Tool("query_database", {"sql": "select id, amount from ‹service› where at > '‹iso›' limit ‹number_2_to_60›"},
         {"columns": ["id", "amount", "at"], "rows": [["‹number9›#", "‹price›#", "‹iso›"], ["‹number10›#", "‹price›#", "‹iso›"], ["‹number11›#", "‹price›#", "‹iso›"]], "elapsed_ms": "‹float6›#"}),
    Tool("list_files", {"folder_id": "‹id24›", "page_size": "‹number_2_to_60›#"},
         {"files": [{"id": "‹id24›‹id5›", "name": "‹file›", "size": "‹bytes›", "md5Checksum": "‹md5›", "version": "‹number7›"}], "kind": "drive#fileList"}),
    Tool("get_deployment", {"deployment_id": "dpl_‹id24›", "sha": "‹sha1›"},
         {"uid": "dpl_‹id24›", "ready": "‹epoch_ms›#", "meta": {"githubCommitSha": "‹sha1›", "githubRunId": "‹number10›"}, "port": "‹port›#"}),
    Tool("list_pull_requests", {"repo": "acme/‹service›", "state": "open"},
         [{"number": "‹count›#", "id": "‹number10›#", "node_id": "PR_kwDO‹id12›", "head": {"sha": "‹sha1›"}, "created_at": "‹iso›", "additions": "‹count›#"}]),
    Tool("get_price", {"symbol": "‹upper3›", "currency": "EUR"}, {"price": "‹float6›#", "volume": "‹number10›#", "market_cap": "‹number12›#", "ts": "‹epoch_ns›"}),
    Tool("get_metrics", {"query": "rate(http_requests_total[5m])", "start": "‹epoch›#", "end": "‹epoch›#"},
         {"data": [["‹epoch_float›#", "‹number9›"], ["‹epoch_float›#", "‹number10›"]], "traceId": "‹hex16›‹hex16›", "spanId": "‹hex16›"}),
    Tool("create_event", {"title": "‹service› review", "start": "‹iso›", "calendar_id": "‹id20›", "room": "B‹number_2_to_60›"},
         {"id": "‹id24›", "iCalUID": "‹uuid›", "sequence": "‹digit›#", "hangoutLink": "https://meet.example.org/‹id12›"}),
    Tool("track_parcel", {"tracking_number": "‹tracking›"}, {"tracking_number": "‹tracking›", "events": [{"at": "‹iso›", "depot": "‹number6›", "city": "‹city›"}], "weight_g": "‹number4›#"}),
    Tool("search_contacts", {"name": "‹name›"}, {"results": [{"name": "‹name›", "phone": "‹phone›", "id": "‹number8›"}]}),
    Tool("http_get", {"url": "https://api.example.org/v1/‹service›/‹number9›?ts=‹epoch_ms›"},
         "HTTP/1.1 200 OK\nDate: ‹mail_date›\nContent-Length: ‹bytes›\nETag: \"‹md5›\"\nX-Request-Id: ‹uuid›\nX-RateLimit-Reset: ‹epoch›\n\n{\"ok\":true,\"id\":‹number10›}"),
    Tool("read_page", {"url": "https://example.org/‹service›"}, "‹product› costs ‹amount› (article ‹sku›, EAN ‹number13›). ‹count› reviews, updated ‹date›."),
    Tool("geocode", {"q": "‹city›"}, {"features": [{"geometry": {"type": "Point", "coordinates": ["‹longitude›#", "‹latitude›#"]}, "osm_id": "‹number10›#"}]}),
)  # fmt: skip

HELD_OUT: Final = (
    Tool("get_issue", {"key": "‹ticket›"}, {"id": "‹number8›", "key": "‹ticket›", "fields": {"customfield_10020": "‹number9›", "updated": "‹iso›", "timespent": "‹number7›#"}}),
    Tool("stat", {"path": "‹file›"}, {"ino": "‹number8›#", "size": "‹bytes›#", "mtimeMs": "‹epoch_ms›#", "dev": "‹number10›#", "sha256": "‹sha256›"}),
    Tool("browser_snapshot", {"ref": "e‹count›", "element": "Cart (‹digit›)"}, "- heading \"‹product›\" [ref=e‹number4›]\n- text: article ‹number8›, ‹price_comma› €\n- link \"Order ‹number10›\" [ref=e‹number4›]"),
    Tool("list_events", {"since": "‹epoch›#", "cursor": "‹base64_44›"}, {"events": [{"id": "evt_‹id24›", "ts": "‹epoch_float›", "seq": "‹snowflake›"}], "cursor": "‹base64_44›"}),
    Tool("get_flight", {"flight": "LH‹number4›", "date": "‹date›"}, {"flight": "LH‹number4›", "gate": "B‹number_2_to_60›", "eticket": "‹number13›", "icao24": "‹hex6›", "altitude": "‹number5›#"}),
    Tool("run_tests", {"args": ["-q", "tests/‹service›"]}, "‹count› passed in ‹float6›s\nseed=‹number10› cachedir: .cache-‹hex8›\nslowest ‹millis› ms tests/test_‹service›.py:‹line›"),
    Tool("send_message", {"channel": "C0‹alphanumeric10›", "text": "Build ‹number9› of ‹service› is done, ‹percent›%", "thread_ts": "‹epoch_float›"}, {"ok": True, "ts": "‹epoch_float›", "channel": "C0‹alphanumeric10›"}),
    Tool("count_rows", {"table": "‹service›"}, "‹number10›"),
    Tool("get_sensor", {"device": "sensor-‹number6›"}, {"readings": ["‹float6›#", "‹float6›#", "‹ratio›#"], "uptime": "‹number8›#", "fw": "‹version›", "mac_suffix": "‹hex6›"}),
    Tool("list_products", {"category": "‹product›"}, [{"gtin": "‹number13›", "sku": "‹sku›", "price": {"amount": "‹number5›#", "currency": "EUR"}, "stock": "‹count›#", "id": "gid://shop/Product/‹number13›"}]),
)  # fmt: skip

_SCHEMA: Final = {
    "query": {"type": "string", "description": "What to look for, at most 200 characters"},
    "limit": {"type": "integer", "minimum": 1, "maximum": 2_147_483_647, "default": 50},
    "since": {"type": "string", "description": "ISO 8601, for example 2024-03-15T09:30:00Z", "format": "date-time"},
    "page_token": {"type": "string", "description": "Token of the next page, as the last answer gave it"},
}


def filled(template: Template, fields: Fields) -> Any:
    if isinstance(template, dict):
        return {name: filled(value, fields) for name, value in template.items()}
    if isinstance(template, list):
        return [filled(value, fields) for value in template]
    if not isinstance(template, str):
        return template
    if template.endswith("#") and FIELD.fullmatch(template[:-1]):
        return json.loads(fields.fill(template[:-1]))
    return fields.fill(template)


def bodies(tools: tuple[Tool, ...], seeds: range) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the name of the tool and a request body for each turn."""
    for seed in seeds:
        fields = Fields(seed)
        tool = fields.random.choice(tools)
        dialect = _DIALECTS[seed % len(_DIALECTS)]
        yield (
            f"{tool.name} ({dialect.__name__.lstrip('_')})",
            dialect(fields, tool, filled(tool.arguments, fields), filled(tool.result, fields)),
        )


def _text(fields: Fields, result: Any) -> str:
    return result if isinstance(result, str) else json.dumps(result, indent=fields.random.choice((None, 2)))


def _openai(fields: Fields, tool: Tool, arguments: Any, result: Any) -> dict[str, Any]:
    call = "call_" + fields.id24()
    return {
        "model": "m",
        "tools": [{"type": "function", "function": {"name": tool.name, "parameters": {"type": "object", "properties": _SCHEMA}}}],
        "messages": [
            {"role": "assistant", "tool_calls": [{"id": call, "type": "function", "function": {"name": tool.name, "arguments": json.dumps(arguments)}}]},
            {"role": "tool", "tool_call_id": call, "content": _text(fields, result)},
        ],
    }  # fmt: skip


def _anthropic(fields: Fields, tool: Tool, arguments: Any, result: Any) -> dict[str, Any]:
    call = "toolu_01" + fields.characters(22)
    return {
        "model": "m",
        "tools": [{"name": tool.name, "input_schema": {"type": "object", "properties": _SCHEMA}}],
        "messages": [
            {"role": "assistant", "content": [{"type": "tool_use", "id": call, "name": tool.name, "input": arguments}]},
            {"role": "user", "content": [{"type": "tool_result", "tool_use_id": call, "content": _text(fields, result)}]},
        ],
    }  # fmt: skip


def _responses(fields: Fields, tool: Tool, arguments: Any, result: Any) -> dict[str, Any]:
    call = "call_" + fields.id24()
    return {
        "model": "m",
        "tools": [{"type": "function", "name": tool.name, "parameters": {"type": "object", "properties": _SCHEMA}}],
        "input": [
            {"type": "function_call", "id": "fc_" + fields.hexadecimal(48), "call_id": call, "name": tool.name, "arguments": json.dumps(arguments)},
            {"type": "function_call_output", "call_id": call, "output": _text(fields, result)},
        ],
    }  # fmt: skip


_DIALECTS: Final[tuple[Callable[[Fields, Tool, Any, Any], dict[str, Any]], ...]] = (_openai, _anthropic, _responses)
