"""The archived columns: their form in PostgreSQL's CSV, and their Parquet types."""

from typing import Any, Final, Literal, NamedTuple, TypeAlias, get_args

from gatehouse.foundation.lazy_import import LazyModule

pa: Any = LazyModule("pyarrow")

Records: TypeAlias = Literal["audit_events", "usage_records", "dlp_events"]
RECORDS: Final[tuple[Records, ...]] = get_args(Records)

#: SQL expressions by kind of column. Columns of other kinds are selected unchanged.
_EXPRESSIONS: Final = {
    "moment": "(extract(epoch FROM {0}) * 1000000)::bigint",
    "binary": "encode({0}, 'hex')",
    # `decimal128(38, 18)` cannot represent more digits, and no real price has more.
    "money": "round({0}, 18)",
}

_COLUMNS: Final[dict[Records, dict[str, str]]] = {
    "audit_events": {
        "tenant_id": "text", "sequence": "integer", "id": "text", "timestamp": "moment", "actor_id": "text",
        "actor_type": "text", "action": "text", "resource_type": "text", "resource_id": "text", "request_id": "text",
        "ip": "text", "outcome": "text", "target_provider": "text", "target_model": "text", "reason": "text",
        "details": "text", "salt": "binary", "personal_digest": "binary", "prev_hash": "binary", "hash": "binary",
    },
    "usage_records": {
        "tenant_id": "text", "id": "text", "timestamp": "moment", "request_id": "text", "user_id": "text",
        "group_id": "text", "api_key_id": "text", "client_id": "text", "provider": "text", "model_id": "text",
        "requested_model": "text", "status": "text", "stream": "boolean", "input_tokens": "integer",
        "output_tokens": "integer", "cached_tokens": "integer", "cost_usd": "money", "latency_ms": "number",
        "time_to_first_token_ms": "number", "provider_latency_ms": "number", "fallbacks": "integer",
        "routing_policy_id": "text", "dlp_action": "text", "cache": "text", "end_user": "text", "tags": "text",
        "error_code": "text", "attempts": "text", "attempt_ms": "number",
        "model_alias": "text", "shadow": "boolean", "credential": "text",
    },
    "dlp_events": {
        "tenant_id": "text", "id": "text", "timestamp": "moment", "request_id": "text", "user_id": "text",
        "group_ids": "text", "rule_id": "text", "rule_name": "text", "detector_type": "text", "entity_type": "text",
        "direction": "text", "status": "text", "score": "number", "match_count": "integer", "model": "text",
        "action": "text", "severity": "text", "source": "text",
    },
}  # fmt: skip


class SortOrder(NamedTuple):
    """The order of rows in the archive, and the condition that selects the rows of one file."""

    columns: str
    part: str


ORDER: Final[dict[Records, SortOrder]] = {
    "audit_events": SortOrder("sequence, timestamp", "sequence BETWEEN %(first)s AND %(last)s"),
    **dict.fromkeys(
        ("usage_records", "dlp_events"),
        SortOrder("timestamp, id", "timestamp < %(before)s AND (timestamp, id) <= (%(last_at)s, %(last_id)s)"),
    ),
}


def names(records: Records) -> list[str]:
    """Return the names of the archived columns, in order."""
    return list(_COLUMNS[records])


def schema(records: Records) -> Any:
    """Return the `pyarrow.Schema` of a file with these records."""
    kinds = {
        "text": pa.string(), "integer": pa.int64(), "number": pa.float64(), "boolean": pa.bool_(),
        "money": pa.decimal128(38, 18), "moment": pa.timestamp("us", tz="UTC"), "binary": pa.string(),
    }  # fmt: skip
    return pa.schema([(name, kinds[kind]) for name, kind in _COLUMNS[records].items()])


def selection(records: Records) -> str:
    """Return the SQL select list for the CSV. After the casts of its times, the CSV matches `schema`."""
    return ", ".join(
        _EXPRESSIONS.get(kind, "{0}").format(name) + f" AS {name}" for name, kind in _COLUMNS[records].items()
    )


def csv_types(records: Records) -> dict[str, Any]:
    """Return the types with which the columns of the CSV are read. Times are integers in microseconds."""
    return {
        field.name: pa.int64() if _COLUMNS[records][field.name] == "moment" else field.type for field in schema(records)
    }
