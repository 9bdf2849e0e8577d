"""Single sign-on from the login page to the session (docs/portal-sign-in.md)."""

import html
import re
import time
from datetime import datetime
from uuid import UUID, uuid4

import pytest
from tests.support.portal import RunningPortal
from tests.support.server import GatehouseServer
from tests.support.surfer import Surfer
from tests.support.town import Provisioned, Town

SSO = "/v1/auth/sso"


async def ended(portal: RunningPortal, surfer: Surfer) -> None:
    """Makes the token expire, as after an hour. The cookie expires later, so the browser still sends the token."""
    (cookie,) = [item for item in surfer.client.cookies.jar if item.name == "gatehouse_portal"]
    claims = await portal.host.keys.verify(str(cookie.value))
    assert (cookie.expires or 0) > claims["exp"]
    cookie.value = await portal.signed(claims, exp=int(time.time()) - 10)


async def session_of(surfer: Surfer) -> dict[str, object]:
    answer = await surfer.client.get(surfer.portal + f"{SSO}/session")
    assert answer.status_code == 200, answer.text
    body: dict[str, object] = answer.json()
    return body


# the whole way ------------------------------------------------------------------------------------------------------


async def test_an_owner_signs_in_and_lands_on_the_dashboard(
    portal: RunningPortal, new_org: Provisioned, surfer: Surfer
) -> None:
    await surfer.sign_in(new_org.owner)
    assert (surfer.page.status_code, surfer.at) == (200, "/dashboard")
    assert new_org.name in surfer.page.text
    session = await session_of(surfer)
    assert session.keys() == {"user_id", "email", "org_id", "role", "plan", "expires_at"}
    assert (session["email"], session["org_id"]) == (new_org.owner.email, str(new_org.id))
    assert (session["role"], session["plan"]) == ("admin", "enterprise")
    assert 3500 < datetime.fromisoformat(str(session["expires_at"])).timestamp() - time.time() <= 3600
    ((member_id, accepted),) = portal.sql("SELECT id, accepted_at FROM members WHERE org_id = %s", [new_org.id])
    assert (str(member_id), accepted is not None) == (session["user_id"], True)
    (row,) = portal.audit(new_org.id, "member.accepted")
    assert (row["actor_type"], row["actor_id"]) == ("member", session["user_id"])


async def test_the_cookie_is_http_only_and_same_site(org: Provisioned, surfer: Surfer) -> None:
    await surfer.to_the_platform(org.owner)
    await surfer.follow()
    (cookie,) = [c for c in surfer.page.headers.get_list("set-cookie") if c.startswith("gatehouse_portal=")]
    attributes = {part.strip().lower() for part in cookie.split(";")[1:]}
    assert {"httponly", "samesite=lax", "path=/", "max-age=43200"} <= attributes
    assert "secure" not in attributes
    assert surfer.begun == []


async def test_a_sign_in_redirects_to_the_requested_page(org: Provisioned, surfer: Surfer) -> None:
    await surfer.get("/settings")
    assert (surfer.page.status_code, surfer.page.headers["Location"]) == (303, "/login?next=%2Fsettings")
    await surfer.follow()
    assert f"{SSO}/login?redirect_uri=%2Fsettings" in surfer.page.text
    await surfer.sign_in(org.owner, path=f"{SSO}/login?redirect_uri={surfer.portal}/settings")
    assert surfer.at == "/settings"


async def test_the_cookie_contains_a_token_of_the_organization(
    portal: RunningPortal, org: Provisioned, surfer: Surfer
) -> None:
    await surfer.sign_in(org.owner)
    token = surfer.cookie()
    assert token is not None
    claims = await portal.host.keys.verify(token)
    assert (claims["sub"], claims["plan"], claims["role"]) == (str(org.id), "enterprise", "admin")
    assert claims.keys() >= {"uid", "iat", "exp", "jti"}
    client = portal.client(token)
    assert (await client.get(org.path)).status_code == 200
    # The cookie is accepted only by the pages, so that a page of another site cannot call the API with a visitor's
    # rights.
    assert (await surfer.client.get(surfer.portal + org.path)).status_code == 401


# several organizations or none -----------------------------------------------------------------------------------


async def test_a_member_of_several_organizations_chooses_one(
    town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer
) -> None:
    member_id = town.join(second_org, org.owner)
    await surfer.sign_in(org.owner)
    assert surfer.at == "/organizations"
    assert org.name in surfer.page.text
    assert surfer.cookie() is None
    partial = surfer.cookie("gatehouse_portal_arrived")
    nothing = await surfer.client.get(surfer.portal + f"{SSO}/session", headers={"Authorization": f"Bearer {partial}"})
    assert nothing.status_code == 401
    answer = await surfer.send(f"{SSO}/select-org", {"org_id": str(second_org.id)})
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body.keys() == {"token", "expires_in", "token_type", "org_id"}
    assert (body["expires_in"], body["token_type"], body["org_id"]) == (3600, "Bearer", str(second_org.id))
    session = await session_of(surfer)
    assert (session["user_id"], session["role"]) == (str(member_id), "member")
    assert surfer.cookie("gatehouse_portal_arrived") is None


async def test_a_page_leads_from_one_organization_to_another(
    town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer
) -> None:
    town.join(second_org, org.owner)
    await surfer.sign_in(org.owner)
    for item in (second_org, org):
        surfer.page = await surfer.client.post(
            surfer.portal + "/organizations", data={"org_id": str(item.id)}, headers={"Origin": surfer.portal}
        )
        await surfer.follow_all()
        assert (surfer.at, item.name in surfer.page.text) == ("/dashboard", True)
        assert "/organizations" in surfer.page.text
        await surfer.get("/organizations")


async def test_a_session_moves_to_the_organization_that_is_chosen(
    portal: RunningPortal, town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer
) -> None:
    """Otherwise a thief of a token could get another token, which the sign-out does not revoke."""
    await surfer.sign_in(org.owner)
    old = portal.client(str(surfer.cookie()))
    town.join(second_org, org.owner)
    refused = await old.post(f"{SSO}/select-org", json={"org_id": str(uuid4())})
    assert (refused.status_code, (await old.get(f"{SSO}/session")).status_code) == (403, 200)
    for item in (org, second_org):
        answer = await old.post(f"{SSO}/select-org", json={"org_id": str(item.id)})
        assert answer.status_code == 200, answer.text
        assert (await old.get(f"{SSO}/session")).status_code == 403
        old = portal.client(answer.json()["token"])


async def test_a_sign_in_redirects_to_the_requested_page_after_the_choice(
    town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer
) -> None:
    town.join(second_org, org.owner)
    for expected, at in (("/settings", "/settings"), ("/organizations", "/dashboard")):
        await surfer.sign_in(org.owner, path=f"{SSO}/login?redirect_uri={expected}")
        assert surfer.at == "/organizations"
        surfer.page = await surfer.client.post(
            surfer.portal + "/organizations", data={"org_id": str(second_org.id)}, headers={"Origin": surfer.portal}
        )
        await surfer.follow_all()
        assert surfer.at == at


async def test_an_organization_without_a_membership_cannot_be_chosen(
    town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer
) -> None:
    foreign = await town.organization()
    town.join(second_org, org.owner)
    await surfer.sign_in(org.owner)
    for org_id in (foreign.id, uuid4()):
        answer = await surfer.send(f"{SSO}/select-org", {"org_id": str(org_id)})
        assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    bad = await surfer.send(f"{SSO}/select-org", {"org_id": "x"})
    assert (bad.status_code, "org_id" in bad.json()["detail"]) == (422, True)


async def test_a_person_without_an_organization_sees_a_message(town: Town, org: Provisioned, surfer: Surfer) -> None:
    await surfer.sign_in(town.person(org))
    assert (surfer.page.status_code, surfer.at) == (200, "/invitation")
    assert "not a member of any organization" in surfer.page.text
    assert surfer.cookie() is None


async def test_an_email_address_alone_gives_no_membership(
    town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer
) -> None:
    """Another person, in another tenant, has the owner's address."""
    twin = town.person(second_org, email=org.owner.email)
    town.server.sql("UPDATE users SET is_active = false WHERE id = %s", [org.owner.id])
    await surfer.sign_in(twin)
    assert surfer.at == "/invitation"


async def test_a_cancelled_organization_is_not_offered(
    portal: RunningPortal, town: Town, org: Provisioned, surfer: Surfer
) -> None:
    cancelled_org = await town.organization()
    town.join(cancelled_org, org.owner)
    assert (await portal.admin.delete(cancelled_org.path)).status_code == 204
    await surfer.sign_in(org.owner)
    assert surfer.at == "/dashboard"


# invitations -----------------------------------------------------------------------------------------------------


async def test_an_invitation_is_accepted_after_the_sign_in(
    portal: RunningPortal, town: Town, new_org: Provisioned, surfer: Surfer
) -> None:
    person = town.person(new_org)
    token = await town.invite(new_org, person.email.upper(), "admin")
    await surfer.sign_in(person)
    await surfer.submit("/invitation", invite_token=f" {token} ")
    await surfer.follow_all()
    assert (surfer.at, new_org.name in surfer.page.text) == ("/dashboard", True)
    rows = portal.sql(
        "SELECT platform_sub, platform_tenant_id, accepted_at IS NOT NULL, invite_digest FROM members"
        " WHERE org_id = %s AND email = %s",
        [new_org.id, person.email],
    )
    assert rows == [(person.id, UUID(person.tenant_id), True, None)]
    (row,) = portal.audit(new_org.id, "member.accepted")
    assert row["resource_id"] == (await session_of(surfer))["user_id"]
    assert token not in str(row)
    # The person is now a member of the organization.
    await surfer.submit("/logout")
    await surfer.sign_in(person)
    assert surfer.at == "/dashboard"


async def test_an_invitation_is_accepted_once(town: Town, org: Provisioned, surfer: Surfer, stranger: Surfer) -> None:
    person = town.person(org)
    token = await town.invite(org, person.email)
    await surfer.sign_in(person)
    first = await surfer.send(f"{SSO}/accept-invite", {"invite_token": token})
    assert (first.status_code, first.json()["org_id"]) == (200, str(org.id))
    await stranger.sign_in(town.person(org))
    for browser in (surfer, stranger):
        await browser.get("/invitation")
        await browser.follow_all()
        answer = await browser.send(f"{SSO}/accept-invite", {"invite_token": token})
        assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


async def test_another_persons_invitation_is_refused_and_stays_valid(
    town: Town, org: Provisioned, surfer: Surfer, stranger: Surfer
) -> None:
    person = town.person(org)
    token = await town.invite(org, person.email)
    await stranger.sign_in(town.person(org))
    answer = await stranger.send(f"{SSO}/accept-invite", {"invite_token": token})
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    await stranger.submit("/invitation", invite_token=token)
    assert (stranger.page.status_code, "another address" in stranger.page.text) == (403, True)
    assert stranger.cookie() is None
    await surfer.sign_in(person)
    assert (await surfer.send(f"{SSO}/accept-invite", {"invite_token": token})).status_code == 200


@pytest.mark.parametrize("fate", ["expired", "taken back", "made up", "of a cancelled organization"])
async def test_an_expired_invitation_is_not_found(
    portal: RunningPortal, town: Town, shared_org: Provisioned, new_org: Provisioned, surfer: Surfer, fate: str
) -> None:
    org, person = new_org, town.person(shared_org)
    token = await town.invite(org, person.email)
    if fate == "expired":
        portal.sql("UPDATE members SET invite_expires_at = now() WHERE email = %s", [person.email])
    elif fate == "taken back":
        members = (await org.client.get(f"{org.path}/members")).json()
        (member_id,) = [member["id"] for member in members if member["email"] == person.email]
        assert (await org.client.delete(f"{org.path}/members/{member_id}")).status_code == 204
    elif fate == "made up":
        token = "inv_" + "x" * 43
    else:
        await portal.admin.delete(org.path)
    await surfer.sign_in(person)
    answer = await surfer.send(f"{SSO}/accept-invite", {"invite_token": token})
    assert (answer.status_code, answer.json()["error"]) == (404, "not_found")


async def test_a_member_joins_another_organization(
    town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer
) -> None:
    town.join(org, person := town.proven(org))
    token = await town.invite(second_org, person.email)
    await surfer.sign_in(person)
    assert surfer.at == "/dashboard"
    await surfer.get("/invitation")
    await surfer.follow_all()
    assert surfer.at == "/invitation"
    await surfer.submit("/invitation", invite_token=token)
    await surfer.follow_all()
    assert (surfer.at, (await session_of(surfer))["org_id"]) == ("/dashboard", str(second_org.id))


async def test_the_invitation_page_does_not_sign_users_out(
    portal: RunningPortal, town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer
) -> None:
    town.join(org, person := town.proven(org))
    await surfer.sign_in(person)
    session = str(surfer.cookie())
    await surfer.get("/invitation")
    await surfer.follow_all()
    assert (surfer.at, surfer.cookie()) == ("/invitation", session)
    assert (await surfer.get("/dashboard")).status_code == 200
    # The former session ends when another one replaces it.
    await surfer.get("/invitation")
    await surfer.follow_all()
    await surfer.submit("/invitation", invite_token=await town.invite(second_org, person.email))
    await surfer.follow_all()
    assert (surfer.at, (await session_of(surfer))["org_id"]) == ("/dashboard", str(second_org.id))
    assert (await portal.client(session).get(f"{SSO}/session")).status_code == 403


async def test_two_tabs_sign_in_at_once(town: Town, org: Provisioned, surfer: Surfer) -> None:
    town.join(org, person := town.person(org))
    await surfer.to_the_platform(person)
    first = surfer.page
    await surfer.to_the_platform(person, path=f"{SSO}/login?redirect_uri=/settings")
    second = surfer.page
    for page, target in ((first, "/dashboard"), (second, "/settings")):
        surfer.page = page
        await surfer.follow_all()
        assert (surfer.at, surfer.page.status_code) == (target, 200)
    assert surfer.begun == []


async def test_a_browser_keeps_few_unfinished_sign_ins(surfer: Surfer) -> None:
    for _ in range(9):
        await surfer.get(f"{SSO}/login")
    assert len(surfer.begun) == 5


async def test_an_unverified_address_cannot_accept_an_invitation(
    town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer, stranger: Surfer
) -> None:
    """The administrators of another organization may create an account with any address, including the invited one."""
    address = f"invited-{uuid4().hex[:8]}@example.test"
    token = await town.invite(org, address)
    twin = town.person(second_org, email=address)
    await stranger.sign_in(twin)
    answer = await stranger.send(f"{SSO}/accept-invite", {"invite_token": token})
    assert (answer.status_code, "not verified its domain" in answer.json()["detail"]) == (403, True)
    await stranger.submit("/invitation", invite_token=token)
    assert (stranger.page.status_code, "not verified its domain" in stranger.page.text) == (403, True)
    assert stranger.cookie() is None
    town.server.sql("UPDATE users SET is_active = false WHERE id = %s", [twin.id])
    await surfer.sign_in(town.person(org, email=address))
    assert (await surfer.send(f"{SSO}/accept-invite", {"invite_token": token})).status_code == 200


async def test_a_members_token_alone_cannot_accept_an_invitation(town: Town, org: Provisioned, surfer: Surfer) -> None:
    """The address of a membership may belong to another person now."""
    token = await town.invite(org, town.person(org).email)
    await surfer.sign_in(org.owner)
    answer = await surfer.client.post(
        f"{surfer.portal}{SSO}/accept-invite",
        json={"invite_token": token},
        headers={"Authorization": f"Bearer {surfer.cookie()}"},
    )
    assert (answer.status_code, "partial token" in answer.json()["detail"]) == (401, True)


async def test_one_person_has_one_membership(
    portal: RunningPortal, town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer
) -> None:
    """The person is invited again with a new address of the same account."""
    person = town.person(org)
    town.join(org, person)
    renamed = f"renamed-{uuid4().hex[:8]}@example.test"
    token = await town.invite(org, renamed)
    town.server.sql("UPDATE users SET email = %s WHERE id = %s", [renamed, person.id])
    person.email = renamed
    town.join(second_org, person)
    await surfer.sign_in(person)
    answer = await surfer.send(f"{SSO}/accept-invite", {"invite_token": token})
    assert (answer.status_code, answer.json()["error"]) == (409, "conflict")


# sessions ----------------------------------------------------------------------------------------------------------


async def test_a_refreshed_session_has_another_token_and_the_old_one_is_refused(
    portal: RunningPortal, org: Provisioned, surfer: Surfer
) -> None:
    await surfer.sign_in(org.owner)
    old = surfer.cookie()
    answer = await surfer.send(f"{SSO}/refresh")
    assert answer.status_code == 200, answer.text
    body = answer.json()
    assert body.keys() == {"token", "expires_in", "token_type", "org_id"}
    assert (body["org_id"], body["token"] != old, surfer.cookie()) == (str(org.id), True, body["token"])
    assert (await portal.client(str(old)).get(f"{SSO}/session")).status_code == 403
    # A request with a token receives no cookie.
    refreshed = await portal.client(body["token"]).post(f"{SSO}/refresh")
    assert (refreshed.status_code, "set-cookie" in refreshed.headers) == (200, False)


async def test_a_session_cannot_be_refreshed_forever(portal: RunningPortal, new_org: Provisioned) -> None:
    ((member_id,),) = portal.sql("SELECT id FROM members WHERE org_id = %s", [new_org.id])
    now = int(time.time())
    claims = {"sub": str(new_org.id), "uid": str(member_id), "role": "admin"}
    late_token = await portal.signed({**claims, "auth_time": now - 12 * 3600 + 600})
    answer = await portal.client(late_token).post(f"{SSO}/refresh")
    assert answer.status_code == 200
    assert 590 <= answer.json()["expires_in"] <= 600
    over = await portal.signed({**claims, "auth_time": now - 12 * 3600 - 1})
    answer = await portal.client(over).post(f"{SSO}/refresh")
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")


async def test_no_new_token_extends_a_sign_in_beyond_twelve_hours(
    portal: RunningPortal, town: Town, org: Provisioned, second_org: Provisioned, surfer: Surfer
) -> None:
    """This applies to a session, and to a partial sign-in."""
    member_id = town.join(org, person := town.person(org))
    now = int(time.time())
    claims = {"sub": str(org.id), "uid": str(member_id), "role": "member"}
    late_token = await portal.signed({**claims, "auth_time": now - 12 * 3600 + 600})
    chosen = await portal.client(late_token).post(f"{SSO}/select-org", json={"org_id": str(org.id)})
    assert (chosen.status_code, 590 <= chosen.json()["expires_in"] <= 600) == (200, True)
    refreshed = await portal.client(chosen.json()["token"]).post(f"{SSO}/refresh")
    assert (refreshed.status_code, refreshed.json()["expires_in"] <= 600) == (200, True)
    over = await portal.signed({**claims, "auth_time": now - 12 * 3600 - 1})
    answer = await portal.client(over).post(f"{SSO}/select-org", json={"org_id": str(org.id)})
    assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
    # The twelve hours begin when the platform confirms the sign-in.
    town.join(second_org, person)
    await surfer.sign_in(person)
    result = await portal.host.keys.verify(
        str(surfer.cookie("gatehouse_portal_arrived")), audience=f"{portal.host.settings.issuer}#arrived"
    )
    assert abs(result["auth_time"] - now) < 60


async def test_a_token_of_the_admin_key_is_not_a_session(org: Provisioned) -> None:
    session = (await org.client.get(f"{SSO}/session")).json()
    assert (session["user_id"], session["email"], session["role"]) == (None, None, "admin")
    answer = await org.client.post(f"{SSO}/select-org", json={"org_id": str(org.id)})
    assert (answer.status_code, "needs a member's token" in answer.json()["detail"]) == (403, True)


async def test_signing_out_revokes_the_token(portal: RunningPortal, new_org: Provisioned, surfer: Surfer) -> None:
    await surfer.sign_in(new_org.owner)
    token = str(surfer.cookie())
    answer = await surfer.send(f"{SSO}/logout")
    assert (answer.status_code, answer.json().keys()) == (200, {"message"})
    assert surfer.cookie() is None
    assert (await portal.client(token).get(f"{SSO}/session")).status_code == 403
    assert [row["details"]["reason"] for row in portal.audit(new_org.id, "token.revoked")] == ["signed out"]
    await surfer.get("/dashboard")
    assert surfer.page.headers["Location"] == "/login?next=%2Fdashboard"


async def test_the_page_signs_out_too(portal: RunningPortal, org: Provisioned, surfer: Surfer) -> None:
    await surfer.sign_in(org.owner)
    token = str(surfer.cookie())
    await surfer.submit("/logout")
    await surfer.follow()
    assert "You are signed out" in surfer.page.text
    assert surfer.cookie() is None
    assert (await portal.client(token).get(f"{SSO}/session")).status_code == 403


async def test_the_page_signs_out_of_a_session_that_has_ended(
    portal: RunningPortal, org: Provisioned, surfer: Surfer
) -> None:
    """Otherwise the cookie would cause a new sign-in at the platform."""
    await surfer.sign_in(org.owner)
    await ended(portal, surfer)
    await surfer.submit("/logout")
    await surfer.follow()
    assert ("You are signed out" in surfer.page.text, surfer.cookie()) == (True, None)


async def test_another_person_can_sign_in_although_the_platform_has_a_session(
    town: Town, org: Provisioned, surfer: Surfer
) -> None:
    await surfer.sign_in(town.person(org))
    assert surfer.at == "/invitation"
    (link,) = re.findall(r'href="([^"]*prompt=[^"]*)"', surfer.page.text)
    await surfer.sign_in(org.owner, path=html.unescape(link))
    assert surfer.at == "/invitation"
    assert org.owner.email in surfer.page.text
    await surfer.get("/login")
    assert "prompt=select_account" in surfer.page.text
    wrong = await surfer.client.get(f"{surfer.portal}{SSO}/login?prompt=none")
    assert (wrong.status_code, "prompt" in wrong.json()["detail"]) == (422, True)


async def test_an_ended_session_is_renewed_if_the_platform_has_a_session(
    portal: RunningPortal, org: Provisioned, surfer: Surfer
) -> None:
    await surfer.sign_in(org.owner)
    await ended(portal, surfer)
    await surfer.get("/settings")
    await surfer.follow_all()
    assert (surfer.page.status_code, surfer.at) == (200, "/settings")


async def test_an_ended_session_does_not_count_as_a_wrong_credential(
    portal: RunningPortal, org: Provisioned, surfer: Surfer
) -> None:
    """In the morning all people of an office send expired sessions from one address."""
    await surfer.sign_in(org.owner)
    await ended(portal, surfer)
    answers = [await surfer.get("/dashboard") for _ in range(70)]
    assert {(answer.status_code, answer.headers["Location"]) for answer in answers} == {
        (303, f"{SSO}/login?redirect_uri=%2Fdashboard")
    }


async def test_a_removed_members_session_ends(
    portal: RunningPortal, town: Town, org: Provisioned, surfer: Surfer
) -> None:
    person = town.person(org)
    member_id = town.join(org, person)
    await surfer.sign_in(person)
    assert surfer.at == "/dashboard"
    assert (await org.client.delete(f"{org.path}/members/{member_id}")).status_code == 204
    answer = await surfer.client.get(surfer.portal + f"{SSO}/session")
    assert (answer.status_code, answer.json()["error"]) == (403, "forbidden")
    await surfer.get("/dashboard")
    await surfer.follow()
    assert (surfer.at, "session has ended" in surfer.page.text, surfer.cookie()) == ("/login", True, None)
    await surfer.sign_in(person)
    assert surfer.at == "/invitation"


async def test_the_page_of_a_demoted_administrator_offers_no_changes(
    town: Town, org: Provisioned, surfer: Surfer
) -> None:
    person = town.person(org)
    member_id = town.join(org, person, "admin")
    town.join(org, town.person(org), "admin")
    await surfer.sign_in(person, path=f"{SSO}/login?redirect_uri=/settings")
    demoted = await org.client.put(f"{org.path}/members/{member_id}", json={"role": "member"})
    assert demoted.status_code == 200
    await surfer.submit("/settings", name="Mine")
    assert surfer.page.status_code == 403
    await surfer.get("/settings")
    assert "<form" not in surfer.page.text.replace('<form method="post" action="/logout">', "")


async def test_a_blocked_person_cannot_sign_in_again(server: GatehouseServer, org: Provisioned, surfer: Surfer) -> None:
    """The platform has blocked the person, so the next sign-in fails, which is needed after at most an hour."""
    await surfer.sign_in(org.owner)
    server.sql("UPDATE users SET is_active = false WHERE id = %s", [org.owner.id])
    await surfer.get(f"{SSO}/login")
    await surfer.follow()
    assert surfer.page.headers["Location"].startswith("/login")
