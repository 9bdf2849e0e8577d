"""`gatehouse doctor` with a faulty installation, and the errors of other commands."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.commands import run_command
from tests.support.mail_server import mail_server
from tests.support.platform import RunningPlatform
from tests.support.pooler import pooler


def doctor(home: Path, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `doctor` or another command. Commands that serve run in a separate process."""
    command = command or ("doctor",)
    environment = {"PATH": os.environ["PATH"], "GATEHOUSE_HOME": str(home), **environment}
    run = in_a_process if command[0] == "serve" else run_command
    return run(*command, environment=environment)


def in_a_process(*command: str, environment: Mapping[str, str]) -> subprocess.CompletedProcess[str]:
    program = str(Path(sys.executable).parent / "gatehouse")
    return subprocess.run([program, *command], env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_healthy_installation_has_no_failure(platform: RunningPlatform) -> None:
    environment = {"PATH": os.environ["PATH"], "GATEHOUSE_HOME": str(platform.installed.home)}
    done = in_a_process("doctor", environment=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "FAIL" not in done.stdout
    assert "master key: opens the sealed secrets" in done.stdout


def test_a_wrong_master_key_is_reported_with_the_remedy(platform: RunningPlatform) -> None:
    done = doctor(platform.installed.home, GATEHOUSE_MASTER_KEY="A" * 43 + "=")
    assert done.returncode == 1
    assert "FAIL  master key" in done.stdout
    assert "mend: set GATEHOUSE_MASTER_KEY" in done.stdout


def test_an_invalid_setting_is_named(platform: RunningPlatform) -> None:
    done = doctor(platform.installed.home, JOURNAL_SYNC="sometimes")
    assert done.returncode == 1
    assert "JOURNAL_SYNC" in done.stdout


def test_an_unreachable_database_is_reported_in_one_line(tmp_path: Path) -> None:
    url = "postgresql://nobody:hunter2@127.0.0.1:9/none"
    done = doctor(tmp_path, DATABASE_URL=url, GATEHOUSE_MASTER_KEY="A" * 43 + "=")
    assert done.returncode == 1
    assert "DATABASE_URL" in done.stdout
    assert "hunter2" not in done.stdout + done.stderr


def test_the_mail_server_is_checked_without_sending_a_mail(platform: RunningPlatform) -> None:
    public, sender = "https://gatehouse.test", "gatehouse@gatehouse.test"
    with mail_server() as server:
        environment = {"SMTP_URL": server.url, "MAIL_FROM": sender, "PUBLIC_URL": public}
        done = doctor(platform.installed.home, **environment)
        assert (done.returncode, "mail: 127.0.0.1 answers" in done.stdout) == (0, True)
        assert server.mails.empty()
    done = doctor(platform.installed.home, **environment)
    assert (done.returncode, "warn  mail: 127.0.0.1" in done.stdout) == (0, True)


def test_an_unreachable_redis_is_a_warning(platform: RunningPlatform) -> None:
    done = doctor(platform.installed.home, REDIS_URL="redis://127.0.0.1:9")
    assert done.returncode == 0
    assert "warn  redis" in done.stdout


@pytest.mark.parametrize(
    "command", [["doctor"], ["migrate"], ["migrate", "--check"], ["serve", "platform"], ["worker"]]
)
@pytest.mark.parametrize("fault", ["no rights", "no database", "no URL"])
def test_an_unusable_database_is_reported_in_one_line_with_the_remedy(
    platform: RunningPlatform, tmp_path: Path, command: list[str], fault: str
) -> None:
    url = platform.installed.url
    if fault == "no rights":
        name = f"stranger_{uuid4().hex}"
        platform.sql(f"CREATE ROLE {name} LOGIN")
        url = url.replace("postgres:@", f"{name}@")
    elif fault == "no database":
        url = url.replace("/postgres?", "/nowhere?")
    else:
        url = "postgresql://me:hunter2@[/db"
    done = doctor(tmp_path, *command, DATABASE_URL=url, GATEHOUSE_MASTER_KEY="A" * 43 + "=")
    output = done.stdout + done.stderr
    assert done.returncode in {1, 2}
    assert "Traceback" not in output
    assert "hunter2" not in output
    mends = {"no rights": "gatehouse_app", "no database": "create the database", "no URL": "postgresql://user"}
    assert mends[fault] in output


def test_a_login_that_cannot_take_the_roles_is_reported_before_serving(
    platform: RunningPlatform, tmp_path: Path
) -> None:
    name = f"reader_{uuid4().hex}"
    platform.sql(f"CREATE ROLE {name} LOGIN")
    platform.sql(f"GRANT SELECT ON alembic_version TO {name}")
    environment = {
        "DATABASE_URL": platform.installed.url.replace("postgres:@", f"{name}@"),
        "DATABASE_OWNER_URL": platform.installed.owner_url,
        "GATEHOUSE_MASTER_KEY": "A" * 43 + "=",
    }
    for command in (["serve", "platform", "--port", "0"], ["worker"]):
        served = doctor(tmp_path, *command, **environment)
        assert served.returncode == 2
        assert "GRANT gatehouse_app" in served.stderr
        assert "Traceback" not in served.stderr
    examined = doctor(tmp_path, **environment)
    assert "FAIL  roles" in examined.stdout
    platform.sql(f"DROP OWNED BY {name}")


async def test_a_pooler_in_transaction_mode_is_reported_before_the_start(
    platform: RunningPlatform, tmp_path: Path
) -> None:
    async with pooler(platform.installed.home / "postgres" / ".s.PGSQL.5432") as url:
        environment = {
            "DATABASE_URL": url,
            "DATABASE_OWNER_URL": platform.installed.owner_url,
            "GATEHOUSE_MASTER_KEY": (platform.installed.home / "master.key").read_text().strip(),
        }
        for command in (["serve", "platform", "--port", "0"], ["worker"]):
            done = await asyncio.to_thread(doctor, tmp_path, *command, **environment)
            assert (done.returncode, done.stdout) == (2, "")
            assert "pool_mode = session" in done.stderr
            assert "Traceback" not in done.stderr
        examined = await asyncio.to_thread(doctor, tmp_path, **environment)
        assert "FAIL  pooler" in examined.stdout
