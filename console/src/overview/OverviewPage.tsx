import { getRouteApi, Link, useNavigate } from "@tanstack/react-router";
import { Activity, Inbox } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { useAccessRequests } from "../access-requests/api";
import { useApprovals } from "../approvals/api";
import { useWaitingTools } from "../mcp/waiting";
import { buttonClass } from "../parts/Button";
import { DataTable } from "../parts/DataTable";
import { Page, Panel } from "../parts/Page";
import { Segments } from "../parts/Segments";
import { EmptyState, ErrorState } from "../parts/states";
import { type UsageRecord, useRecords } from "../requests/api";
import { recordColumns } from "../requests/columns";
import { texts } from "../texts";
import { type AnalyticsPeriod, useAnalytics } from "./api";
import { Figures } from "./Figures";
import { Models } from "./Models";
import styles from "./OverviewPage.module.css";
import { Providers } from "./Providers";
import { Series } from "./Series";

const PERIODS: readonly [AnalyticsPeriod, string][] = [
  ["day", texts.overview.today], ["week", texts.overview.week], ["month", texts.overview.month],
];
const LATEST = 8;
const DECISIONS_MS = 15_000;

const route = getRouteApi("/");

export function OverviewPage() {
  const { seesAll } = useRights();
  const { period = "day" } = route.useSearch();
  const analytics = useAnalytics(period);
  return (
    <Page
      title={texts.overview.title}
      actions={seesAll && (
        <Segments label={texts.overview.period}>
          {PERIODS.map(([value, name]) => (
            <Link key={value} to="/" search={value === "day" ? {} : { period: value }} activeOptions={{ exact: true }}>{name}</Link>
          ))}
        </Segments>
      )}
    >
      <div className={styles["page"]}>
        {seesAll && <Decisions />}
        {seesAll && <Figures analytics={analytics} period={period} when={PERIODS.find(([value]) => value === period)?.[1] ?? ""} />}
        {seesAll && <Series period={period} />}
        <div className={styles["columns"]} data-two={seesAll || undefined}>
          {seesAll && <Models analytics={analytics} />}
          <Providers />
        </div>
        <Latest />
      </div>
    </Page>
  );
}

/** Links to the requests and the tools of MCP servers that wait for a decision. Renders nothing if there are none. */
function Decisions() {
  const approvals = useApprovals("pending", 1, DECISIONS_MS);
  const accessRequests = useAccessRequests("pending", 1, DECISIONS_MS);
  const pending = approvals.data?.total ?? 0;
  const count = pending + (accessRequests.data?.total ?? 0);
  const waitingTools = useWaitingTools() ?? 0;
  return (
    <>
      {count > 0 && (
        <Link to="/approvals" search={pending === 0 ? { view: "access" } : {}} className={styles["decisions"]}>
          <Inbox aria-hidden size={16} strokeWidth={1.75} />
          {texts.overview.decisions(count)}
        </Link>
      )}
      {waitingTools > 0 && (
        <Link to="/mcp-servers/tools" search={{ status: "quarantined" }} className={styles["decisions"]}>
          <Inbox aria-hidden size={16} strokeWidth={1.75} />
          {texts.overview.waitingTools(waitingTools)}
        </Link>
      )}
    </>
  );
}

function Latest() {
  const navigate = useNavigate();
  const list = useRecords({ period: "all" }, 1, LATEST);
  const open = useMemo(
    () => (record: UsageRecord) =>
      void navigate({ to: "/requests", search: { period: "all", record: record.id } }),
    [navigate],
  );
  const columns = useMemo(() => recordColumns(open), [open]);
  const records = list.data?.records;
  return (
    <Panel
      title={texts.overview.recent}
      actions={records?.length !== 0 && <Link to="/requests" className={styles["all"]}>{texts.overview.all}</Link>}
    >
      {list.error && records === undefined ? (
        <ErrorState error={list.error} onRetry={() => void list.refetch()} />
      ) : records?.length === 0 ? (
        <EmptyState icon={Activity} title={texts.overview.noRequests} text={texts.overview.noRequestsText}>
          <Link to="/start" className={buttonClass("primary")}>{texts.overview.firstSteps}</Link>
        </EmptyState>
      ) : (
        <DataTable label={texts.overview.recent} columns={columns} rows={records} rowId={(record) => record.id} onOpen={open} />
      )}
    </Panel>
  );
}
