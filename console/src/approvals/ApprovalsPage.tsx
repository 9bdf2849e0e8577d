import { getRouteApi, Link } from "@tanstack/react-router";
import { Inbox } from "lucide-react";
import type { ReactNode } from "react";
import { ACCESS_STATUSES, type AccessStatus, useAccessRequests } from "../access-requests/api";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { Segments } from "../parts/Segments";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { texts } from "../texts";
import { AccessCard } from "./AccessCard";
import { type ApprovalStatus, PAGE_SIZE, STATUSES, useApprovals } from "./api";
import { ApprovalCard } from "./ApprovalCard";
import styles from "./ApprovalsPage.module.css";

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

function HeldRequests({ status }: { status: ApprovalStatus }) {
  const { approvals } = texts;
  const { page = 1 } = route.useSearch();
  return (
    <Cards query={useApprovals(status, page)} page={page} isWaiting={status === "pending"} emptyText={approvals.emptyText}>
      {(approval) => <ApprovalCard key={approval.id} approval={approval} />}
    </Cards>
  );
}

function AccessRequests({ status }: { status: AccessStatus }) {
  const { page = 1 } = route.useSearch();
  return (
    <Cards query={useAccessRequests(status, page)} page={page} isWaiting={status === "pending"} emptyText={texts.accessRequests.noneWaitText}>
      {(request) => <AccessCard key={request.id} request={request} />}
    </Cards>
  );
}

/** A page of cards. `isWaiting`: they wait for a decision, and new ones are announced. */
function Cards<T>({ query: { data, error, refetch }, page, isWaiting, emptyText, children }: {
  query: { data: { items: T[]; total: number } | undefined; error: unknown; refetch: () => Promise<unknown> };
  page: number;
  isWaiting: boolean;
  emptyText: string;
  children: (item: T) => ReactNode;
}) {
  const { approvals } = texts;
  const navigate = route.useNavigate();
  if (error && data === undefined) return <ErrorState error={error} onRetry={() => void refetch()} />;
  if (data === undefined) {
    return <div className={styles["loading"]} role="status" aria-label={texts.loading}><Skeleton width="50%" /><Skeleton width="35%" /></div>;
  }
  if (data.items.length === 0) {
    return <EmptyState icon={Inbox} title={isWaiting ? approvals.empty : approvals.none} text={isWaiting ? emptyText : undefined} />;
  }
  return (
    <>
      <ul className={styles["list"]} aria-live={isWaiting ? "polite" : "off"}>{data.items.map(children)}</ul>
      <Pager
        page={page} size={PAGE_SIZE} total={data.total}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
      />
    </>
  );
}
