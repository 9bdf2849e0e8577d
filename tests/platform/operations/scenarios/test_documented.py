"""The OpenAPI document of system, probes, configuration, flags and tenants."""

import pytest

from gatehouse.platform.worker.app import administration

OPERATIONS = [
    ("GET", "/health", 200), ("GET", "/api/health/live", 200), ("GET", "/api/health/ready", 200),
    ("GET", "/api/health/startup", 200), ("GET", "/metrics", 200),
    ("GET", "/api/admin/system/health", 200), ("GET", "/api/admin/system/health/components/{component}", 200),
    ("GET", "/api/admin/system/version", 200), ("GET", "/api/admin/system/metrics-summary", 200),
    ("POST", "/api/admin/system/maintenance", 200),
    ("GET", "/api/admin/config", 200), ("PUT", "/api/admin/config/{key}", 200),
    ("GET", "/api/v1/admin/org/feature-flags", 200), ("PATCH", "/api/v1/admin/org/feature-flags/{flag_name}", 200),
    ("POST", "/v1/platform/tenants", 201), ("PATCH", "/v1/platform/tenants/{tenant_id}/entitlements", 200),
    ("DELETE", "/v1/platform/tenants/{tenant_id}", 204),
]  # fmt: skip


@pytest.fixture(scope="module")
def paths() -> dict[str, dict[str, dict[str, object]]]:
    app, _ = administration()
    paths: dict[str, dict[str, dict[str, object]]] = app.openapi()["paths"]
    return paths


@pytest.mark.parametrize(("method", "path", "status"), OPERATIONS)
def test_an_operation_is_documented(paths, method: str, path: str, status: int) -> None:
    operation = paths[path][method.lower()]
    assert operation["description"]
    assert str(status) in operation["responses"]
    if path.startswith(("/api/admin", "/api/v1", "/v1")):
        assert {"401", "403"} <= set(operation["responses"])


@pytest.mark.parametrize("path", ["/api/health/live", "/api/health/ready", "/api/health/startup"])
def test_a_probes_503_answer_has_a_schema(paths, path: str) -> None:
    assert "schema" in paths[path]["get"]["responses"]["503"]["content"]["application/json"]
