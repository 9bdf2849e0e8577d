"""Imports an outpost's configuration into the organization's tenant on the platform (docs/moving-to-the-cloud.md). The
file is the document that `GET /admin/config/export` of the outpost returns. The portal checks that the file is such a
document, and the platform checks its content."""
