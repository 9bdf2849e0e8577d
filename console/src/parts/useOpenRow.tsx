import { useRef } from "react";
import { texts } from "../texts";
import { Button } from "./Button";
import { Dialog, DialogActions } from "./Dialog";
import { errorText } from "./states";

interface OneRow<Row> {
  data: Row | undefined;
  error: unknown;
  refetch: () => unknown;
}

/** Returns the row that a dialog shows. If the loaded page of the list does not contain the row, `useRow` loads it.
 * While it is loading, the hook returns the last known row, so that the dialog stays open if a change moves the row to
 * another page. */
export function useOpenRow<Row extends { id: string }>(
  id: string | undefined, rows: readonly Row[] | undefined, useRow: (id: string | undefined) => OneRow<Row>,
): { row: Row | undefined; failed: OneRow<Row> | undefined } {
  const listed = rows?.find((row) => row.id === id);
  const other = useRow(rows !== undefined && listed === undefined ? id : undefined);
  const last = useRef<Row>(undefined);
  const isGone = Boolean(other.error) && listed === undefined;
  const row = isGone ? undefined : listed ?? other.data ?? (last.current?.id === id ? last.current : undefined);
  last.current = row;
  return { row, failed: isGone ? other : undefined };
}

/** A dialog that shows why the row in the URL could not be loaded. */
export function RowFailure({ failed, onClose }: { failed: OneRow<unknown> | undefined; onClose: () => void }) {
  return (
    <Dialog open={failed !== undefined} onClose={onClose} title={texts.errors.title}>
      {failed !== undefined && (
        <>
          <p role="alert">{errorText(failed.error)}</p>
          <DialogActions><Button onClick={() => void failed.refetch()}>{texts.retry}</Button></DialogActions>
        </>
      )}
    </Dialog>
  );
}
