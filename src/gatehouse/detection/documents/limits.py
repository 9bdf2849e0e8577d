"""Limits of reading one file. The caller sets the time limit."""

from typing import Final

#: Code points of a file with all files in it. The rest is not read.
MAX_CHARACTERS: Final = 4 * 1024**2
MAX_PAGES: Final = 2_000
#: Files in an archive, and their unpacked bytes, nested archives included.
MAX_MEMBERS: Final = 10_000
MAX_UNPACKED_BYTES: Final = 64 * 1024**2
#: Levels of nested files: a spreadsheet in a presentation in an archive.
MAX_LEVELS: Final = 3
#: Levels of XML elements.
MAX_DEPTH: Final = 1_000
#: Objects of a page that are searched for pictures, and annotations of a page.
MAX_PAGE_OBJECTS: Final = 2_000
MAX_ANNOTATIONS: Final = 1_000
#: Writable memory of a reading process.
MEMORY_BYTES: Final = 512 * 1024**2
