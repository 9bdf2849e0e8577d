"""The endpoint for the platform's notices."""

from fastapi import APIRouter

from gatehouse.portal.host import TheHost
from gatehouse.portal.platform_notices import service
from gatehouse.portal.platform_notices.schemas import NewNotices, NoticesTaken
from gatehouse.portal.request.callers import RESPONSES, PlatformCaller

router = APIRouter(prefix="/v1/platform-notices", tags=["Notifications"], responses=RESPONSES)


@router.post("", response_model=NoticesTaken)
async def take_platform_notices(caller: PlatformCaller, host: TheHost, body: NewNotices) -> NoticesTaken:
    """Receives notices from the platform, and creates notifications of organizations from them."""
    async with host.database.service() as session:
        result = await service.take(session, body)
        await session.commit()
    return result
