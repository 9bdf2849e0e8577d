"""Errors of test mails."""

from gatehouse.foundation.errors import Conflict


class MailServerNotSet(Conflict):
    code = "mail_server_not_set"
    message = "The platform sends no mail. Its operator sets SMTP_URL, MAIL_FROM and PUBLIC_URL."


class NoAddress(Conflict):
    code = "no_address"
    message = "A test mail goes to the caller's own address, and this caller has none. Call as a person."
