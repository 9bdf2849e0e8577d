import { getRouteApi, Link, useBlocker } from "@tanstack/react-router";
import { Grid3x3, SearchX } from "lucide-react";
import { useRights } from "../api/queries";
import { useGroups } from "../groups/api";
import { useModels } from "../models/api";
import { Button, buttonClass } from "../parts/Button";
import { Dialog, DialogActions } from "../parts/Dialog";
import { FilterField } from "../parts/FilterField";
import { FilterSelect } from "../parts/fields";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState } from "../parts/states";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { fullName, type MatrixRow, PAGE_SIZE, useAccessRules, useCatalog } from "./api";
import styles from "./AccessPage.module.css";
import { type Failure, useAccessChanges } from "./changes";
import { Matrix } from "./Matrix";

const route = getRouteApi("/access");
/** Columns that are shown at once. */
const GROUPS_SIZE = 7;

/** Which groups may call which models: a table of rules that is edited in bulk and saved at once. */
export function AccessPage() {
  const { access } = texts;
  const { administers } = useRights();
  const { search = "", group = "", ruled = false, page = 1, groups: groupsPage = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const groups = useGroups();
  const rules = useAccessRules();
  const rows = useRows(search, ruled, page, rules.data?.map((rule) => rule.model_id));
  const changes = useAccessChanges(rules.data);
  const isFiltered = search !== "" || group !== "" || ruled;
  const columns = groups.data?.filter(({ name }) => name.toLowerCase().includes(group.toLowerCase()));
  const shown = columns?.slice((groupsPage - 1) * GROUPS_SIZE, groupsPage * GROUPS_SIZE);
  const error = groups.error ?? rules.error ?? rows.error;
  const filter = (changed: { search?: string | undefined; group?: string | undefined; ruled?: boolean | undefined }) =>
    void navigate({ search: ({ page: _, groups: __, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  const unsaved = changes.changes.length;

  return (
    <Page
      wide
      title={access.title}
      actions={administers && (
        <>
          {unsaved > 0 && <Button disabled={changes.save.isPending} onClick={changes.discard}>{access.discard}</Button>}
          <Button
            look="primary" disabled={unsaved === 0} busy={changes.save.isPending}
            onClick={() => changes.save.mutate(undefined, { onSuccess: ({ saved }) => saved > 0 && toast(access.saved(saved)) })}
          >
            {changes.save.isPending ? access.saving(changes.progress, unsaved) : access.save(unsaved)}
          </Button>
        </>
      )}
      bar={
        <>
          <FilterField label={access.searchModels} placeholder={access.modelsPlaceholder} value={search} onChange={(value) => filter({ search: value })} />
          <FilterField label={access.searchGroups} placeholder={access.groupsPlaceholder} value={group} onChange={(value) => filter({ group: value })} />
          <FilterSelect label={access.shown} value={String(ruled)} onChange={({ target }) => filter({ ruled: target.value === "true" || undefined })}>
            <option value="false">{access.allModels}</option>
            <option value="true">{access.ruledModels}</option>
          </FilterSelect>
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <p className={styles["text"]}>{access.text}</p>
      <Failures failures={changes.save.data?.failures ?? []} nameOf={(id) => groups.data?.find((group) => group.id === id)?.name ?? id} />
      <Panel label={access.title}>
        {error && (groups.data === undefined || rules.data === undefined || rows.items === undefined) ? (
          <ErrorState error={error} onRetry={() => void Promise.all([groups.refetch(), rules.refetch(), rows.refetch()])} />
        ) : groups.data?.length === 0 ? (
          <EmptyState icon={Grid3x3} title={access.noGroups} text={access.noGroupsText}>
            <Link to="/groups" className={buttonClass("plain")}>{texts.groups.title}</Link>
          </EmptyState>
        ) : rows.items?.length === 0 || shown?.length === 0 ? (
          <EmptyState icon={SearchX} title={rows.items?.length === 0 ? access.noModels : access.noGroupMatches}>
            {isFiltered && <Button onClick={clear}>{texts.clear}</Button>}
          </EmptyState>
        ) : (
          <>
            <Matrix
              rows={rules.data === undefined ? undefined : rows.items} groups={shown} changes={changes} stale={rows.stale}
              readOnly={!administers || changes.save.isPending}
            />
            <div className={styles["pagers"]}>
              {columns !== undefined && columns.length > GROUPS_SIZE && (
                <Pager
                  name={texts.groups.title} page={groupsPage} size={GROUPS_SIZE} total={columns.length}
                  onPage={(next) => void navigate({ search: (now) => ({ ...now, groups: next }) })}
                />
              )}
              {rows.total !== undefined && (
                <Pager
                  name={texts.models.title} page={page} size={PAGE_SIZE} total={rows.total}
                  onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
                />
              )}
            </div>
          </>
        )}
      </Panel>
      <LeaveDialog unsaved={unsaved} />
    </Page>
  );
}

/** A page of models; with `ruled` only restricted ones and those that rules name, be they in the catalog or not. */
function useRows(search: string, ruled: boolean, page: number, names: string[] | undefined) {
  const list = useModels(search === "" ? {} : { search }, page);
  const catalog = useCatalog(search, ruled);
  if (!ruled) {
    const items = list.data?.items.map((model): MatrixRow => ({ name: fullName(model), model }));
    return { items, total: list.data?.total, error: list.error, stale: list.isPlaceholderData, refetch: list.refetch };
  }
  const named = new Set(names);
  const kept = catalog.data
    ?.map((model): MatrixRow => ({ name: fullName(model), model }))
    .filter(({ name, model }) => model?.access === "restricted" || named.has(name));
  const listed = new Set(catalog.data?.map(fullName));
  const missing = [...named].filter((name) => !listed.has(name) && name.toLowerCase().includes(search.toLowerCase()));
  const all = kept && [...kept, ...missing.map((name) => ({ name, model: null }))];
  return {
    items: all?.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE), total: all?.length, error: catalog.error,
    stale: catalog.isPlaceholderData, refetch: catalog.refetch,
  };
}

/** The changes that could not be saved, which stay in the table. */
function Failures({ failures, nameOf }: { failures: Failure[]; nameOf: (groupId: string) => string }) {
  const { access } = texts;
  if (failures.length === 0) return null;
  return (
    <div className={styles["failures"]} role="alert">
      <p className={styles["failed"]}>{access.failed(failures.length)}</p>
      <ul>
        {failures.map(({ change, message }) => (
          <li key={`${change.groupId} ${change.model}`}>{access.failure(change.model, nameOf(change.groupId), message)}</li>
        ))}
      </ul>
    </div>
  );
}

/** Asks before a link leads away from unsaved changes. */
function LeaveDialog({ unsaved }: { unsaved: number }) {
  const { access } = texts;
  const blocker = useBlocker({
    shouldBlockFn: ({ current, next }) => unsaved > 0 && current.pathname !== next.pathname,
    enableBeforeUnload: () => unsaved > 0,
    withResolver: true,
  });
  return (
    <Dialog open={blocker.status === "blocked"} onClose={() => blocker.reset?.()} title={access.leaveTitle} text={access.leaveText(unsaved)}>
      <DialogActions>
        <Button onClick={() => blocker.reset?.()}>{access.stay}</Button>
        <Button look="danger" onClick={() => blocker.proceed?.()}>{access.leave}</Button>
      </DialogActions>
    </Dialog>
  );
}
