"""The endpoint of test mails."""

from fastapi import APIRouter

from gatehouse.platform.access.mail_test import service
from gatehouse.platform.access.mail_test.schemas import TestMailQueued
from gatehouse.platform.request.callers import RESPONSES, Admin
from gatehouse.platform.request.injected import Changing
from gatehouse.platform.request.ports import TheHost

router = APIRouter(prefix="/api/admin/mail", tags=["System"], responses=RESPONSES)


@router.post(
    "/test",
    status_code=202,
    response_model=TestMailQueued,
    responses={409: {"description": "`mail_server_not_set`, or `no_address`: the caller is not a person."}},
)
async def send_test_mail(caller: Admin, change: Changing, host: TheHost) -> TestMailQueued:
    """Queues a test mail to your own address, which is sent in the same way as all other mails. The audit event
    `mail.test_sent` or `mail.test_failed` reports the result."""
    return await service.queue_test(change, host.settings)
