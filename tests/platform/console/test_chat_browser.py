"""The chat of the console in Chromium: an ordinary user talks to models of the sandbox."""

import re
import time
from collections.abc import Callable, Iterator
from uuid import uuid4

import httpx2
import pytest
from playwright.async_api import BrowserContext, Locator, Page, expect
from tests.platform.console.conftest import DESK, OtherUser, SignIn, api, check_screen, modal
from tests.support.accessibility import assert_accessible
from tests.support.chromium import PHONE, needs_chromium
from tests.support.server import GatehouseServer

from gatehouse.platform.changes.change import DEFAULT_TENANT

pytestmark = needs_chromium

CATALOG = "/api/admin/models/catalog/"
CARD = "4242 4242 4242 4242"
MODELS = ("slow-60000ms", "slow-2000ms", "stream-99999", "status-503", "cut")
MARKDOWN = """# Gates

1. **Porta Maggiore**
2. `Porta Pia`

| Gate | Year |
|---|---|
| Maggiore | 52 |

```python
print("<b>no markup</b>")
```

<img src=x onerror=alert(1)> ![map](https://example.org/map.png) [bad](javascript:alert(1))"""


@pytest.fixture
def admin(server: GatehouseServer, new_user: Callable[[str], OtherUser]) -> Iterator[httpx2.Client]:
    client = api(server, new_user("admin"))
    yield client
    client.close()


@pytest.fixture(autouse=True)
def models(server: GatehouseServer, admin: httpx2.Client) -> None:
    """Add models that are slow or fail to the catalog, and switch the generation of titles off."""
    if server.sql("SELECT 1 FROM model_configs WHERE model_id = %s", [MODELS[0]]):
        return
    for model in MODELS:
        answer = admin.post(CATALOG, json={"provider": "sandbox", "model_id": model})
        assert answer.status_code in {201, 409}, answer.text
    admin.put("/api/admin/config/auto_title_enabled", json={"value": "false"}).raise_for_status()


def messages(page: Page) -> Locator:
    return page.get_by_role("list", name="Messages").locator("> li")


async def ask(page: Page, question: str, model: str = "sandbox/echo") -> None:
    await page.get_by_label("Model", exact=True).select_option(model)
    await page.get_by_label("Message", exact=True).fill(question)
    await page.get_by_role("button", name="Send").click()


async def is_answered(page: Page) -> None:
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    await expect(page.get_by_role("link", name="Details").last).to_be_visible()


async def test_the_model_picker_offers_only_models_that_the_user_may_use(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    mark = uuid4().hex[:8]
    server.sql(
        "INSERT INTO model_configs (id, tenant_id, provider, model_id) SELECT gen_random_uuid(), %s, 'sandbox',"
        " 'tokens-' || n || '-' || %s FROM generate_series(1, 60) n",
        [DEFAULT_TENANT, mark],
    )
    try:
        for model, access in ((f"tokens-1-{mark}-open", "open"), (f"tokens-1-{mark}-closed", "restricted")):
            new = {"provider": "sandbox", "model_id": model, "access": access}
            admin.post(CATALOG, json=new).raise_for_status()
        off = admin.post(CATALOG, json={"provider": "sandbox", "model_id": f"tokens-1-{mark}-off"}).json()["id"]
        admin.put(f"{CATALOG}{off}", json={"is_active": False}).raise_for_status()
        server.settled()
        who = await sign_in("user", "/console/chat")
        picker = page.get_by_label("Model", exact=True)
        # There are more models than a select offers, so they are searched.
        search = page.get_by_role("searchbox", name="Search model")
        await expect(search).to_be_visible()
        await search.fill(f"tokens-1-{mark}")
        offered = [f"sandbox/tokens-1-{mark}", f"sandbox/tokens-1-{mark}-open"]
        await expect(picker.get_by_role("option")).to_have_text(["Your preferred model", re.compile("^auto"), *offered])
        listed = api(server, who).get("/v1/models", params={"search": f"tokens-1-{mark}"}).json()["data"]
        assert [model["id"] for model in listed] == offered
        await search.fill(f"tokens-1-{mark}-closed")
        await expect(picker.get_by_role("option", name=re.compile(mark))).to_have_count(0)
    finally:
        server.sql("DELETE FROM model_configs WHERE model_id LIKE %s", [f"%{mark}%"])
        server.touch("policy", DEFAULT_TENANT)
        server.settled()


def stored(server: GatehouseServer, who: OtherUser) -> list[tuple[str, str]]:
    """Return the role and status of the messages of a user."""
    rows: list[tuple[str, str]] = server.sql(
        "SELECT m.role, m.status FROM conversation_messages m JOIN conversations c ON c.id = m.conversation_id"
        " WHERE c.user_id = %s ORDER BY m.sequence",
        [who.id],
    )
    return rows


async def test_a_user_asks_by_keyboard_and_the_answer_is_shown_as_markdown(
    page: Page, sign_in: SignIn, context: BrowserContext
) -> None:
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    foreign: list[str] = []
    page.on("request", lambda request: foreign.append(request.url) if "example.org" in request.url else None)
    await sign_in("user")
    await page.get_by_role("link", name="Chat").press("Enter")
    field = page.get_by_label("Message", exact=True)
    await expect(field).to_be_focused()
    await expect(page.get_by_text("No conversations yet.")).to_be_visible()
    await check_screen(page)
    for line in MARKDOWN.split("\n"):
        await page.keyboard.insert_text(line)
        await page.keyboard.press("Shift+Enter")
    await page.get_by_label("Model", exact=True).select_option("sandbox/echo")
    await field.press("Enter")
    await page.wait_for_url(re.compile("/console/chat/[0-9a-f-]{36}$"))
    await is_answered(page)
    await expect(messages(page)).to_have_count(2)
    answer = messages(page).last
    await expect(answer.get_by_role("heading", name="Gates", level=3)).to_be_visible()
    await expect(answer.locator("ol > li strong")).to_have_text("Porta Maggiore")
    await expect(answer.get_by_role("cell", name="52")).to_be_visible()
    await expect(answer.locator("img")).to_have_count(0)
    await expect(answer).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(answer.get_by_role("link", name="Image: map")).to_have_attribute(
        "rel", re.compile("noopener noreferrer")
    )
    await expect(answer.get_by_role("link", name="bad")).to_have_count(0)
    await expect(answer).to_contain_text(re.compile(r"\d+ tokens in, \d+ out"))
    await expect(page.get_by_text("Incomplete")).to_have_count(0)
    await answer.get_by_role("button", name="Copy code").click()
    assert await page.evaluate("navigator.clipboard.readText()") == 'print("<b>no markup</b>")'
    assert foreign == []
    await check_screen(page)

    await page.get_by_role("button", name="Actions for the conversation").click()
    await page.get_by_role("menuitem", name="Copy as curl").click()
    await expect(page.get_by_text("The command was copied.")).to_be_visible()
    command = await page.evaluate("navigator.clipboard.readText()")
    assert "Bearer $GATEHOUSE_API_KEY" in command
    assert "sandbox/echo" in command

    # After a reload, the conversation is displayed and can be continued.
    await page.reload()
    await expect(messages(page)).to_have_count(2)
    await expect(page.get_by_label("Model", exact=True)).to_have_value("sandbox/echo")
    await ask(page, "And which is the oldest?")
    await expect(messages(page)).to_have_count(4)
    await is_answered(page)
    await expect(messages(page).last).to_contain_text("And which is the oldest?")


async def test_stop_ends_the_call_before_and_within_the_answer(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("user", "/console/chat")
    await ask(page, "Slowly", "sandbox/slow-60000ms")
    await expect(page.get_by_text("Waiting for the answer…")).to_be_visible()
    await assert_accessible(page)
    await page.get_by_role("button", name="Stop").press("Enter")
    await expect(messages(page).last).to_contain_text("Stopped")
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    until(lambda: server.sql("SELECT status FROM usage_records WHERE user_id = %s", [who.id]) == [("cancelled",)])
    assert stored(server, who) == []

    # The question was not stored. The user sends it again to another model.
    await page.get_by_label("Model", exact=True).select_option("sandbox/stream-99999")
    await page.get_by_role("button", name="Try again").click()
    await expect(messages(page).last.locator("p").first).to_be_visible()
    await page.get_by_role("button", name="Stop").click()
    await expect(messages(page).last).to_contain_text("Stopped")
    await expect(page.get_by_role("button", name="Send")).to_be_visible()
    until(lambda: stored(server, who) == [("user", "complete"), ("assistant", "incomplete")])
    await page.reload()
    await expect(messages(page)).to_have_count(2)
    await expect(messages(page).last).to_contain_text("Incomplete")


async def test_an_answer_continues_while_another_page_is_open(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("user", "/console/chat")
    await ask(page, "Go on", "sandbox/slow-2000ms")
    await expect(page.get_by_role("button", name="Stop")).to_be_visible()
    address = page.url
    await page.get_by_role("link", name="My usage").click()
    await expect(page.get_by_role("heading", name="My usage", level=1)).to_be_visible()
    await page.get_by_role("link", name="Chat").click()
    await page.get_by_role("link", name=re.compile("Untitled conversation")).click()
    await page.wait_for_url(address)
    await is_answered(page)
    await expect(messages(page).last).to_contain_text("Go on")
    await expect(page.get_by_text("Incomplete")).to_have_count(0)
    assert stored(server, who) == [("user", "complete"), ("assistant", "complete")]


async def test_redactions_and_blocks_are_shown_at_their_place(
    server: GatehouseServer, page: Page, sign_in: SignIn, admin: httpx2.Client
) -> None:
    await sign_in("user", "/console/chat")
    await ask(page, f"My card is {CARD}.")
    await is_answered(page)
    for message in await messages(page).all():
        await expect(message.locator("mark")).to_have_text(re.compile(r"^\[CREDIT_CARD_\d+\]$"))
        await expect(message.locator("mark")).to_have_attribute("title", re.compile("credit card"))
    await expect(messages(page).last).to_contain_text("Redacted")
    assert CARD not in await messages(page).last.inner_text()
    await check_screen(page)

    pattern = {"name": "Projects", "pattern": "Aurora-[0-9]+", "entity_type": "project", "action_tier": "block"}
    created = admin.post("/api/admin/dlp-rules/custom-patterns", json=pattern)
    assert created.status_code == 201, created.text
    try:
        await ask(page, "Plans of Aurora-77")
        refusal = page.get_by_role("alert").filter(has_text="Blocked by data protection")
        await expect(refusal).to_be_visible()
        await expect(refusal).to_contain_text("Request ")
        await check_screen(page)
        await page.get_by_role("button", name="Edit question").click()
        await expect(page.get_by_label("Message", exact=True)).to_have_value("Plans of Aurora-77")
        await expect(page.get_by_label("Message", exact=True)).to_be_focused()
        await expect(messages(page)).to_have_count(2)
        await page.get_by_label("Message", exact=True).fill("Plans of the weekend")
        await page.keyboard.press("Enter")
        await expect(messages(page)).to_have_count(4)
        await is_answered(page)
    finally:
        admin.delete(f"/api/admin/dlp-rules/custom-patterns/{created.json()['id']}")


async def test_failures_have_the_message_of_the_api_and_can_be_tried_again(page: Page, sign_in: SignIn) -> None:
    await sign_in("user", "/console/chat")
    await ask(page, "Anybody?", "sandbox/status-503")
    refusal = page.get_by_role("alert").filter(has_text="The question was not answered")
    await expect(refusal).to_contain_text(re.compile("provider", re.IGNORECASE))
    await page.get_by_label("Model", exact=True).select_option("sandbox/echo")
    await page.get_by_role("button", name="Try again").click()
    await is_answered(page)
    await expect(messages(page)).to_have_count(2)
    await expect(page.get_by_role("alert")).to_have_count(0)

    # If a stream breaks off, the part that has arrived is displayed as incomplete.
    await ask(page, "one two three four five six seven eight", "sandbox/cut")
    await expect(messages(page).last.get_by_role("alert")).to_be_visible()
    await expect(messages(page).last).to_contain_text("Incomplete")


async def test_a_user_renames_shares_and_deletes_a_conversation(
    server: GatehouseServer, page: Page, sign_in: SignIn, context: BrowserContext
) -> None:
    await context.grant_permissions(["clipboard-read", "clipboard-write"])
    await sign_in("user", "/console/chat")
    await ask(page, "Which gates has Rome?")
    await is_answered(page)
    actions = page.get_by_role("button", name="Actions for the conversation")
    await actions.press("Enter")
    await page.get_by_role("menuitem", name="Rename").press("Enter")
    dialog = modal(page)
    await expect(dialog.get_by_label("Title")).to_be_focused()
    await check_screen(page)
    await page.keyboard.type("Gates of Rome")
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="Gates of Rome", level=1)).to_be_visible()
    await expect(page.get_by_role("link", name=re.compile("Gates of Rome"))).to_be_visible()

    await page.get_by_role("button", name="Share").press("Enter")
    await expect(dialog.get_by_text("There is no link yet.")).to_be_visible()
    await dialog.get_by_role("button", name="Create link").click()
    link = dialog.get_by_role("list", name="Links").get_by_role("link")
    await expect(link).to_be_visible()
    await check_screen(page)
    await dialog.get_by_role("button", name="Copy link").click()
    address = await page.evaluate("navigator.clipboard.readText()")
    assert httpx2.get(address).json()["messages"][0]["content"] == "Which gates has Rome?"
    await dialog.get_by_role("button", name="Revoke").click()
    await expect(dialog.get_by_text("There is no link yet.")).to_be_visible()
    assert httpx2.get(address).status_code == 404
    await page.keyboard.press("Escape")

    await actions.press("Enter")
    await page.get_by_role("menuitem", name="Delete").press("Enter")
    await dialog.get_by_role("button", name="Delete conversation").press("Enter")
    await page.wait_for_url(re.compile("/console/chat$"))
    await expect(page.get_by_text("No conversations yet.")).to_be_visible()


async def test_many_links_are_shown_page_by_page(page: Page, server: GatehouseServer, sign_in: SignIn) -> None:
    who = await sign_in("user", "/console/chat")
    client = api(server, who)
    made = client.post("/api/conversations", json={"title": "Often shared", "model": "sandbox/echo"}).json()
    for _ in range(20):
        client.post(f"/api/conversations/{made['id']}/share_links").raise_for_status()
    await page.goto(f"/console/chat/{made['id']}")
    await page.get_by_role("button", name="Share").press("Enter")
    dialog = modal(page)
    links = dialog.get_by_role("list", name="Links").get_by_role("listitem")
    await expect(links).to_have_count(20)
    await expect(dialog.get_by_role("navigation", name="Pages")).to_have_count(0)
    # A new link is on the last page. When it is revoked, the page before it is shown.
    await dialog.get_by_role("button", name="Create link").press("Enter")
    await expect(links).to_have_count(1)
    await expect(dialog.get_by_role("navigation", name="Pages")).to_contain_text("of 21")
    await check_screen(page)
    await dialog.get_by_role("button", name="Revoke").press("Enter")
    await expect(links).to_have_count(20)


async def test_a_link_shows_the_conversation_to_people_without_a_session(
    server: GatehouseServer, page: Page, new_user: Callable[[str], OtherUser]
) -> None:
    client = api(server, new_user("user"))
    made = client.post("/api/conversations", json={"title": "Gates of Rome", "model": "sandbox/echo"}).json()
    path = f"/api/conversations/{made['id']}"
    client.post(f"{path}/messages", json={"content": MARKDOWN}).raise_for_status()
    link = client.post(f"{path}/share_links").json()
    foreign: list[str] = []
    page.on("request", lambda request: foreign.append(request.url) if not request.url.startswith(server.url) else None)
    await page.goto(link["url"])
    await expect(page.get_by_role("heading", name="Gates of Rome", level=1)).to_be_visible()
    question, answer = messages(page).first, messages(page).last
    await expect(question).to_contain_text("# Gates")
    await expect(answer.get_by_role("heading", name="Gates", level=3)).to_be_visible()
    await expect(answer.get_by_role("cell", name="52")).to_be_visible()
    await expect(answer.locator("img")).to_have_count(0)
    await expect(answer).to_contain_text("<img src=x onerror=alert(1)>")
    await expect(answer.get_by_role("link", name="Image: map")).to_have_attribute("rel", "noopener noreferrer nofollow")
    await check_screen(page)
    assert foreign == []
    assert await page.context.cookies() == []

    # Later messages are loaded page by page.
    server.sql(
        "INSERT INTO conversation_messages (id, tenant_id, conversation_id, sequence, role, status)"
        " SELECT gen_random_uuid(), tenant_id, conversation_id, n, 'user', 'complete'"
        " FROM conversation_messages, generate_series(3, 205) n WHERE conversation_id = %s AND sequence = 1",
        [made["id"]],
    )
    await page.reload()
    await expect(messages(page)).to_have_count(200)
    await page.get_by_role("button", name="Show later messages").press("Enter")
    await expect(messages(page)).to_have_count(205)

    client.delete(f"{path}/share_links/{link['id']}").raise_for_status()
    await page.goto(link["url"])
    await expect(page.get_by_role("heading", name="This link shows nothing")).to_be_visible()
    await check_screen(page)
    client.close()


async def test_conversations_are_searched_by_their_titles(server: GatehouseServer, page: Page, sign_in: SignIn) -> None:
    who = await sign_in("user")
    client = api(server, who)
    for title in ("Gates of Rome", "Walls of Rome", "Recipes"):
        client.post("/api/conversations", json={"title": title, "model": "sandbox/echo"}).raise_for_status()
    client.close()
    await page.goto("/console/chat")
    entries = page.get_by_role("link", name=re.compile("Rome|Recipes"))
    await expect(entries).to_have_count(3)
    await page.get_by_role("searchbox", name="Search titles").fill("rome")
    await page.keyboard.press("Enter")
    await expect(entries).to_have_count(2)
    assert "search=rome" in page.url
    await entries.first.click()
    await expect(page.get_by_role("heading", name="Walls of Rome", level=1)).to_be_visible()
    await expect(page.get_by_role("searchbox", name="Search titles")).to_have_value("rome")
    await page.get_by_role("searchbox", name="Search titles").fill("Milan")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No title contains the text.")).to_be_visible()
    await check_screen(page)


async def test_the_last_answer_is_regenerated_with_another_model(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("user", "/console/chat")
    await ask(page, "one two three", "sandbox/echo")
    await is_answered(page)
    await ask(page, "four five six")
    await expect(messages(page)).to_have_count(4)
    await is_answered(page)
    regenerate = page.get_by_role("button", name="Regenerate answer")
    await expect(regenerate).to_have_count(1)

    # If the attempt fails, the previous answer is kept and an error is displayed.
    await page.get_by_label("Model", exact=True).select_option("sandbox/status-503")
    await regenerate.press("Enter")
    await expect(page.get_by_role("alert").filter(has_text="The question was not answered")).to_be_visible()
    await expect(page.get_by_label("Message", exact=True)).to_be_focused()
    assert len(stored(server, who)) == 4

    await page.get_by_label("Model", exact=True).select_option("sandbox/slow-2000ms")
    await page.get_by_role("button", name="Try again").press("Enter")
    await expect(messages(page).last).to_contain_text("sandbox/slow-2000ms")
    await is_answered(page)
    await expect(messages(page)).to_have_count(4)
    await expect(messages(page).nth(1)).to_contain_text("one two three")
    await expect(messages(page).last).to_contain_text("four five six")
    assert stored(server, who) == [("user", "complete"), ("assistant", "complete")] * 2
    await page.reload()
    await expect(messages(page)).to_have_count(4)


async def test_the_list_has_pages_and_a_phone_shows_one_thing_at_a_time(
    server: GatehouseServer, page: Page, sign_in: SignIn
) -> None:
    who = await sign_in("user")
    client = api(server, who)
    for number in range(27):
        client.post("/api/conversations", json={"title": f"Talk {number:02}", "model": "sandbox/echo"})
    client.close()
    await page.goto("/console/chat")
    entries = page.get_by_role("link", name=re.compile(r"Talk \d\d"))
    await expect(entries).to_have_count(25)
    await expect(entries.first).to_contain_text("Talk 26")
    await page.get_by_role("navigation", name="Pages").get_by_role("button", name="Next").click()
    await expect(entries).to_have_count(2)
    assert "page=2" in page.url
    await page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    await entries.first.click()
    await expect(page.get_by_role("heading", name="Talk 01", level=1)).to_be_visible()
    await expect(entries).to_have_count(0)
    await page.get_by_label("Message", exact=True).fill("word " * 200 + "x" * 400)
    await page.keyboard.press("Enter")
    await is_answered(page)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await assert_accessible(page)
    await page.get_by_role("link", name="All conversations").click()
    await expect(entries).to_have_count(25)
    await page.set_viewport_size(DESK)  # type: ignore[arg-type]


async def test_a_conversation_that_is_not_there_and_a_list_that_cannot_be_loaded(page: Page, sign_in: SignIn) -> None:
    await sign_in("user", "/console/chat/00000000-0000-4000-8000-000000000000")
    await expect(page.get_by_role("alert").first).to_contain_text("not found")
    await page.route("**/api/conversations?*", lambda route: route.fulfill(status=403, json={"detail": "Not today."}))
    await page.goto("/console/chat")
    await expect(page.get_by_role("alert")).to_contain_text("Not today.")
    await page.unroute("**/api/conversations?*")
    await page.get_by_role("button", name="Try again").click()
    await expect(page.get_by_text("No conversations yet.")).to_be_visible()


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)
