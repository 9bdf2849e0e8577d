"""Settings of earlier versions."""

import pytest

from gatehouse.foundation.processes.preflight import checked_settings, misspelt
from gatehouse.foundation.settings import BadSettings, Settings
from gatehouse.outpost.settings import OutpostSettings
from gatehouse.portal.settings import PortalSettings


def test_a_renamed_setting_is_reported_by_its_name_of_now(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLP_UNINSPECTABLE", "pass")
    for kind in (Settings, OutpostSettings):
        assert list(misspelt(kind)) == [("DLP_UNINSPECTABLE", "DLP_UNREADABLE")]
    assert list(misspelt(PortalSettings)) == []
    assert checked_settings(Settings).dlp_unreadable == "log_only"


def test_who_blocked_by_the_former_name_is_not_served_without_protection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLP_UNINSPECTABLE", "block")
    with pytest.raises(BadSettings, match="DLP_UNINSPECTABLE: renamed DLP_UNREADABLE"):
        checked_settings(Settings)
    monkeypatch.setenv("DLP_UNREADABLE", "block")
    assert checked_settings(Settings).dlp_unreadable == "block"
