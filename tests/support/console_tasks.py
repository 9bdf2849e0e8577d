"""The main tasks of the console's screens that are more than creating, editing and deleting a row: as steps of an
administrator with a keyboard."""

from dataclasses import dataclass
from typing import Final

from tests.support.console_screens import AriaRole
from tests.support.platform import PASSWORD


@dataclass(frozen=True)
class Press:
    """Move to the control whose accessible name begins with `name`, and press Enter. If `item` is set, this opens a
    menu in which the item is chosen."""

    name: str
    item: str | None = None
    role: AriaRole = "button"


@dataclass(frozen=True)
class Finish(Press):
    """Press a button of the dialog, and wait until the dialog is closed."""


@dataclass(frozen=True)
class Enter:
    """Move to the field with the label, and type the value, choose the option with this label, or check the box."""

    label: str
    value: str = ""


@dataclass(frozen=True)
class Shows:
    """Wait until the page shows the text."""

    text: str


Step = Press | Enter | Shows

#: Screens without a task: nothing can be changed on them.
WITHOUT_TASK: Final = {"/", "/requests", "/usage", "/spend", "/mcp-servers/calls"}

_NEW_PASSWORD: Final = "another password for the keyboard"

#: The steps by the path of the screen in the router. At the end, every screen is as before, except for what cannot be
#: undone.
STEPS: Final[dict[str, tuple[Step, ...]]] = {
    "/chat": (Enter("Message", "Which gates has Rome?"), Press("Send"), Shows("Which gates has Rome?")),
    "/chat/$conversationId": (
        Press("Actions for the conversation", item="Rename"), Enter("Title", "Gates of Roma"), Finish("Save"),
        Shows("Gates of Roma"), Press("Share"), Press("Create link"), Shows("Created"), Press("Revoke"),
        Shows("There is no link yet."), Finish("Close"),
    ),
    "/audit": (Press("Verify chain…"), Press("Verify"), Shows("The chain is whole"), Finish("Close")),
    "/approvals": (
        Press("Access", role="link"), Press("Approve"), Enter("Reason", "For the reports."), Finish("Approve"),
        Shows("The request was approved."), Press("Approved", role="link"), Shows("For the reports."),
    ),
    "/kill-switches": (
        Press("Stop Echo"), Enter("Reason", "Runaway cost"), Finish("Stop now"), Shows("Runaway cost"),
        Press("Release Echo"), Finish("Release now"), Shows("was released."),
    ),
    "/dlp-rules/suppressions": (
        Press("Suppress a pattern"), Enter("Built-in pattern", "AWS access key"), Enter("Reason", "Public accounts"),
        Finish("Suppress"), Shows("Public accounts"), Press("End the suppression of AWS"), Finish("End suppression"),
        Shows("is active again."),
    ),
    "/access": (
        Enter("sandbox/embed for Engineering", "Deny"), Press("Save 1 change"), Shows("1 change was saved."),
        Enter("sandbox/embed for Engineering", "No rule"), Press("Save 1 change"),
    ),
    "/access-requests": (
        Press("Ask for a higher limit"), Enter("Limit in dollars", "50"), Enter("Reason", "A larger job"),
        Finish("Send request"), Shows("A larger job"),
    ),
    "/connections": (Press("Disconnect tickets"), Finish("Disconnect"), Shows("tickets was disconnected.")),
    "/mcp-servers/tools": (
        Press("Open warn of weather"), Finish("Reject"), Shows("warn was rejected."), Press("Open warn of weather"),
        Finish("Approve this definition"), Shows("warn was approved."),
    ),
    "/mcp-servers/access": (
        Press("Add rule"), Enter("For", "Engineering"), Enter("Rule", "Deny"),
        Finish("Add rule"), Shows("The rule was added."),
    ),
    "/organization": (
        Press("Add domain"), Enter("Domain", "keyboard.example"), Finish("Add domain"), Shows("keyboard.example"),
        Press("Actions for keyboard.example", item="Remove…"), Finish("Remove domain"), Shows("was removed"),
    ),
    "/security": (
        Press("Change password"), Enter("Current password", PASSWORD), Enter("New password", _NEW_PASSWORD),
        Enter("New password again", _NEW_PASSWORD), Finish("Change password"), Shows("Your password was changed."),
    ),
    "/start": (
        Press("Create key"), Press("I have stored the key"), Shows("Waiting for the first request"),
    ),
    "/sign-in": (
        Enter("Sign in again after (days)", "9"), Press("Save"), Shows("The policy was saved."), Press("New token"),
        Enter("Directory", "Short-lived"), Press("Create"), Finish("Done"), Press("Actions for Short-lived", "Revoke…"),
        Finish("Revoke token"), Shows("was revoked."),
    ),
    "/system": (
        Press("Start maintenance"), Enter("Message", "Back at noon."), Finish("Start maintenance"),
        Shows("Message: Back at noon."), Press("End maintenance"), Finish("End maintenance"),
        Shows("Requests are answered."),
    ),
    "/siem": (
        Press("Set up a receiver"), Enter("Type", "Syslog over TCP"), Enter("Host", "1.1.1.1"), Enter("Port", "514"),
        Finish("Save"), Shows("The receiver was saved."), Press("Edit the receiver"), Enter("Port", "515"),
        Finish("Save"), Shows("515"), Press("Pause"), Finish("Pause forwarding"), Shows("Forwarding is paused."),
    ),
    "/retention": (
        Press("Edit"), Enter("In the database (days)", "200"), Finish("Save"), Shows("200 days"), Press("Set a hold"),
        Enter("Reason", "A case"), Finish("Set the hold"), Shows("Overridden"), Press("Release"),
        Finish("Release the hold"), Shows("The legal hold was released."),
    ),
    "/outposts": (
        Press("Send credentials"), Finish("Send credentials"), Shows("Sent with the policy"),
        Press("Stop sending credentials"), Finish("Stop sending"), Shows("Not sent:"),
    ),
    "/dlp-rules/replay": (
        Enter("Rule", "Project names"), Enter("Becomes", "Block"), Press("Replay"),
        Shows("No recorded request matches."),
    ),
    "/tools": (Enter("Search tools", "nothing has this name"), Shows("No tool matches"), Press("Clear")),
}  # fmt: skip
