"""Mail by SMTP, to the server that the operator has configured (docs/mail.md)."""
