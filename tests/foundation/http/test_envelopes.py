import json
from decimal import Decimal
from uuid import UUID

import pytest

from gatehouse.foundation import errors
from gatehouse.foundation.errors import FieldFault
from gatehouse.foundation.http import envelopes
from gatehouse.foundation.http.envelopes import CODED, DETAIL, GATEWAY, PORTAL, ErrorFormats, rendered


class GroupNameTaken(errors.Conflict):
    code = "group_name_taken"
    message = "A group of this name exists."


class PolicyConflict(errors.Conflict):
    code = "policy_conflict"
    message = "The group has a policy."
    error_format = "error_message"


class MaintenanceMode(errors.Unavailable):
    code = "maintenance_mode"
    message = "Back at noon."


LIMITED = errors.TooManyRequests(tier="standard", retry_after=7)
INVALID = errors.Unprocessable(faults=[FieldFault("cap.limit_usd", "must be positive"), FieldFault("name", "too long")])
LOCATED = [
    {"type": "value_error", "loc": ["body", "cap", "limit_usd"], "msg": "must be positive"},
    {"type": "value_error", "loc": ["body", "name"], "msg": "too long"},
]
FIELDS = [{"field": "cap.limit_usd", "message": "must be positive"}, {"field": "name", "message": "too long"}]


@pytest.mark.parametrize(
    ("error_format", "error", "body"),
    [
        (
            envelopes.gateway,
            errors.Forbidden("No.", rule_id="r1"),
            {"error": {"message": "No.", "type": "authentication_error", "code": "forbidden", "rule_id": "r1"}},
        ),
        (
            envelopes.gateway,
            LIMITED,
            {
                "error": {
                    "message": "Too many requests.",
                    "type": "rate_limit_error",
                    "code": "quota_exceeded",
                    "tier": "standard",
                    "retry_after": 7,
                }
            },
        ),
        (
            envelopes.anthropic,
            errors.NotFound("x"),
            {"type": "error", "error": {"message": "x", "type": "invalid_request_error", "code": "not_found"}},
        ),
        (envelopes.oauth, LIMITED, {"error": "rate_limit_exceeded", "error_description": "Too many requests."}),
        (
            envelopes.oauth,
            errors.BadRequest("No grant."),
            {"error": "invalid_request", "error_description": "No grant."},
        ),
        (envelopes.oauth, errors.Internal(), {"error": "server_error", "error_description": "Unexpected error."}),
        (
            envelopes.oauth,
            INVALID,
            {"error": "invalid_request", "error_description": "cap.limit_usd: must be positive; name: too long"},
        ),
        (envelopes.detail, errors.NotFound("Group not found"), {"detail": "Group not found"}),
        (envelopes.detail, INVALID, {"detail": LOCATED}),
        (envelopes.detail, LIMITED, {"error": "rate_limit_exceeded", "tier": "standard", "retry_after": 7}),
        (
            envelopes.coded,
            GroupNameTaken(),
            {"error": "group_name_taken", "message": "A group of this name exists."},
        ),
        (
            envelopes.coded,
            INVALID,
            {"error": "validation_error", "message": "A field is not valid.", "details": FIELDS},
        ),
        (envelopes.coded, LIMITED, {"error": "rate_limit_exceeded", "tier": "standard", "retry_after": 7}),
        (envelopes.portal, GroupNameTaken(), {"error": "conflict", "detail": "A group of this name exists."}),
        (
            envelopes.portal,
            INVALID,
            {"error": "validation_error", "detail": "cap.limit_usd: must be positive; name: too long"},
        ),
        (
            envelopes.portal,
            errors.TooManyRequests("Slow.", limit=60, reset_at=9),
            {"error": "rate_limit_exceeded", "detail": "Slow.", "limit": 60, "reset_at": 9, "message": "Slow."},
        ),
        (
            envelopes.scim,
            errors.Conflict("Taken.", scimType="uniqueness"),
            {
                "schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"],
                "status": "409",
                "detail": "Taken.",
                "scimType": "uniqueness",
            },
        ),
        (
            envelopes.scim,
            errors.Unprocessable("Bad."),
            {
                "schemas": ["urn:ietf:params:scim:api:messages:2.0:Error"],
                "status": "400",
                "detail": "Bad.",
                "scimType": "invalidValue",
            },
        ),
    ],
)
def test_each_format_has_its_own_body(error_format, error, body):
    assert error_format(error) == body


@pytest.mark.parametrize(
    ("path", "error_format"),
    [
        ("/v1/chat/completions", envelopes.GATEWAY),
        ("/v1/chat/completions/", envelopes.GATEWAY),
        ("/api/chat/completions", envelopes.GATEWAY),
        ("/v1/responses", envelopes.GATEWAY),
        ("/v1/embeddings", envelopes.GATEWAY),
        ("/v1/models", envelopes.GATEWAY),
        ("/v1/models/openai/gpt-5", envelopes.GATEWAY),
        ("/v1/scan", envelopes.GATEWAY),
        ("/v1/messages", envelopes.ANTHROPIC),
        ("/v1/messages/count_tokens", envelopes.ANTHROPIC),
        ("/oauth/token", envelopes.OAUTH),
        ("/api/oauth/anything", envelopes.OAUTH),
        ("/api/scim/v2/Users/1", envelopes.SCIM),
        ("/v1/modelsome", envelopes.DETAIL),
        ("/v1/scanner", envelopes.DETAIL),
        ("/api/admin/groups", envelopes.DETAIL),
        ("/v1/audit/events", envelopes.DETAIL),
        ("/", envelopes.DETAIL),
        ("", envelopes.DETAIL),
        ("no-slash", envelopes.DETAIL),
        ("/" * 10_000, envelopes.DETAIL),
        ("/oauth" + "/x" * 10_000, envelopes.OAUTH),
    ],
)
def test_a_path_has_the_format_of_its_prefix(path, error_format):
    assert ErrorFormats().for_path(path) is error_format


def test_the_longest_family_prefix_wins():
    registry = CODED.validating({"a": 422, "b": 400, "c": 422})
    formats = ErrorFormats({"/api/admin/models": registry, "/api/admin/models/catalog": DETAIL})
    assert formats.for_path("/api/admin/models/1") is registry
    assert formats.for_path("/api/admin/models/catalog/1/x") is DETAIL
    assert formats.for_path("/api/admin/models-export") is DETAIL


def test_failed_validation_has_the_status_of_family_and_variant():
    registry = CODED.validating({"a": 422, "b": 400, "c": 422})
    assert rendered(INVALID, registry, "a").status == 422
    assert rendered(INVALID, registry, "b").status == 400
    assert rendered(INVALID, GATEWAY).status == 400


def test_an_unprocessable_error_with_its_own_code_keeps_its_status():
    class InvalidTransition(errors.Unprocessable):
        code = "invalid_status_transition"

    assert rendered(InvalidTransition(), CODED.validating(400)).status == 422


def test_an_error_class_may_have_its_own_form():
    body = json.loads(rendered(PolicyConflict(conflicting_policy_id="p1"), DETAIL).body)
    assert body == {
        "error": "policy_conflict",
        "message": "The group has a policy.",
        "conflicting_policy_id": "p1",
    }


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages", "/oauth/token", "/api/x", "/api/scim/v2/Me"])
def test_maintenance_looks_the_same_everywhere(path):
    answer = rendered(MaintenanceMode(headers={"Retry-After": "30"}), ErrorFormats().for_path(path))
    assert json.loads(answer.body) == {"error": "maintenance_mode", "message": "Back at noon."}
    assert (answer.status, answer.headers["Retry-After"]) == (503, "30")


def test_a_rate_limited_response_contains_the_time_of_the_next_attempt():
    assert rendered(LIMITED, DETAIL).headers["Retry-After"] == "7"


def test_a_401_names_a_scheme_unless_the_error_does():
    assert rendered(errors.Unauthenticated(), PORTAL).headers["WWW-Authenticate"] == "Bearer"
    basic = errors.Unauthenticated(headers={"WWW-Authenticate": "Basic"})
    assert rendered(basic, PORTAL).headers["WWW-Authenticate"] == "Basic"


def test_extra_fields_may_be_ids_and_money():
    error = errors.PaymentRequired(estimated_cost_usd=Decimal("0.10"), policy_id=UUID(int=1))
    body = json.loads(rendered(error, GATEWAY).body)["error"]
    assert body["estimated_cost_usd"] == 0.1
    assert body["policy_id"] == "00000000-0000-0000-0000-000000000001"


def test_the_number_of_faults_in_a_response_is_limited():
    error = errors.Unprocessable(faults=[FieldFault("x", "bad")] * 100_000)
    assert len(json.loads(rendered(error, DETAIL).body)["detail"]) == envelopes.MAX_FAULTS
