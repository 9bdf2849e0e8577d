/** Changes of the matrix that are not saved yet. */
import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useMemo, useState } from "react";
import { ApiError } from "../api/errors";
import { errorText } from "../parts/states";
import { type Access, type AccessChange, type AccessRule, applyChange } from "./api";

export interface Failure {
  change: AccessChange;
  message: string;
}

/** Names a cell. Ids of groups have a fixed length, so the rest is the model. */
function cellOf(groupId: string, model: string): string {
  return `${groupId} ${model}`;
}

/** The rules as they are and as they are edited. */
export function useAccessChanges(rules: AccessRule[] | undefined) {
  const client = useQueryClient();
  const [edits, setEdits] = useState<ReadonlyMap<string, Access | null>>(new Map());
  const [progress, setProgress] = useState(0);
  const stored = useMemo(
    () => new Map((rules ?? []).map((rule) => [cellOf(rule.group_id, rule.model_id), rule.access_type])),
    [rules],
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
          failures.push({ change, message: errorText(error) });
          if (failsAll(error)) {
            failures.push(...changes.slice(done + 1).map((rest) => ({ change: rest, message: errorText(error) })));
            break;
          }
        }
        setProgress(done + 1);
      }
      await client.invalidateQueries({ queryKey: ["groups"] });
      setEdits(new Map(failures.map(({ change }) => [cellOf(change.groupId, change.model), change.after])));
      return { saved: changes.length - failures.length, failures };
    },
  });

  return {
    changes, save, progress,
    valueOf: (groupId: string, model: string): Access | null => {
      const cell = cellOf(groupId, model);
      return edits.get(cell) ?? (edits.has(cell) ? null : (stored.get(cell) ?? null));
    },
    isEdited: (groupId: string, model: string) => {
      const cell = cellOf(groupId, model);
      return edits.has(cell) && edits.get(cell) !== (stored.get(cell) ?? null);
    },
    edit: (groupId: string, model: string, value: Access | null) => setEdits((now) => new Map(now).set(cellOf(groupId, model), value)),
    discard: () => {
      setEdits(new Map());
      save.reset();
    },
  };
}

function changesOf(edits: ReadonlyMap<string, Access | null>, stored: ReadonlyMap<string, Access>): AccessChange[] {
  const changes: AccessChange[] = [];
  for (const [cell, after] of edits) {
    const before = stored.get(cell) ?? null;
    const at = cell.indexOf(" ");
    if (after !== before) changes.push({ groupId: cell.slice(0, at), model: cell.slice(at + 1), before, after });
  }
  return changes;
}

/** Whether the calls after this one would fail, too: no right, too many calls, no connection. */
function failsAll(error: unknown): boolean {
  return !(error instanceof ApiError) || error.status === 401 || error.status === 403 || error.status === 429 || error.status >= 500;
}
