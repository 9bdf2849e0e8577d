import { getRouteApi } from "@tanstack/react-router";
import { Signpost } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { EnabledFilter } from "../parts/filters";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { type Editor, EnabledBadge, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState } from "../parts/states";
import { Time } from "../parts/Time";
import { RowFailure, useOpenRow } from "../parts/useOpenRow";
import { texts } from "../texts";
import { aliasTexts } from "../texts/aliases";
import { type AliasFilters, type ModelAlias, type Sort, useAlias, useAliasPage, useDeleteAlias, useSetAliasEnabled } from "./api";
import { AliasForm } from "./AliasForm";
import { ComparisonDialog } from "./ComparisonDialog";

const route = getRouteApi("/model-aliases");
const creation: Editor = (close) => <AliasForm onDone={close} />;

/** The model aliases, with the comparison of their deployments. */
export function AliasesPage() {
  const { administers } = useRights();
  const { page = 1, sort = "name", alias: openId, compared = "day", ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useAliasPage(filters, sort, page);
  const { open, close } = useMemo(() => ({
    open: (alias: ModelAlias) => void navigate({ search: (now) => ({ ...now, alias: alias.id }) }),
    close: () => void navigate({ search: ({ alias: _, compared: __, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const opened = useOpenRow(openId, list.data?.rows, useAlias);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: AliasFilters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={aliasTexts.title}
      actions={administers && <NewRuleButton label={aliasTexts.new} title={aliasTexts.newTitle} editor={creation} />}
      filterBar={
        <>
          <FilterField label={texts.rules.search} placeholder={texts.rules.searchPlaceholder} value={filters.search} onChange={(search) => updateFilters({ search })} />
          <EnabledFilter value={filters.enabled} onChange={(enabled) => updateFilters({ enabled })} />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={aliasTexts.title} list={list} columns={columns} rowId={(alias) => alias.id} page={page} sort={sort} isFiltered={isFiltered}
        onClear={clear}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as Sort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        selectedId={openId} onOpen={open}
        empty={<EmptyState icon={Signpost} title={aliasTexts.empty} text={aliasTexts.emptyText} />}
      />
      <ComparisonDialog
        alias={opened.row} period={compared} onClose={close}
        onPeriod={(period) => void navigate({ search: (now) => ({ ...now, compared: period }) })}
      />
      <RowFailure failed={opened.failed} onClose={close} />
    </Page>
  );
}

function columnsOf(administers: boolean, onOpen: (alias: ModelAlias) => void): Column<ModelAlias>[] {
  const { rules } = texts;
  const columns: Column<ModelAlias>[] = [
    {
      id: "name", header: rules.name, meta: { width: "34%", sort: "name" },
      cell: ({ row: { original } }) => (
        <RuleName
          name={original.name} hint={original.description ?? original.name} detail={original.deployments.map(({ provider, model_id: id }) => `${provider}/${id}`).join(", ")}
          opener={{ id: original.id, label: aliasTexts.comparisonOf(original.name), onOpen: () => onOpen(original) }}
        />
      ),
    },
    { id: "deployments", header: aliasTexts.deployments, meta: { hideBelow: "tablet" }, cell: ({ row }) => counted(row.original) },
    { id: "balance", header: aliasTexts.balance, meta: { hideBelow: "tablet", sort: "balance" }, cell: ({ row }) => aliasTexts.balances[row.original.balance] },
    { id: "status", header: rules.status, cell: ({ row }) => <EnabledBadge enabled={row.original.enabled} /> },
    { id: "changed", header: aliasTexts.changed, meta: { hideBelow: "desk", sort: "-updated_at" }, cell: ({ row }) => <Time at={row.original.updated_at} as="relative" /> },
  ];
  if (administers) columns.push(actionsColumn((alias) => <Actions alias={alias} />));
  return columns;
}

function counted({ deployments }: ModelAlias): string {
  const shadows = deployments.filter(({ role }) => role === "shadow").length;
  return aliasTexts.countOf(deployments.length - shadows, shadows);
}

function Actions({ alias }: { alias: ModelAlias }) {
  const setEnabled = useSetAliasEnabled(alias.id);
  const remove = useDeleteAlias(alias.id);
  return (
    <RuleMenu
      name={alias.name} enabled={alias.enabled} deleteText={aliasTexts.deleteText}
      editor={(close) => <AliasForm alias={alias} onDone={close} />}
      onToggle={() => setEnabled.mutateAsync(!alias.enabled)} onDelete={() => remove.mutateAsync(undefined)}
    />
  );
}
