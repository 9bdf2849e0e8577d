"""The rows that the first start creates."""

import os
import pty
import subprocess
import sys
from pathlib import Path

from tests.support.platform import RunningPlatform

from gatehouse.foundation.settings import Settings
from gatehouse.platform.changes.change import DEFAULT_TENANT
from gatehouse.platform.installation.bootstrap import trial_key_file


def test_a_deleted_trial_key_is_not_created_again(platform: RunningPlatform, tmp_path: Path) -> None:
    url, settings = platform.installed.owner_url, Settings.from_environment({"GATEHOUSE_HOME": str(tmp_path)})
    path = trial_key_file(url, settings)
    assert path is not None
    made = path.read_text()
    assert (path, path.read_text()) == (trial_key_file(url, settings), made)
    assert path.stat().st_mode & 0o077 == 0
    platform.sql("DELETE FROM api_keys WHERE key_prefix = %s", [made[:8]])
    assert trial_key_file(url, settings) is None


def test_the_sandboxs_models_state_their_capabilities(platform: RunningPlatform) -> None:
    can = dict(
        platform.sql(
            "SELECT model_id, capabilities FROM model_configs WHERE provider = 'sandbox' AND tenant_id = %s",
            [DEFAULT_TENANT],
        )
    )
    assert (can["embed"]["embeddings"], can["embed"]["streaming"]) == (True, False)
    assert (can["echo"]["embeddings"], can["echo"]["streaming"]) == (False, True)


def test_a_terminal_shows_the_first_admins_password_and_link() -> None:
    program = (
        "from pathlib import Path\n"
        "from gatehouse.platform.installation.first_admin import FirstAdmin\n"
        "FirstAdmin('ada@example.test', 'the password', Path('file'), 'http://127.0.0.1/the-link').announce()\n"
    )
    reader, terminal = pty.openpty()
    try:
        subprocess.run([sys.executable, "-c", program], stdout=terminal, check=True)
        shown = os.read(reader, 10_000).decode()
    finally:
        os.close(terminal)
        os.close(reader)
    assert "First admin: ada@example.test, password the password" in shown
    assert "in a browser, once, within 24 hours: http://127.0.0.1/the-link" in shown
    piped = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert "in file until its first use" in piped
    assert "the password, and" in piped
    assert "the-link" not in piped
