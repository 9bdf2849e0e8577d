"""Import of the file that an outpost's `GET /admin/config/export` returns into the organization's tenant on the
platform (docs/moving-to-the-cloud.md). The portal checks that the file is such a document; the platform checks its
content."""
