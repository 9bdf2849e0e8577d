/** Changes of the matrix that are not saved yet. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { ApiError } from "../api/errors";
import { errorText } from "../parts/states";
import { type Access, type AccessChange, type AccessRule, applyChange, type MatrixRow } from "./api";

export interface Failure {
  change: AccessChange;
  message: string;
  /** Whether the change was refused because the rule is not the one that the user saw. */
  isConflict: boolean;
}

/** The value that the user has chosen for a cell. `before` is the rule that the cell showed at that time, or null if it
 * showed none. `isRefused` is true if the API has refused the change because somebody else had changed the rule. The
 * user has then seen a message about this, so the next save replaces the current rule. */
interface Edit {
  after: Access | null;
  before: AccessRule | null;
  isRefused: boolean;
}

/** Returns the key of a cell. Group ids contain no space, so the part after the first space is the model. */
function cellOf(groupId: string, model: string): string {
  return `${groupId} ${model}`;
}

/** Holds the stored rules of the shown rows and groups, and the user's edits, which may be of other pages too. Saves the
 * edits. */
export function useAccessChanges(rows: MatrixRow[] | undefined, groupIds: string[] | undefined) {
  const client = useQueryClient();
  const [edits, setEdits] = useState<ReadonlyMap<string, Edit>>(new Map());
  const [progress, setProgress] = useState(0);
  const stored = useMemo(
    () => new Map((rows ?? []).flatMap(({ model_id: model, rules }) =>
      (groupIds ?? []).map((id) => [cellOf(id, model), rules.find(({ group_id: group }) => group === id) ?? null] as const))),
    [rows, groupIds],
  );
  const changes = useMemo(() => changesOf(edits, stored), [edits, stored]);

  const save = useMutation({
    mutationFn: async () => {
      const failures: Failure[] = [];
      setProgress(0);
      for (const [done, change] of changes.entries()) {
        try {
          await applyChange(change);
        } catch (error) {
          failures.push({ change, message: errorText(error), isConflict: isConflict(error) });
          if (failsAll(error)) {
            failures.push(...changes.slice(done + 1).map((rest) => ({ change: rest, message: errorText(error), isConflict: false })));
            break;
          }
        }
        setProgress(done + 1);
      }
      await client.invalidateQueries({ queryKey: ["groups"] });
      setEdits(new Map(failures.map(({ change, isConflict: refused }) => [
        cellOf(change.groupId, change.model),
        { after: change.after, before: change.before, isRefused: change.isRefused || refused },
      ])));
      return { saved: changes.length - failures.length, failures };
    },
  });

  const storedValue = (cell: string) => stored.get(cell)?.access_type ?? null;
  return {
    changes, save, progress,
    valueOf: (groupId: string, model: string): Access | null => {
      const cell = cellOf(groupId, model);
      const edit = edits.get(cell);
      return edit === undefined ? storedValue(cell) : edit.after;
    },
    isEdited: (groupId: string, model: string) => {
      const cell = cellOf(groupId, model);
      const edit = edits.get(cell);
      return edit !== undefined && edit.after !== storedValue(cell);
    },
    edit: (groupId: string, model: string, after: Access | null) =>
      setEdits((now) => {
        const cell = cellOf(groupId, model);
        const earlier = now.get(cell) ?? { before: stored.get(cell) ?? null, isRefused: false };
        return new Map(now).set(cell, { ...earlier, after });
      }),
    discard: () => {
      setEdits(new Map());
      save.reset();
    },
  };
}

/** Returns the edits that differ from the stored rules. `stored` contains only the shown cells. */
function changesOf(edits: ReadonlyMap<string, Edit>, stored: ReadonlyMap<string, AccessRule | null>): AccessChange[] {
  const changes: AccessChange[] = [];
  for (const [cell, { after, before, isRefused }] of edits) {
    const shown = stored.get(cell);
    const current = shown === undefined ? before : shown;
    const at = cell.indexOf(" ");
    if (after === (current?.access_type ?? null)) continue;
    changes.push({ groupId: cell.slice(0, at), model: cell.slice(at + 1), before, after, isRefused });
  }
  return changes;
}

/** Whether the stored rule is not the one that the user saw. */
function isConflict(error: unknown): boolean {
  return error instanceof ApiError && [404, 409, 412].includes(error.status);
}

/** Whether the following requests would fail too: missing permission, rate limit, server error or no connection. */
function failsAll(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 401 || error.status === 403 || error.status === 429 || error.status >= 500;
}
