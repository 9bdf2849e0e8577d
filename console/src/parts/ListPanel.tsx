import { SearchX } from "lucide-react";
import type { ReactNode } from "react";
import type { RowData } from "@tanstack/react-table";
import { texts } from "../texts";
import { Button } from "./Button";
import { type Column, DataTable } from "./DataTable";
import { Panel } from "./Page";
import { Pager } from "./Pager";
import { EmptyState, ErrorState } from "./states";

/** The number of rows on a page of a list. */
export const PAGE_SIZE = 50;

/** The part of a query result that a list needs. The query loads one page of rows. */
export interface ListQuery<Row> {
  data: { rows: Row[]; total: number } | undefined;
  error: Error | null;
  refetch: () => unknown;
  isPlaceholderData: boolean;
}

/** The table of a list with its pager. If loading fails, shows the error instead. If there are no rows, shows `none`
 * for a filtered list and `empty` otherwise. `maxTotal` is the number at which the server stops counting. */
export function ListPanel<Row extends RowData>({ label, list, columns, rowId, page, sort, onSort, onPage, isFiltered, onClear, none = texts.rules.noneMatch, empty, errorState, maxTotal, selectedId, onOpen }: {
  label: string;
  list: ListQuery<Row>;
  columns: Column<Row>[];
  rowId: (row: Row) => string;
  page: number;
  sort: string;
  onSort: (sort: string) => void;
  onPage: (page: number) => void;
  isFiltered: boolean;
  onClear: () => void;
  none?: string;
  empty: ReactNode;
  /** Returns what is shown for an error that the list handles itself, or undefined. */
  errorState?: (error: Error) => ReactNode;
  maxTotal?: number;
  selectedId?: string | undefined;
  onOpen?: (row: Row) => void;
}) {
  const { data, error, refetch, isPlaceholderData } = list;
  return (
    <Panel label={label}>
      {error && data === undefined ? (
        errorState?.(error) ?? <ErrorState error={error} onRetry={() => void refetch()} />
      ) : data?.total === 0 && isFiltered ? (
        <EmptyState icon={SearchX} title={none} text={texts.rules.noneMatchText}><Button onClick={onClear}>{texts.clear}</Button></EmptyState>
      ) : data?.total === 0 ? empty : (
        <>
          <DataTable
            label={label} columns={columns} rows={data?.rows} rowId={rowId} selectedId={selectedId} {...(onOpen !== undefined && { onOpen })}
            stale={isPlaceholderData} sort={sort} onSort={onSort}
          />
          {data !== undefined && (
            <Pager
              page={page} size={PAGE_SIZE} total={data.total} onPage={onPage}
              {...(maxTotal !== undefined && data.total >= maxTotal && { countedRows: data.rows.length })}
            />
          )}
        </>
      )}
    </Panel>
  );
}
