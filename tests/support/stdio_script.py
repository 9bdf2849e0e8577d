"""A stdio MCP server of the older revision, without the SDK, so that it starts fast. Its tools do what a test asks for,
and much of it is hostile: `python -I -S stdio_script.py [MODE]`.

exits   ends at once
deaf    never reads
mute    ignores requests of the newer revision, and SIGTERM
exits-on-discover   ends at a request of the newer revision
"""

import hashlib
import json
import os
import resource
import signal
import sys
import time
from pathlib import Path

TOOLS = (
    "echo", "state", "environment", "digest", "descriptors", "limits", "exit", "endless", "huge", "fork", "hog",
    "write", "nest", "share", "share-deleted", "noise", "babble", "ask", "sleep", "cancelled", "stubborn", "spawn",
)  # fmt: skip
#: texts of earlier calls of `echo`
texts: list[str] = []
cancelled: list[object] = []


def write(message: object) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


def call(name: str, arguments: dict) -> object:
    match name:
        case "echo":
            texts.append(arguments["text"])
            return arguments["text"]
        case "state":
            return {"pid": os.getpid(), "texts": texts, "parent": os.getppid()}
        case "environment":
            return {"environment": dict(os.environ), "folder": str(Path.cwd()), "umask": os.umask(0o077)}
        case "digest":
            return hashlib.sha256(os.environ["TOKEN"].encode()).hexdigest()
        case "descriptors":
            return sorted(entry.name for entry in Path("/proc/self/fd").iterdir())
        case "limits":
            names = ("RLIMIT_DATA", "RLIMIT_CPU", "RLIMIT_NOFILE", "RLIMIT_FSIZE", "RLIMIT_CORE")
            limits = {limit: resource.getrlimit(getattr(resource, limit)) for limit in names}
            return {**limits, "nice": os.nice(0), "session": os.getsid(0) == os.getpid()}
        case "exit":
            os._exit(3)
        case "endless":
            while True:
                write({"jsonrpc": "2.0", "method": "notifications/message", "params": {"data": "x" * 1000}})
        case "huge":
            write({"jsonrpc": "2.0", "id": 10**6, "result": "x" * 5 * 1024**2})
        case "fork":
            for _ in range(60):
                if os.fork() == 0:
                    os.setsid()
                    time.sleep(1000)
        case "spawn":
            # A child that leaves the group, ignores SIGTERM, and loses its parent.
            if os.fork() == 0:
                os.setsid()
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                if os.fork() == 0:
                    time.sleep(1000)
                os._exit(0)
            os.wait()
        case "hog":
            hoard = [bytearray(2**20) for _ in range(10_000)]
            return len(hoard)
        case "write":
            for number in range(arguments["files"]):
                Path(f"file-{number}").write_bytes(b"x" * arguments["bytes"])
        case "nest":
            if "path" in arguments:
                os.chdir(arguments["path"])
            for _ in range(arguments["depth"]):
                Path("a").mkdir()
                os.chdir("a")
        case "share":
            # A file in shared memory that no process has open or mapped any more.
            with Path(arguments["path"]).open("wb") as file:
                for _ in range(arguments["mib"]):
                    file.write(b"x" * 2**20)
                time.sleep(1)
        case "share-deleted":
            descriptor = os.memfd_create("hidden")
            for _ in range(arguments["mib"]):
                os.write(descriptor, b"x" * 2**20)
        case "noise":
            for _ in range(2_000):
                os.write(2, b"noise %s\n" % os.environ.get("TOKEN", "").encode() * 50)
        case "babble":
            sys.stdout.write("this line is no message\n")
            write({"jsonrpc": "2.0", "id": 10**6, "result": {}})
            write(["a list"])
        case "ask":
            write({"jsonrpc": "2.0", "id": "q", "method": "sampling/createMessage", "params": {}})
            answer = json.loads(sys.stdin.readline())
            write({"jsonrpc": "2.0", "id": "p", "method": "ping"})
            return [answer, json.loads(sys.stdin.readline())]
        case "cancelled":
            return cancelled
        case "stubborn":
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
    return "done"


def main(mode: str) -> None:
    if mode == "exits":
        return
    if mode == "deaf":
        time.sleep(1000)
    if mode == "mute":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    for line in sys.stdin:
        message = json.loads(line)
        method, params = message["method"], message.get("params", {})
        if method == "notifications/cancelled":
            cancelled.append(params)
        if "id" not in message or (method == "tools/call" and params["name"] == "sleep"):
            continue
        result: object
        if method == "initialize":
            result = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
        elif method == "tools/list":
            result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]}
        elif method == "tools/call":
            text = json.dumps(call(params["name"], params.get("arguments", {})))
            result = {"content": [{"type": "text", "text": text}]}
        elif mode == "mute":
            continue
        elif mode == "exits-on-discover":
            return
        else:
            write({"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32601, "message": "unknown"}})
            continue
        write({"jsonrpc": "2.0", "id": message["id"], "result": result})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "")
