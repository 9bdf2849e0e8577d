import { ScrollText, SearchX } from "lucide-react";
import { type ReactNode, useMemo } from "react";
import { Button } from "../parts/Button";
import { type Column, DataTable } from "../parts/DataTable";
import { Panel } from "../parts/Page";
import { EmptyState, ErrorState } from "../parts/states";
import { RowFailure } from "../parts/useOpenRow";
import { texts } from "../texts";
import { type AuditEvent, useAuditEvent, type useAuditEvents } from "./api";
import styles from "./AuditPage.module.css";

/** A list of audit events, newest first, and the dialog of the event with the sequence `openSequence`, which need not
 * be in the loaded part of the list. `columnsOf` and `onOpen` are the same functions at each rendering. */
export function EventList({ label, list, columnsOf, openSequence, onOpen, dialogOf, empty, emptyText, older, onClear }: {
  label: string;
  list: ReturnType<typeof useAuditEvents>;
  columnsOf: (open: (event: AuditEvent) => void) => Column<AuditEvent>[];
  openSequence: number | undefined;
  /** Opens the event with this sequence, or closes the dialog. */
  onOpen: (sequence: number | undefined) => void;
  dialogOf: (event: AuditEvent | null, close: () => void) => ReactNode;
  empty: string;
  emptyText?: string;
  older: string;
  /** Removes the filters. It is set if there are any. */
  onClear: (() => void) | undefined;
}) {
  const open = useMemo(() => ({ sequence }: AuditEvent) => onOpen(sequence), [onOpen]);
  const close = () => onOpen(undefined);
  const columns = useMemo(() => columnsOf(open), [columnsOf, open]);
  const rows = list.data?.pages.flatMap((page) => page.events);
  const listed = rows?.find(({ sequence }) => sequence === openSequence);
  const other = useAuditEvent(rows !== undefined && listed === undefined ? openSequence : undefined);
  const opened = listed ?? other.data;
  return (
    <>
      <Panel label={label}>
        {list.error && rows === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : rows?.length === 0 ? (
          <EmptyState icon={onClear === undefined ? ScrollText : SearchX} title={empty} text={emptyText}>
            {onClear && <Button onClick={onClear}>{texts.clear}</Button>}
          </EmptyState>
        ) : (
          <>
            <DataTable
              label={label} columns={columns} rows={rows} rowId={(event) => event.id} selectedId={opened?.id} onOpen={open}
              stale={list.isPlaceholderData}
            />
            {list.hasNextPage && (
              <div className={styles["more"]}>
                <Button busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>{older}</Button>
              </div>
            )}
          </>
        )}
      </Panel>
      {dialogOf(opened ?? null, close)}
      <RowFailure failed={other.error !== null && opened === undefined ? other : undefined} onClose={close} />
    </>
  );
}
