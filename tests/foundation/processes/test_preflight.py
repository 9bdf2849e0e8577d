"""Settings of earlier versions."""

import pytest

from gatehouse.foundation.processes.preflight import checked_settings, misspelt
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.portal.settings import PortalSettings


def test_a_former_name_of_a_setting_is_reported_with_its_new_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLP_UNINSPECTABLE", "pass")
    for kind in (Settings, OutpostSettings):
        assert list(misspelt(kind)) == [("DLP_UNINSPECTABLE", "DLP_UNREADABLE")]
    assert list(misspelt(PortalSettings)) == []
    assert checked_settings(Settings).dlp_unreadable == "log_only"


def test_the_former_name_of_a_blocking_setting_prevents_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLP_UNINSPECTABLE", "block")
    with pytest.raises(BadSettings, match="DLP_UNINSPECTABLE: renamed DLP_UNREADABLE"):
        checked_settings(Settings)
    monkeypatch.setenv("DLP_UNREADABLE", "block")
    assert checked_settings(Settings).dlp_unreadable == "block"
