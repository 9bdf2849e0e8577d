import { getRouteApi, Link } from "@tanstack/react-router";
import { Inbox } from "lucide-react";
import { AccessCard } from "../access-requests/AccessCard";
import { ACCESS_STATUSES, type AccessStatus, useAccessRequests } from "../access-requests/api";
import { Page, Panel } from "../parts/Page";
import { Segments } from "../parts/Segments";
import { EmptyState } from "../parts/states";
import { texts } from "../texts";
import { type ApprovalStatus, STATUSES, useApprovals } from "./api";
import { ApprovalCard } from "./ApprovalCard";
import { Cards } from "./Cards";
import { Decisions } from "./Decisions";

const route = getRouteApi("/approvals");

/** The inbox of what waits for a person, and what was decided earlier: held requests, and requests for access. */
export function ApprovalsPage() {
  const { approvals, accessRequests } = texts;
  const { view, status = "pending" } = route.useSearch();
  const forAccess = view === "access";
  const names: Record<string, string> = forAccess ? accessRequests.statuses : approvals.statuses;
  return (
    <Page
      title={approvals.title}
      actions={<Views />}
      bar={
        <Segments label={approvals.status}>
          {(forAccess ? ACCESS_STATUSES : STATUSES).map((name) => (
            <Link
              key={name} to="/approvals" search={{ ...(forAccess && { view }), ...(name !== "pending" && { status: name }) }}
              activeOptions={{ exact: true }}
            >
              {names[name]}
            </Link>
          ))}
        </Segments>
      }
    >
      <Panel label={approvals.title}>
        {forAccess
          ? <AccessRequests status={ACCESS_STATUSES.find((name) => name === status) ?? "pending"} />
          : <HeldRequests status={STATUSES.find((name) => name === status) ?? "pending"} />}
      </Panel>
    </Page>
  );
}

/** Links to the two kinds of requests, with the numbers of those that wait. */
function Views() {
  const { approvals } = texts;
  const held = useApprovals("pending", 1).data?.total ?? 0;
  const access = useAccessRequests("pending", 1).data?.total ?? 0;
  return (
    <Segments label={approvals.kind}>
      <Link to="/approvals" search={{}} activeOptions={{ exact: true }}>{approvals.held(held)}</Link>
      <Link to="/approvals" search={{ view: "access" }} activeOptions={{ exact: true }}>{approvals.access(access)}</Link>
    </Segments>
  );
}

function usePaging() {
  const navigate = route.useNavigate();
  return (page: number) => void navigate({ search: (now) => ({ ...now, page }) });
}

function HeldRequests({ status }: { status: ApprovalStatus }) {
  const { page = 1 } = route.useSearch();
  return (
    <Cards
      query={useApprovals(status, page)} page={page} onPage={usePaging()} isLive={status === "pending"}
      empty={<Nothing isWaiting={status === "pending"} text={texts.approvals.emptyText} />}
    >
      {(approval) => <ApprovalCard key={approval.id} approval={approval} />}
    </Cards>
  );
}

function AccessRequests({ status }: { status: AccessStatus }) {
  const { page = 1 } = route.useSearch();
  return (
    <Cards
      query={useAccessRequests(status, page)} page={page} onPage={usePaging()} isLive={status === "pending"}
      empty={<Nothing isWaiting={status === "pending"} text={texts.accessRequests.noneWaitText} />}
    >
      {(request) => <AccessCard key={request.id} request={request}><Decisions request={request} /></AccessCard>}
    </Cards>
  );
}

function Nothing({ isWaiting, text }: { isWaiting: boolean; text: string }) {
  return <EmptyState icon={Inbox} title={isWaiting ? texts.approvals.empty : texts.approvals.none} text={isWaiting ? text : undefined} />;
}
