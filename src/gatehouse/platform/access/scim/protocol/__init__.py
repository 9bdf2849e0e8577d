"""The SCIM protocol (RFC 7644): filters, patches, schemas and messages."""
