"""Folders that servers leave, whatever they contain, and servers that find such folders."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.stdio_servers import command, owner

from gatehouse.engine.mcp.stdio import folders as folders_of_servers
from gatehouse.engine.mcp.stdio import pool as pools
from gatehouse.engine.mcp.stdio.commands import Commands
from gatehouse.engine.mcp.stdio.folders import remove_folder
from gatehouse.engine.mcp.stdio.pool import ServerPool
from gatehouse.engine.mcp.upstream import UpstreamFailed

#: deeper than Python's limit of recursion, but with a path that is short enough
DEEP = 1_200
#: with paths that are too long for the system
VERY_DEEP = 3_000


@pytest.fixture(autouse=True)
def without_deep_folders(tmp_path: Path) -> Iterator[None]:
    """pytest itself cannot remove what a failed test leaves."""
    yield
    for folder in tmp_path.iterdir():
        remove_folder(folder)


def test_a_folder_of_any_depth_without_permissions_is_removed_and_links_are_not_followed(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "file").touch()
    (kept / "file").chmod(0o640)
    root = tmp_path / "mcp-stdio"
    root.mkdir()
    folder = os.open(root, os.O_RDONLY)
    for _ in range(VERY_DEEP):
        for name in ("a", "b"):
            os.mkdir(name, dir_fd=folder)
        os.symlink(kept, "link", dir_fd=folder)
        os.symlink(kept / "file", "file-link", dir_fd=folder)
        os.close(os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=folder))
        inner = os.open("a", os.O_RDONLY, dir_fd=folder)
        os.fchmod(folder, 0)
        os.close(folder)
        folder = inner
    os.close(folder)
    assert remove_folder(root)
    assert list(tmp_path.iterdir()) == [kept]
    assert ((kept / "file").stat().st_mode & 0o777, kept.stat().st_mode & 0o700) == (0o640, 0o700)
    # A link in the place of the folder is removed, not what it names.
    root.symlink_to(kept)
    assert remove_folder(root)
    assert (kept / "file").exists()
    # There may be no folder.
    assert remove_folder(root)


@pytest.mark.parametrize("depth", [DEEP, VERY_DEEP])
async def test_a_deep_folder_of_a_server_does_not_occupy_its_place(tmp_path: Path, depth: int) -> None:
    async with owner(tmp_path, max_processes=1, max_processes_per_organization=1) as running:
        try:
            await running.call("nest", {"depth": depth})
            await running.call("exit")
        except UpstreamFailed as failed:
            # The launcher ends a server whose folder it cannot measure.
            assert failed.reason == "process_ended"  # noqa: PT017 - the first call may fail or not
        await running.wait_for_log("mcp_stdio.ended")
        assert (await running.call("state", caller=b"bob"))["texts"] == []
        assert len(list((tmp_path / "mcp-stdio").iterdir())) == 1
        # An owner that is killed leaves the folder to the next one.
        await running.call("nest", {"depth": DEEP}, caller=b"bob")
        waiting = asyncio.create_task(running.call("sleep", caller=b"bob"))
        await asyncio.sleep(0.2)
        running.process.kill()
        with pytest.raises(UpstreamFailed):
            await waiting
        running.restart()
        assert await running.call("echo", {"text": "a"}) == "a"
        assert len(list((tmp_path / "mcp-stdio").iterdir())) == 1
        assert "Traceback" not in running.log


async def test_a_deep_folder_in_shared_memory_does_not_prevent_the_start_of_servers(tmp_path: Path) -> None:
    path = Path("/dev/shm") / f"gatehouse-test-{uuid4().hex}"
    path.mkdir()
    try:
        async with owner(tmp_path, {"script": command(idle_seconds=300)}) as running:
            await running.call("nest", {"path": str(path), "depth": VERY_DEEP})
            assert await running.call("echo", {"text": "a"}, caller=b"bob") == "a"
    finally:
        assert remove_folder(path)


async def test_servers_start_although_the_folder_of_an_earlier_owner_cannot_be_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "mcp-stdio"
    (root / "left").mkdir(parents=True)

    async def folders() -> list[Path]:
        pool = ServerPool(Commands(commands={}), root)
        # The pool would kill the test's other processes.
        monkeypatch.setattr(pool, "_kill_strangers", lambda: None)
        pool.start()
        await pool.stop()
        return sorted(tmp_path.iterdir())

    # The contents belong to another user.
    monkeypatch.setattr(pools, "remove_folder", lambda folder: folder != root and remove_folder(folder))
    second, first = await folders()
    assert (first, list(second.iterdir())) == (root, [])
    assert second.name.startswith(".mcp-stdio-")
    # Its replacement is removed by the next owner.
    third, _ = await folders()
    assert third != second
    monkeypatch.undo()
    kept = [tmp_path / name for name in (".mcp-stdio-file", "mcp-stdio-commands.json")]
    for path in kept:
        path.touch()
    assert await folders() == sorted([root, *kept])
    assert list(root.iterdir()) == []


def test_a_removal_ends_although_a_process_goes_on_creating_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "mcp-stdio"
    root.mkdir()
    (root / "file").touch()
    unlink = os.unlink

    def unlink_and_create(name: str, *, dir_fd: int | None = None) -> None:
        unlink(name, dir_fd=dir_fd)
        os.close(os.open(f"{name}-", os.O_CREAT | os.O_WRONLY, dir_fd=dir_fd))

    monkeypatch.setattr(folders_of_servers, "_MAX_SECONDS", 0.01)
    monkeypatch.setattr(os, "unlink", unlink_and_create)
    assert not remove_folder(root)
    assert root.exists()
