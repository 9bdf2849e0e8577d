"""Test mails, with which an administrator checks that mails arrive (docs/mail.md).

queued -> sent      the mail server accepted the mail: audit event `mail.test_sent`
queued -> failed    the only attempt failed: audit event `mail.test_failed` with the reason
"""
