"""Tasks that wait for changes of an organization are notified of them."""

import asyncio
import time
from uuid import uuid4

from gatehouse.platform.live.replica.news import ChangeNotifications


async def test_a_change_wakes_only_tasks_that_wait_for_it() -> None:
    news, ours, theirs = ChangeNotifications(), uuid4(), uuid4()
    waiting = {item: asyncio.create_task(news.after(news.seen(item), item, 5)) for item in (ours, theirs)}
    await asyncio.sleep(0)
    news.tell([ours])
    await waiting[ours]
    assert not waiting[theirs].done()
    news.tell_all()
    await waiting[theirs]


async def test_a_change_before_the_wait_is_not_missed() -> None:
    news, ours = ChangeNotifications(), uuid4()
    for tell in (lambda: news.tell([ours]), news.tell_all):
        seen = news.seen(ours)
        tell()
        await asyncio.wait_for(news.after(seen, ours, 60), 1)


async def test_without_a_change_the_wait_times_out() -> None:
    news, ours = ChangeNotifications(), uuid4()
    began = time.monotonic()
    await news.after(news.seen(ours), ours, 0.05)
    assert 0.04 < time.monotonic() - began < 2


async def test_all_waits_end_when_the_worker_stops() -> None:
    news, ours = ChangeNotifications(), uuid4()
    waiting = asyncio.create_task(news.after(news.seen(ours), ours, 60))
    await asyncio.sleep(0)
    news.close()
    await asyncio.wait_for(waiting, 1)
    await asyncio.wait_for(news.after(news.seen(ours), ours, 60), 1)


async def test_many_tasks_can_wait_for_the_same_change() -> None:
    news, ours = ChangeNotifications(), uuid4()
    waiting = [asyncio.create_task(news.after(news.seen(ours), ours, 5)) for _ in range(50)]
    await asyncio.sleep(0)
    news.tell([ours])
    await asyncio.wait_for(asyncio.gather(*waiting), 1)
