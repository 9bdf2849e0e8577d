import { getRouteApi, Link } from "@tanstack/react-router";
import { Inbox } from "lucide-react";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { Segments } from "../parts/Segments";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { texts } from "../texts";
import { PAGE_SIZE, STATUSES, useApprovals } from "./api";
import { ApprovalCard } from "./ApprovalCard";
import styles from "./ApprovalsPage.module.css";

const route = getRouteApi("/approvals");

/** The inbox of requests that wait for a person, and what was decided earlier. */
export function ApprovalsPage() {
  const { status = "pending", page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const approvals = useApprovals(status, page);
  const { data } = approvals;
  return (
    <Page
      title={texts.approvals.title}
      bar={
        <Segments label={texts.approvals.status}>
          {STATUSES.map((each) => (
            <Link key={each} to="/approvals" search={each === "pending" ? {} : { status: each }} activeOptions={{ exact: true }}>
              {texts.approvals.statuses[each]}
            </Link>
          ))}
        </Segments>
      }
    >
      <Panel label={texts.approvals.title}>
        {approvals.error && data === undefined ? (
          <ErrorState error={approvals.error} onRetry={() => void approvals.refetch()} />
        ) : data === undefined ? (
          <div className={styles["loading"]} role="status" aria-label={texts.loading}><Skeleton width="50%" /><Skeleton width="35%" /></div>
        ) : data.items.length === 0 ? (
          <EmptyState
            icon={Inbox} title={status === "pending" ? texts.approvals.empty : texts.approvals.none}
            text={status === "pending" ? texts.approvals.emptyText : undefined}
          />
        ) : (
          <>
            <ul className={styles["list"]} aria-live={status === "pending" ? "polite" : "off"}>
              {data.items.map((approval) => <ApprovalCard key={approval.id} approval={approval} />)}
            </ul>
            <Pager
              page={page} size={PAGE_SIZE} total={data.total}
              onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
            />
          </>
        )}
      </Panel>
    </Page>
  );
}
