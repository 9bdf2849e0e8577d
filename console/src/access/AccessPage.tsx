import { getRouteApi, Link } from "@tanstack/react-router";
import { Grid3x3, SearchX } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { useGroupNames, useGroupPage } from "../groups/api";
import { Button, buttonClass } from "../parts/Button";
import { FilterField } from "../parts/FilterField";
import { FilterSelect } from "../parts/fields";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState } from "../parts/states";
import { toast } from "../parts/toasts";
import { useUnsaved } from "../parts/unsaved";
import { texts } from "../texts";
import { accessTexts } from "../texts/access";
import { groupTexts } from "../texts/groups";
import { modelTexts } from "../texts/models";
import { PAGE_SIZE, useMatrix } from "./api";
import styles from "./AccessPage.module.css";
import { type Failure, useAccessChanges } from "./changes";
import { Matrix } from "./Matrix";

const route = getRouteApi("/access");
/** The number of groups that the table shows at a time, one in each column. */
const GROUPS_SIZE = 7;

/** A table of the rules for which groups may call which models. The user edits any number of rules and then saves them
 * together. */
export function AccessPage() {
  const access = accessTexts;
  const { administers } = useRights();
  const { search = "", group = "", ruled = false, page = 1, groups: groupsPage = 1 } = route.useSearch();
  const navigate = route.useNavigate();
  const groups = useGroupPage({ search: group || undefined }, groupsPage, GROUPS_SIZE);
  const groupIds = useMemo(() => groups.data?.groups.map(({ id }) => id), [groups.data]);
  const matrix = useMatrix(search, ruled, page, groupIds);
  const rows = matrix.data?.rows;
  const changes = useAccessChanges(rows, groupIds);
  const isFiltered = search !== "" || group !== "" || ruled;
  const shown = groups.data?.groups;
  const error = groups.error ?? matrix.error;
  const updateFilters = (changed: { search?: string | undefined; group?: string | undefined; ruled?: boolean | undefined }) =>
    void navigate({ search: ({ page: _, groups: __, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  const unsaved = changes.changes.length;
  useUnsaved(unsaved > 0);

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
      filterBar={
        <>
          <FilterField label={access.searchModels} placeholder={access.modelsPlaceholder} value={search} onChange={(value) => updateFilters({ search: value })} />
          <FilterField label={access.searchGroups} placeholder={access.groupsPlaceholder} value={group} onChange={(value) => updateFilters({ group: value })} />
          <FilterSelect label={access.shown} value={String(ruled)} onChange={({ target }) => updateFilters({ ruled: target.value === "true" || undefined })}>
            <option value="false">{access.allModels}</option>
            <option value="true">{access.ruledModels}</option>
          </FilterSelect>
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <p className={styles["text"]}>{access.text}</p>
      <Failures failures={changes.save.data?.failures ?? []} />
      <Panel label={access.title}>
        {error && (groups.data === undefined || rows === undefined) ? (
          <ErrorState error={error} onRetry={() => void Promise.all([groups.refetch(), matrix.refetch()])} />
        ) : groups.data?.total === 0 && group === "" ? (
          <EmptyState icon={Grid3x3} title={access.noGroups} text={access.noGroupsText}>
            <Link to="/groups" className={buttonClass("plain")}>{groupTexts.title}</Link>
          </EmptyState>
        ) : rows?.length === 0 || shown?.length === 0 ? (
          <EmptyState icon={SearchX} title={rows?.length === 0 ? access.noModels : access.noGroupMatches}>
            {isFiltered && <Button onClick={clear}>{texts.clear}</Button>}
          </EmptyState>
        ) : (
          <>
            <Matrix
              rows={rows} groups={shown} changes={changes} stale={matrix.isPlaceholderData}
              readOnly={!administers || changes.save.isPending}
            />
            <div className={styles["pagers"]}>
              {groups.data !== undefined && groups.data.total > GROUPS_SIZE && (
                <Pager
                  name={groupTexts.title} page={groupsPage} size={GROUPS_SIZE} total={groups.data.total}
                  onPage={(next) => void navigate({ search: (now) => ({ ...now, groups: next }) })}
                />
              )}
              {matrix.data !== undefined && (
                <Pager
                  name={modelTexts.title} page={page} size={PAGE_SIZE} total={matrix.data.total}
                  onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
                />
              )}
            </div>
          </>
        )}
      </Panel>
    </Page>
  );
}

/** The changes that could not be saved, which stay in the table. */
function Failures({ failures }: { failures: Failure[] }) {
  const access = accessTexts;
  const names = useGroupNames(failures.map(({ change }) => change.groupId));
  if (failures.length === 0) return null;
  return (
    <div className={styles["failures"]} role="alert">
      <p className={styles["failed"]}>{access.failed(failures.length)}</p>
      <ul>
        {failures.map(({ change, message }) => (
          <li key={`${change.groupId} ${change.model}`}>{access.failure(change.model, names.get(change.groupId) ?? change.groupId, message)}</li>
        ))}
      </ul>
    </div>
  );
}
