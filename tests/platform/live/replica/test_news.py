"""Tasks that wait for changes of an organization are notified."""

import asyncio
import time
from uuid import uuid4

from gatehouse.platform.live.replica.news import ChangeNotifications


async def test_news_wake_who_waits_for_them_and_nobody_else() -> None:
    news, ours, theirs = ChangeNotifications(), uuid4(), uuid4()
    waiting = {item: asyncio.create_task(news.after(news.seen(item), item, 5)) for item in (ours, theirs)}
    await asyncio.sleep(0)
    news.tell([ours])
    await waiting[ours]
    assert not waiting[theirs].done()
    news.tell_all()
    await waiting[theirs]


async def test_news_from_before_the_waiting_are_not_missed() -> None:
    news, ours = ChangeNotifications(), uuid4()
    for tell in (lambda: news.tell([ours]), news.tell_all):
        seen = news.seen(ours)
        tell()
        await asyncio.wait_for(news.after(seen, ours, 60), 1)


async def test_without_news_the_time_is_up() -> None:
    news, ours = ChangeNotifications(), uuid4()
    began = time.monotonic()
    await news.after(news.seen(ours), ours, 0.05)
    assert 0.04 < time.monotonic() - began < 2


async def test_nobody_waits_for_a_worker_that_ends() -> None:
    news, ours = ChangeNotifications(), uuid4()
    waiting = asyncio.create_task(news.after(news.seen(ours), ours, 60))
    await asyncio.sleep(0)
    news.close()
    await asyncio.wait_for(waiting, 1)
    await asyncio.wait_for(news.after(news.seen(ours), ours, 60), 1)


async def test_many_wait_for_the_same() -> None:
    news, ours = ChangeNotifications(), uuid4()
    waiting = [asyncio.create_task(news.after(news.seen(ours), ours, 5)) for _ in range(50)]
    await asyncio.sleep(0)
    news.tell([ours])
    await asyncio.wait_for(asyncio.gather(*waiting), 1)
