"""Single sign-on, the whole way (reference 2, Cloud portal; decisions 8, Members and SSO session)."""


from tests.portal.with_platform.conftest import Provisioned
from tests.support.portal import RunningPortal
from tests.support.surfer import Surfer


async def test_an_owner_signs_in_and_lands_on_the_dashboard(
    portal: RunningPortal, org: Provisioned, surfer: Surfer
) -> None:
    await surfer.sign_in(org.owner)
    assert (surfer.page.status_code, surfer.at) == (200, "/dashboard")
    assert org.name in surfer.page.text
    session = await surfer.client.get(surfer.portal + "/v1/auth/sso/session")
    assert session.json() == {
        "user_id": session.json()["user_id"],
        "email": org.owner.email,
        "org_id": str(org.id),
        "role": "admin",
        "plan": "enterprise",
        "expires_at": session.json()["expires_at"],
    }
    ((accepted,),) = portal.sql("SELECT accepted_at FROM members WHERE org_id = %s", [org.id])
    assert accepted is not None
    (row,) = portal.audit(org.id, "member.accepted")
    assert (row["actor_type"], row["actor_id"]) == ("member", session.json()["user_id"])
