"""Limits of reading one file. The caller sets the time limit."""

from typing import Final

#: Maximum code points of the texts of a file and of all files in it. Further text is not read.
MAX_CHARACTERS: Final = 4 * 1024**2
#: Maximum number of pages of a PDF that are read.
MAX_PAGES: Final = 2_000
#: Maximum number of files in an archive, including those in nested archives.
MAX_MEMBERS: Final = 10_000
#: Maximum unpacked bytes of an archive, including those of nested archives.
MAX_UNPACKED_BYTES: Final = 64 * 1024**2
#: Maximum number of levels of nested files. A spreadsheet in a presentation in an archive has three levels.
MAX_LEVELS: Final = 3
#: Maximum number of levels of XML elements.
MAX_DEPTH: Final = 1_000
#: Maximum number of objects of a page that are searched for pictures.
MAX_PAGE_OBJECTS: Final = 2_000
#: Maximum number of annotations of a page that are read.
MAX_ANNOTATIONS: Final = 1_000
#: Maximum writable memory of a process that reads files.
MEMORY_BYTES: Final = 512 * 1024**2
