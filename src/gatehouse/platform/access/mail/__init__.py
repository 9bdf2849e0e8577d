"""The mails with a one-time link: their texts, as plain text and HTML (docs/mail.md)."""
