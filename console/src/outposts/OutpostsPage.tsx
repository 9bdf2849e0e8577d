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
import { outpostTexts } from "../texts/outposts";
import { DEFAULT_SORT, type Outpost, PAGE_SIZE, type Sort, useOutposts } from "./api";
import styles from "./OutpostsPage.module.css";
import { SettingsPanel } from "./SettingsPanel";

const route = getRouteApi("/outposts");
const TONES: Record<Outpost["state"], Tone> = { connected: "success", silent: "warning", unseen: "neutral", revoked: "danger" };
const CERTIFICATE_WARNING_DAYS = 14;
const DAY_MS = 86_400_000;

/** The organization's outposts. The portal registers, renews and revokes them. */
export function OutpostsPage() {
  const outposts = outpostTexts;
  const { page = 1, sort = DEFAULT_SORT } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useOutposts(page, sort);
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
              <DataTable
                label={outposts.title} columns={COLUMNS} rows={data?.outposts} rowId={({ outpost_id: id }) => id} stale={list.isPlaceholderData}
                sort={sort} onSort={(next) => void navigate({ search: { sort: next as Sort } })}
              />
              {data !== undefined && (page > 1 || data.total > PAGE_SIZE) && (
                <Pager page={page} size={PAGE_SIZE} total={data.total} onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })} />
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
    id: "id", header: outpostTexts.outpost, meta: { sort: "-seen_at" },
    cell: ({ row: { original: { outpost_id: id, seen_at: at } } }) => (
      <span className={styles["cell"]}>
        <span className={styles["id"]}><code title={id}>{id.slice(0, 8)}…</code><CopyButton text={id} label={outpostTexts.copyId(id)} /></span>
        <span className={styles["muted"]}>{at === null ? outpostTexts.noContact : <>{outpostTexts.contact} <Time at={at} as="relative" /></>}</span>
      </span>
    ),
  },
  {
    id: "state", header: outpostTexts.state, meta: { sort: "state" },
    cell: ({ row: { original: { state } } }) => <Badge tone={TONES[state]}>{outpostTexts.states[state]}</Badge>,
  },
  {
    id: "policy", header: outpostTexts.policy, meta: { hideBelow: "tablet", sort: "policy_version" },
    cell: ({ row: { original: { policy_version: version, policy_is_current: isCurrent } } }) =>
      version === null ? texts.none : `${version.toLocaleString("en")} ${isCurrent ? outpostTexts.current : outpostTexts.old}`,
  },
  {
    id: "certificate", header: outpostTexts.certificateEnds, meta: { hideBelow: "desk", sort: "certificate_ends_at" },
    cell: ({ row: { original: { certificate_ends_at: ends, certificate_serial: serial } } }) =>
      ends === null ? texts.none : (
        <span className={endsSoon(ends) ? styles["soon"] : undefined} title={outpostTexts.serial(serial ?? texts.none)}><Time at={ends} as="date" /></span>
      ),
  },
  {
    id: "records", header: outpostTexts.records, meta: { hideBelow: "tablet", align: "end", sort: "-records_stored" },
    cell: ({ row: { original: { records_stored: records, records_stored_at: at } } }) => (
      <>{wholeNumber(records)}{at !== null && <span className={styles["muted"]}> · <Time at={at} as="relative" /></span>}</>
    ),
  },
];

function endsSoon(moment: string): boolean {
  return new Date(moment).getTime() - Date.now() < CERTIFICATE_WARNING_DAYS * DAY_MS;
}
