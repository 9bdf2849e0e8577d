import { getRouteApi, Link } from "@tanstack/react-router";
import { Inbox } from "lucide-react";
import { AccessCard } from "../access-requests/AccessCard";
import {
  ACCESS_STATUSES, type AccessSort, type AccessStatus, DECIDED_SORTS, SORTS as ACCESS_SORTS, useAccessRequests,
} from "../access-requests/api";
import { useWaitingTools } from "../mcp/waiting";
import { FilterSelect } from "../parts/fields";
import { Page, Panel } from "../parts/Page";
import { Segments } from "../parts/Segments";
import { EmptyState } from "../parts/states";
import { accessRequestTexts } from "../texts/access-requests";
import { approvalTexts } from "../texts/approvals";
import { type ApprovalStatus, DEFAULT_SORT, PENDING_SORTS, REFRESH_MS, type Sort, SORTS, STATUSES, useApprovals } from "./api";
import { ApprovalCard } from "./ApprovalCard";
import { Cards } from "./Cards";
import { Decisions } from "./Decisions";

const route = getRouteApi("/approvals");

/** The held requests and access requests that wait for a decision, and those that were decided earlier. */
export function ApprovalsPage() {
  const approvals = approvalTexts;
  const accessRequests = accessRequestTexts;
  const { view, status = "pending", sort } = route.useSearch();
  const forAccess = view === "access";
  const names: Record<string, string> = forAccess ? accessRequests.statuses : approvals.statuses;
  return (
    <Page
      title={approvals.title}
      actions={<Views forAccess={forAccess} />}
      filterBar={
        <>
          <Segments label={approvals.status}>
            {(forAccess ? ACCESS_STATUSES : STATUSES).map((name) => (
              <Link
                key={name} to="/approvals" activeOptions={{ exact: true }}
                search={{
                  ...(forAccess && { view }), ...(name !== "pending" && { status: name }),
                  ...(sort !== undefined && sortsOf(forAccess, name).includes(sort) && { sort }),
                }}
              >
                {names[name]}
              </Link>
            ))}
          </Segments>
          <Order forAccess={forAccess} status={status} />
        </>
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

function sortsOf(forAccess: boolean, status: string): readonly (Sort | AccessSort)[] {
  return forAccess ? accessSortsOf(status) : heldSortsOf(status);
}

function heldSortsOf(status: string): readonly Sort[] {
  return status === "pending" ? PENDING_SORTS : SORTS;
}

function accessSortsOf(status: string): readonly AccessSort[] {
  return status === "pending" ? ACCESS_SORTS : DECIDED_SORTS;
}

/** The order of the held requests or of the access requests. */
function Order({ forAccess, status }: { forAccess: boolean; status: string }) {
  const { sort = DEFAULT_SORT } = route.useSearch();
  const navigate = route.useNavigate();
  const sorts = sortsOf(forAccess, status);
  const names: Record<string, string> = { ...approvalTexts.orders, ...accessRequestTexts.orders };
  return (
    <FilterSelect
      label={approvalTexts.order} value={sorts.find((name) => name === sort) ?? DEFAULT_SORT}
      onChange={({ target }) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: sorts.find((name) => name === target.value) }) })}
    >
      {sorts.map((name) => <option key={name} value={name}>{names[name]}</option>)}
    </FilterSelect>
  );
}

/** Links to the held requests, the access requests and the quarantine of tools, each with the number of pending ones. */
function Views({ forAccess }: { forAccess: boolean }) {
  const approvals = approvalTexts;
  const pending = useApprovals("pending", 1).data?.total ?? 0;
  const access = useAccessRequests("pending", 1).data?.total ?? 0;
  const tools = useWaitingTools() ?? 0;
  return (
    <Segments label={approvals.kind}>
      <Link to="/approvals" search={{}} activeOptions={{ exact: true }} aria-current={forAccess ? undefined : "page"}>{approvals.heldRequests(pending)}</Link>
      <Link to="/approvals" search={{ view: "access" }} activeOptions={{ exact: true }} aria-current={forAccess ? "page" : undefined}>{approvals.access(access)}</Link>
      <Link to="/mcp-servers/tools" search={{ status: "quarantined" }}>{approvals.tools(tools)}</Link>
    </Segments>
  );
}

function usePaging() {
  const navigate = route.useNavigate();
  return (page: number) => void navigate({ search: (now) => ({ ...now, page }) });
}

function HeldRequests({ status }: { status: ApprovalStatus }) {
  const { page = 1, sort: chosen } = route.useSearch();
  const sort = heldSortsOf(status).find((name) => name === chosen);
  return (
    <Cards
      query={useApprovals(status, page, REFRESH_MS, sort)} page={page} onPage={usePaging()} isLive={status === "pending"}
      empty={<Nothing isWaiting={status === "pending"} text={approvalTexts.emptyText} />}
    >
      {(approval) => <ApprovalCard key={approval.id} approval={approval} />}
    </Cards>
  );
}

function AccessRequests({ status }: { status: AccessStatus }) {
  const { page = 1, sort: chosen } = route.useSearch();
  const sort = accessSortsOf(status).find((name) => name === chosen);
  return (
    <Cards
      query={useAccessRequests(status, page, undefined, sort)} page={page} onPage={usePaging()} isLive={status === "pending"}
      empty={<Nothing isWaiting={status === "pending"} text={accessRequestTexts.noneWaitText} />}
    >
      {(request) => <AccessCard key={request.id} request={request}><Decisions request={request} /></AccessCard>}
    </Cards>
  );
}

function Nothing({ isWaiting, text }: { isWaiting: boolean; text: string }) {
  return <EmptyState icon={Inbox} title={isWaiting ? approvalTexts.empty : approvalTexts.none} text={isWaiting ? text : undefined} />;
}
