"""Test mails: an administrator sees whether mails arrive (docs/mail.md).

queued -> sent      the server took the mail: the audit event `mail.test_sent`
queued -> failed    one attempt failed: the audit event `mail.test_failed` with the reason
"""
