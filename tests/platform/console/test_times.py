"""Times in the console's sources have UTC on hover, because the component `Time` shows them."""

import re
from typing import Final

from tests.platform.console.conftest import CONSOLE

SOURCES: Final = CONSOLE / "src"
#: A text of a moment that is not made by `Time`, and a field for a moment.
TEXTS: Final = re.compile(
    r"\b(?:shortTime|date|relative)\(|DateTimeFormat\(|\.toLocale(?:Date|Time)String\(|Date\([^()]*\)\.toLocaleString\("
    r'|type="datetime-local"'
)
#: The files that may have such texts, with the way in which each shows UTC.
EXCEPTIONS: Final = {
    "audit/AuditPage.tsx": "The text is the label of a button that contains a Time.",
    "dlp/VersionsDialog.tsx": "The time is next to a Time. The question names it in UTC.",
    "keys/KeyForm.tsx": "The option of a select cannot contain an element. The select has UTC as its title.",
    "mcp/CallsPage.tsx": "The text is the label of a button. A Time is in the same row.",
    "parts/DayColumns.tsx": "The days are days in UTC.",
    "parts/format.ts": "The functions are defined here.",
    "parts/TimeChart.tsx": "The legend and the table of a chart name the hours in UTC too.",
    "parts/TimeRange.tsx": "The fields have UTC as their titles.",
    "requests/columns.tsx": "The text is the label of a button that contains a Time.",
    "sign-in/MfaForm.tsx": "The field has UTC as its title.",
}


def test_times_are_shown_by_the_component_with_utc_on_hover() -> None:
    files = {
        str(path.relative_to(SOURCES))
        for path in sorted([*SOURCES.rglob("*.ts"), *SOURCES.rglob("*.tsx")])
        if path.name != "schema.d.ts" and TEXTS.search(path.read_text("utf-8"))
    }
    assert files == set(EXCEPTIONS)


def test_files_with_fields_for_a_moment_show_it_in_utc() -> None:
    fields = [path for path in SOURCES.rglob("*.tsx") if 'type="datetime-local"' in path.read_text("utf-8")]
    assert fields
    for path in fields:
        assert re.search(r"title=\{[^}]*\butc\(", path.read_text("utf-8")), path
