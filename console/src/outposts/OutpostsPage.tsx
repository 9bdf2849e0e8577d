import { getRouteApi, Link } from "@tanstack/react-router";
import { Warehouse } from "lucide-react";
import { Badge, type Tone } from "../parts/Badge";
import { CopyButton } from "../parts/Copy";
import { type Column, DataTable } from "../parts/DataTable";
import { wholeNumber } from "../parts/format";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { type Outpost, PAGE_SIZE, useOutposts } from "./api";
import styles from "./OutpostsPage.module.css";
import { SettingsPanel } from "./SettingsPanel";

const route = getRouteApi("/outposts");
const TONES: Record<Outpost["state"], Tone> = { connected: "success", silent: "warning", unseen: "neutral", revoked: "danger" };
const CERTIFICATE_WARNING_DAYS = 14;
const DAY_MS = 86_400_000;

/** The organization's outposts, the one that was seen last first. The portal registers, renews and revokes them. */
export function OutpostsPage() {
  const { outposts } = texts;
  const { page = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useOutposts(page);
  const { data } = list;
  return (
    <Page title={outposts.title}>
      <div className={styles["panels"]}>
        {data?.enabled === false && data.total > 0 && (
          <p className={styles["warning"]} role="status">{outposts.refused} <Link to="/organization">{outposts.toFlags}</Link></p>
        )}
        <Panel label={outposts.title}>
          {list.error && data === undefined ? (
            <ErrorState error={list.error} onRetry={() => void list.refetch()} />
          ) : data?.total === 0 ? (
            <EmptyState icon={Warehouse} title={outposts.empty} text={outposts.emptyText} />
          ) : (
            <>
              <DataTable label={outposts.title} columns={COLUMNS} rows={data?.outposts} idOf={({ outpost_id: id }) => id} stale={list.isPlaceholderData} />
              {data !== undefined && (page > 1 || data.total > PAGE_SIZE) && (
                <Pager page={page} size={PAGE_SIZE} total={data.total} onPage={(next) => void navigate({ search: next > 1 ? { page: next } : {} })} />
              )}
              <p className={styles["note"]}>{outposts.portal}</p>
            </>
          )}
        </Panel>
        {data !== undefined && <SettingsPanel enabled={data.enabled} />}
      </div>
    </Page>
  );
}

const COLUMNS: Column<Outpost>[] = [
  {
    id: "id", header: texts.outposts.outpost,
    cell: ({ row: { original: { outpost_id: id, seen_at: at } } }) => (
      <span className={styles["cell"]}>
        <span className={styles["id"]}><code title={id}>{id.slice(0, 8)}…</code><CopyButton text={id} label={texts.outposts.copyId(id)} /></span>
        <span className={styles["muted"]}>{at === null ? texts.outposts.noContact : <>{texts.outposts.contact} <Time at={at} as="relative" /></>}</span>
      </span>
    ),
  },
  {
    id: "state", header: texts.outposts.state,
    cell: ({ row: { original: { state } } }) => <Badge tone={TONES[state]}>{texts.outposts.states[state]}</Badge>,
  },
  {
    id: "policy", header: texts.outposts.policy, meta: { hideBelow: "tablet" },
    cell: ({ row: { original: { policy_version: version, policy_is_current: isCurrent } } }) =>
      version === null ? texts.none : `${version.toLocaleString("en")} ${isCurrent ? texts.outposts.current : texts.outposts.old}`,
  },
  {
    id: "certificate", header: texts.outposts.certificateEnds, meta: { hideBelow: "desk" },
    cell: ({ row: { original: { certificate_ends_at: ends, certificate_serial: serial } } }) =>
      ends === null ? texts.none : (
        <span className={endsSoon(ends) ? styles["soon"] : undefined} title={texts.outposts.serial(serial ?? texts.none)}><Time at={ends} as="date" /></span>
      ),
  },
  {
    id: "records", header: texts.outposts.records, meta: { hideBelow: "tablet", align: "end" },
    cell: ({ row: { original: { records_stored: records, records_stored_at: at } } }) => (
      <>{wholeNumber(records)}{at !== null && <span className={styles["muted"]}> · <Time at={at} as="relative" /></span>}</>
    ),
  },
];

function endsSoon(moment: string): boolean {
  return new Date(moment).getTime() - Date.now() < CERTIFICATE_WARNING_DAYS * DAY_MS;
}
