"""The settings of an organization as one resource (docs/organization.md). It has fields of its own, and fields of other
families. The services of those families change their fields and record the changes under their own audit actions."""
