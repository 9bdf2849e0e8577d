"""Mails with a one-time link, as plain text and HTML (docs/mail.md)."""
