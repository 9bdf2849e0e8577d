"""Maintenance of an installation: diagnosis (`gatehouse doctor`), backup and restore."""
