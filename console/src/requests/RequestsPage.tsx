import { getRouteApi } from "@tanstack/react-router";
import { Activity, SearchX, X } from "lucide-react";
import { useCallback, useMemo } from "react";
import { useUserName } from "../api/users";
import { Button } from "../parts/Button";
import { DataTable } from "../parts/DataTable";
import { FilterSelect } from "../parts/fields";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState } from "../parts/states";
import { texts } from "../texts";
import { PAGE_SIZE, type Period, type RecordFilters, type RecordStatus, STATUSES, type UsageRecord, useRecords } from "./api";
import { recordColumns } from "./columns";
import { FilterField } from "../parts/FilterField";
import { RecordDetail } from "./RecordDetail";
import styles from "./RequestsPage.module.css";

const route = getRouteApi("/requests");

/** The list of records, with one of them opened beside it. Filters, page and the open record are in the URL. */
export function RequestsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { record: openId, page = 1, period = "day", ...rest } = search;
  const filters: RecordFilters = { period, ...rest };
  const list = useRecords(filters, page);
  const records = list.data?.records;
  const isFiltered = Object.values(rest).some((value) => value !== undefined);

  const filter = (changed: Partial<RecordFilters>) => void navigate({ search: { ...rest, period, ...changed } });
  const open = useCallback(
    (record: UsageRecord) =>
      void navigate({ search: (now) => ({ ...now, record: record.id }), replace: true }),
    [navigate],
  );
  const close = useCallback(() => {
    void navigate({ search: ({ record: _, ...now }) => now, replace: true });
    document.querySelector<HTMLElement>(`[data-open="${openId}"]`)?.focus();
  }, [navigate, openId]);
  const columns = useMemo(() => recordColumns(open), [open]);
  const at = records?.findIndex((record) => record.id === openId) ?? -1;

  return (
    <div className={styles["split"]} data-open={openId !== undefined || undefined}>
      <Page
        wide
        title={texts.requests.title}
        bar={
          <>
            <FilterSelect label={texts.requests.period} value={period} onChange={({ target }) => filter({ period: target.value as Period })}>
              {Object.entries(texts.requests.periods).map(([value, name]) => <option key={value} value={value}>{name}</option>)}
            </FilterSelect>
            <FilterSelect label={texts.requests.status} value={rest.status ?? ""} onChange={({ target }) => filter({ status: (target.value || undefined) as RecordStatus | undefined })}>
              <option value="">{texts.requests.anyStatus}</option>
              {STATUSES.map((status) => <option key={status} value={status}>{texts.statusOf(status)}</option>)}
            </FilterSelect>
            <FilterField label={texts.requests.modelFilter} placeholder={texts.requests.modelPlaceholder} value={rest.model} onChange={(model) => filter({ model })} />
            <FilterField label={texts.requests.providerFilter} placeholder={texts.requests.providerPlaceholder} value={rest.provider} onChange={(provider) => filter({ provider })} />
            <FilterField label={texts.requests.requestFilter} placeholder={texts.requests.requestPlaceholder} value={rest.request} onChange={(request) => filter({ request })} />
            {rest.user !== undefined && <UserChip id={rest.user} onRemove={() => filter({ user: undefined })} />}
            {rest.key !== undefined && <Chip name={texts.requests.keyFilter} value={`${rest.key.slice(0, 8)}…`} onRemove={() => filter({ key: undefined })} />}
            {isFiltered && <Button look="quiet" size="small" onClick={() => void navigate({ search: { period } })}>{texts.clear}</Button>}
          </>
        }
      >
        <Panel label={texts.requests.title}>
          {list.error && records === undefined ? (
            <ErrorState error={list.error} onRetry={() => void list.refetch()} />
          ) : list.data?.total === 0 ? (
            isFiltered ? (
              <EmptyState icon={SearchX} title={texts.requests.noneMatch} text={texts.requests.noneMatchText}>
                <Button onClick={() => void navigate({ search: { period } })}>{texts.clear}</Button>
              </EmptyState>
            ) : (
              <EmptyState icon={Activity} title={texts.requests.empty} text={texts.requests.emptyText} />
            )
          ) : (
            <>
              <DataTable
                label={texts.requests.title} columns={columns} rows={records} idOf={(record) => record.id}
                selectedId={openId} onOpen={open} stale={list.isPlaceholderData}
              />
              {list.data !== undefined && (
                <Pager
                  page={page} size={PAGE_SIZE} total={list.data.total}
                  onPage={(next) => void navigate({ search: { ...rest, period, page: next } })}
                />
              )}
            </>
          )}
        </Panel>
      </Page>
      {openId !== undefined && (
        <RecordDetail
          key={openId}
          id={openId}
          listed={at === -1 ? undefined : records?.[at]}
          newer={records?.[at - 1]}
          older={at === -1 ? undefined : records?.[at + 1]}
          onOpen={open}
          onClose={close}
        />
      )}
    </div>
  );
}

function UserChip({ id, onRemove }: { id: string; onRemove: () => void }) {
  return <Chip name={texts.requests.userFilter} value={useUserName(id) ?? id} onRemove={onRemove} />;
}

/** An active filter that was set elsewhere, with a button that removes it. */
function Chip({ name, value, onRemove }: { name: string; value: string; onRemove: () => void }) {
  return (
    <span className={styles["chip"]}>
      {texts.requests.filtered(name, value)}
      <button type="button" aria-label={texts.requests.removeFilter(name)} onClick={onRemove}><X aria-hidden size={12} /></button>
    </span>
  );
}
