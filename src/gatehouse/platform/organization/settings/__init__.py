"""An organization's settings as one resource (docs/organization.md): its own fields, and fields of other families,
which are changed by those families' services and recorded under their audit actions."""
