import { getRouteApi, Link } from "@tanstack/react-router";
import { Activity, ArrowDownUp, SearchX } from "lucide-react";
import { useCallback, useMemo } from "react";
import { ApiError } from "../api/errors";
import { useRights } from "../api/queries";
import { Button, buttonClass } from "../parts/Button";
import { DataTable } from "../parts/DataTable";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState } from "../parts/states";
import { texts } from "../texts";
import { requestTexts } from "../texts/requests";
import { DEFAULT_SORT, PAGE_SIZE, type RecordFilters, type Sort, type UsageRecord, useRecords } from "./api";
import { recordColumns } from "./columns";
import { RecordDetail } from "./RecordDetail";
import { RequestFilters } from "./RequestFilters";
import styles from "./RequestsPage.module.css";

const route = getRouteApi("/requests");

/** The list of records, with one of them opened beside it. Filters, order, page and the open record are in the URL. */
export function RequestsPage() {
  const search = route.useSearch();
  const navigate = route.useNavigate();
  const { seesAll } = useRights();
  const { record: openId, page = 1, period = "day", sort, user, ...others } = search;
  // Users see only their own requests, and have no filter by user.
  const rest = seesAll ? { ...others, user } : others;
  const filters: RecordFilters = { period, ...rest };
  const list = useRecords(filters, page, PAGE_SIZE, sort);
  const records = list.data?.records;
  const isFiltered = Object.values(rest).some((value) => value !== undefined);

  const updateFilters = (changed: Partial<RecordFilters>) => void navigate({ search: { ...rest, period, sort, ...changed } });
  const clear = () => void navigate({ search: period === "custom" ? { sort } : { period, sort } });
  const order = (next?: Sort) => void navigate({ search: { ...rest, period, sort: next } });
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
        filterBar={
          <RequestFilters
            filters={filters} isFiltered={isFiltered} onChange={updateFilters}
            onClear={clear}
          />
        }
      >
        <Panel label={texts.requests.title}>
          {list.error && records === undefined ? (
            sort !== undefined && list.error instanceof ApiError && list.error.status === 400 ? (
              <EmptyState icon={ArrowDownUp} title={requestTexts.tooManyToSort} text={requestTexts.tooManyToSortText}>
                <Button onClick={() => order()}>{requestTexts.sortByTime}</Button>
              </EmptyState>
            ) : (
              <ErrorState error={list.error} onRetry={() => void list.refetch()} />
            )
          ) : list.data?.total === 0 ? (
            isFiltered ? (
              <EmptyState icon={SearchX} title={texts.requests.noneMatch} text={texts.requests.noneMatchText}>
                <Button onClick={clear}>{texts.clear}</Button>
              </EmptyState>
            ) : (
              <EmptyState icon={Activity} title={texts.requests.empty} text={texts.requests.emptyText}>
                <Link to="/start" className={buttonClass()}>{texts.overview.firstSteps}</Link>
              </EmptyState>
            )
          ) : (
            <>
              <DataTable
                label={texts.requests.title} columns={columns} rows={records} rowId={(record) => record.id}
                selectedId={openId} onOpen={open} stale={list.isPlaceholderData} sort={sort ?? DEFAULT_SORT}
                onSort={(next) => order(next as Sort)}
              />
              {list.data !== undefined && (
                <Pager
                  page={page} size={PAGE_SIZE} total={list.data.total}
                  onPage={(next) => void navigate({ search: { ...rest, period, sort, page: next } })}
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
          newer={records?.[at - 1]}
          older={at === -1 ? undefined : records?.[at + 1]}
          onOpen={open}
          onClose={close}
        />
      )}
    </div>
  );
}
