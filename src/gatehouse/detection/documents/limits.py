"""What reading one file may take. How long it may take is the asker's to say."""

from typing import Final

#: Code points that are read of a file, with all that is in it. What is beyond is not read.
MAX_CHARACTERS: Final = 4 * 1024**2
MAX_PAGES: Final = 2_000
#: Files in an archive, and their bytes unpacked, those of archives in it included.
MAX_MEMBERS: Final = 10_000
MAX_UNPACKED_BYTES: Final = 64 * 1024**2
#: Files within files: a spreadsheet in a presentation in an archive.
MAX_LEVELS: Final = 3
#: Elements within elements of XML.
MAX_DEPTH: Final = 1_000
#: Objects of a page that are looked through for pictures, and its annotations.
MAX_PAGE_OBJECTS: Final = 2_000
MAX_ANNOTATIONS: Final = 1_000
#: Writable memory of the process that reads.
MEMORY_BYTES: Final = 512 * 1024**2
