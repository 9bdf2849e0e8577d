"""The operator's file of commands that organizations may run as MCP servers (`MCP_STDIO_COMMANDS`, docs/mcp.md)."""

import os
import re
import stat
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final
from uuid import UUID

import msgspec
from msgspec import Meta

from gatehouse.foundation.settings import BadSettings

SETTING: Final = "MCP_STDIO_COMMANDS"
#: stands for all organizations
EVERY_ORGANIZATION: Final = "*"
_MAX_FILE_BYTES: Final = 1024**2
_WRITABLE_BY_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH
#: Variables with which an organization could run its own code or redirect connections, or that the gateway sets. The
#: list has the known ones; programs may have others.
_RESERVED_PREFIXES: Final = (
    "BASH_", "BUNDLE_", "BUN_", "CARGO_", "COMPLUS_", "CORECLR_", "DENO_", "DOTNET_", "DYLD_", "ELECTRON_", "ERL_",
    "GCONV_", "GEM_", "GIT_", "GLIBC_", "GO", "JAVA_", "JDK_", "LD_", "LUA_", "MALLOC_", "NODE_", "NPM_", "OPENSSL_",
    "PERL", "PHP", "PIP_", "PYTHON", "RUBY", "RUSTC", "RUSTUP_", "R_", "SSL_CERT_", "UV_", "XDG_", "_JAVA",
)  # fmt: skip
_RESERVED_NAMES: Final = frozenset(
    {
        "ALL_PROXY", "CLASSPATH", "EDITOR", "ENV", "HOME", "HTTPS_PROXY", "HTTP_PROXY", "IFS", "PAGER", "PATH", "PS4",
        "SHELL", "SHELLOPTS", "TMPDIR", "VISUAL",
    }
)  # fmt: skip

_Name = Annotated[str, Meta(pattern=r"^[a-z0-9][a-z0-9-]{0,62}$")]
_Variable = Annotated[str, Meta(pattern=r"^[A-Z_][A-Z0-9_]{0,63}$")]
_Text = Annotated[str, Meta(max_length=4_096, pattern=r"^[^\x00]*$")]


class Command(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A command, who may run it, and its limits."""

    #: the absolute path of a program, and its arguments
    command: Annotated[tuple[_Text, ...], Meta(min_length=1, max_length=100)]
    #: ids of organizations, or `*` for all
    organizations: tuple[str, ...]
    #: variables whose values an organization may set
    environment: tuple[_Variable, ...] = ()
    #: variables that are the same for all organizations
    fixed_environment: Mapping[_Variable, _Text] = {}
    #: None: each process has its own empty folder
    working_directory: str | None = None
    #: whether all callers of an organization use one process. Otherwise each caller has one.
    shared: bool = False
    idle_seconds: Annotated[int, Meta(ge=1, le=86_400)] = 300
    #: whether lines of standard error are logged
    log_stderr: bool = False
    memory_mib: Annotated[int, Meta(ge=16, le=1024**2)] = 512
    #: maximum processor time of each process
    cpu_seconds: Annotated[int, Meta(ge=1, le=10**7)] = 600
    open_files: Annotated[int, Meta(ge=16, le=65_536)] = 256
    #: maximum number of processes of a server, including child processes
    processes: Annotated[int, Meta(ge=1, le=1_000)] = 16
    #: maximum size of each file that a process writes
    file_mib: Annotated[int, Meta(ge=0, le=1024**2)] = 100
    #: maximum size of all files in the process's own folder, and of all files that only its processes have open
    folder_mib: Annotated[int, Meta(ge=1, le=1024**2)] = 500
    nice: Annotated[int, Meta(ge=0, le=19)] = 10

    def is_offered_to(self, organization: str) -> bool:
        return EVERY_ORGANIZATION in self.organizations or organization in self.organizations


class Commands(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The operator's file."""

    commands: Mapping[_Name, Command]
    #: maximum number of servers on this machine, and of one organization
    max_processes: Annotated[int, Meta(ge=1, le=1_000)] = 32
    max_processes_per_organization: Annotated[int, Meta(ge=1, le=1_000)] = 8

    def offered(self, name: str, organization: str) -> Command | None:
        """Return a command that the organization may run, or None."""
        command = self.commands.get(name)
        return command if command is not None and command.is_offered_to(organization) else None

    def offered_to(self, organization: str) -> dict[str, Command]:
        """Return the commands that the organization may run, by name."""
        return {name: command for name, command in self.commands.items() if command.is_offered_to(organization)}


def read_commands(path: Path | None) -> Commands | None:
    """Return the commands in the file, or None without a path. Raises `BadSettings`."""
    if path is None:
        return None
    if sys.platform != "linux":
        raise BadSettings(f"{SETTING}: stdio MCP servers need Linux")
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & _WRITABLE_BY_OTHERS:
                raise BadSettings(f"{SETTING}: {path} is writable by its group or by others; run chmod go-w")
            data = file.read(_MAX_FILE_BYTES + 1)
    except OSError as error:
        raise BadSettings(f"{SETTING}: {path} cannot be read ({error.strerror})") from None
    if len(data) > _MAX_FILE_BYTES:
        raise BadSettings(f"{SETTING}: {path} has more than 1 MiB")
    try:
        commands = msgspec.json.decode(data, type=Commands)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadSettings(f"{SETTING}: {path} is not valid: {error}") from None
    faults = [
        f"{SETTING}: {name}: {fault}" for name, command in commands.commands.items() for fault in _faults(command)
    ]
    if faults:
        raise BadSettings("\n".join(faults))
    return commands


def _faults(command: Command) -> list[str]:
    program = command.command[0]
    faults = []
    if not Path(program).is_absolute() or not os.access(program, os.X_OK):
        faults.append(f"{program} is not the absolute path of an executable file")
    if command.working_directory is not None and not Path(command.working_directory).is_absolute():
        faults.append("working_directory is not an absolute path")
    faults += [
        f"environment: an organization must not set {variable}, because it could run its own code with it"
        for variable in command.environment
        if variable in _RESERVED_NAMES or variable.startswith(_RESERVED_PREFIXES)
    ]
    if both := sorted(set(command.environment) & set(command.fixed_environment)):
        faults.append(f"{', '.join(both)} is in environment and in fixed_environment")
    if not command.organizations:
        faults.append('organizations is empty; list ids, or ["*"] for all organizations')
    for organization in command.organizations:
        if organization != EVERY_ORGANIZATION and not _is_uuid(organization):
            faults.append(f"organizations: {organization} is not the id of an organization, and not *")
    return faults


_is_hex: Final = re.compile(r"[0-9a-f-]{36}").fullmatch


def _is_uuid(text: str) -> bool:
    try:
        return _is_hex(text) is not None and str(UUID(text)) == text
    except ValueError:
        return False
