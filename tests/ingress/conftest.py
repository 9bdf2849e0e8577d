"""Tests of the HTTP protocol run with both HTTP servers."""

import pytest
from tests.support.platform import RunningPlatform


@pytest.fixture(autouse=True, params=["uvicorn", "lean"])
def ingress(request: pytest.FixtureRequest, platform: RunningPlatform, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(platform, "ingress", request.param)
    return str(request.param)
