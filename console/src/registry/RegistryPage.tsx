import { getRouteApi } from "@tanstack/react-router";
import { ClipboardList, SearchX } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { FileButton } from "../parts/FileButton";
import { FilterField } from "../parts/FilterField";
import { FilterSelect } from "../parts/fields";
import { wholeNumber } from "../parts/format";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { type Editor, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { registryTexts } from "../texts/registry";
import {
  nameOf, PAGE_SIZE, type RegisteredModel, type RegistryFilters, type RiskTier, STATUSES, type Status, TIERS, useDeleteEntry, useInventory,
  useRegistry,
} from "./api";
import { DiscoverButton } from "./DiscoverButton";
import { EntryDialog } from "./EntryDialog";
import { EntryForm } from "./EntryForm";
import { STATUS_TONES, TIER_TONES } from "./tones";

const route = getRouteApi("/registry");
const creation: Editor = (close) => <EntryForm onDone={close} />;

/** The model registry, newest entry first, with the evidence of one of them in a dialog. */
export function RegistryPage() {
  const { rules } = texts;
  const registry = registryTexts;
  const { administers } = useRights();
  const { page = 1, entry, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useRegistry(filters, page);
  const { open, close } = useMemo(() => ({
    open: ({ id }: RegisteredModel) => void navigate({ search: (now) => ({ ...now, entry: id }) }),
    close: () => void navigate({ search: ({ entry: _, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const isFiltered = Object.keys(filters).length > 0;
  const clear = () => void navigate({ search: {} });
  return (
    <Page
      title={registry.title}
      actions={
        <>
          <FileButton file={useInventory(filters)} name="model-inventory.csv" label={registry.inventory} />
          {administers && <DiscoverButton />}
          {administers && <NewRuleButton label={registry.register} title={registry.newTitle} editor={creation} />}
        </>
      }
      bar={<Filters filters={filters} isFiltered={isFiltered} onChange={(changed) => void navigate({ search: { ...filters, ...changed } })} onClear={clear} />}
    >
      <Panel label={registry.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.total === 0 && isFiltered ? (
          <EmptyState icon={SearchX} title={rules.noneMatch} text={rules.noneMatchText}><Button onClick={clear}>{texts.clear}</Button></EmptyState>
        ) : list.data?.total === 0 ? (
          <EmptyState icon={ClipboardList} title={registry.empty} text={registry.emptyText} />
        ) : (
          <>
            <DataTable
              label={registry.title} columns={columns} rows={list.data?.models} idOf={(model) => model.id} selectedId={entry} onOpen={open}
              stale={list.isPlaceholderData}
            />
            {list.data !== undefined && (
              <Pager
                page={page} size={PAGE_SIZE} total={list.data.total}
                onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
              />
            )}
          </>
        )}
      </Panel>
      <EntryDialog id={entry} listed={list.data?.models.find(({ id }) => id === entry)} onClose={close} />
    </Page>
  );
}

function Filters({ filters, isFiltered, onChange, onClear }: {
  filters: RegistryFilters;
  isFiltered: boolean;
  onChange: (changed: RegistryFilters) => void;
  onClear: () => void;
}) {
  const { rules } = texts;
  const registry = registryTexts;
  return (
    <>
      <FilterField label={registry.search} placeholder={registry.searchPlaceholder} value={filters.search} onChange={(search) => onChange({ search })} />
      <FilterField label={registry.provider} placeholder={registry.provider} value={filters.provider} onChange={(provider) => onChange({ provider })} />
      <FilterSelect label={registry.tier} value={filters.tier ?? ""} onChange={({ target }) => onChange({ tier: (target.value || undefined) as RiskTier | undefined })}>
        <option value="">{registry.anyTier}</option>
        {TIERS.map((tier) => <option key={tier} value={tier}>{registry.tiers[tier]}</option>)}
      </FilterSelect>
      <FilterSelect label={rules.status} value={filters.status ?? ""} onChange={({ target }) => onChange({ status: (target.value || undefined) as Status | undefined })}>
        <option value="">{rules.anyStatus}</option>
        {STATUSES.map((status) => <option key={status} value={status}>{registry.statuses[status]}</option>)}
      </FilterSelect>
      {isFiltered && <Button look="quiet" size="small" onClick={onClear}>{texts.clear}</Button>}
    </>
  );
}

function columnsOf(administers: boolean, open: (model: RegisteredModel) => void): Column<RegisteredModel>[] {
  const { rules } = texts;
  const registry = registryTexts;
  const columns: Column<RegisteredModel>[] = [
    {
      id: "name", header: registry.model, meta: { width: "36%" },
      cell: ({ row: { original: model } }) => (
        <RuleName
          name={model.display_name} detail={nameOf(model)} code
          opener={{ id: model.id, label: registry.open(nameOf(model)), onOpen: () => open(model) }}
        />
      ),
    },
    { id: "tier", header: registry.tier, cell: ({ row: { original } }) => <Badge tone={TIER_TONES[original.risk_tier]}>{registry.tiersShort[original.risk_tier]}</Badge> },
    {
      id: "status", header: rules.status, meta: { hideBelow: "tablet" },
      cell: ({ row: { original } }) => <Badge tone={STATUS_TONES[original.validation_status]}>{registry.statuses[original.validation_status]}</Badge>,
    },
    { id: "owner", header: registry.owner, meta: { hideBelow: "tablet" }, cell: ({ row }) => row.original.owner ?? texts.none },
    { id: "requests", header: registry.requests, meta: { align: "end", hideBelow: "desk" }, cell: ({ row }) => wholeNumber(row.original.request_count_30d) },
    {
      id: "seen", header: registry.lastSeen, meta: { hideBelow: "desk" },
      cell: ({ row: { original: { last_seen_at: at } } }) => (at === null ? registry.never : <Time at={at} as="relative" />),
    },
  ];
  if (administers) columns.push(actionsColumn((model) => <Actions model={model} />));
  return columns;
}

function Actions({ model }: { model: RegisteredModel }) {
  const remove = useDeleteEntry(model.id);
  return (
    <RuleMenu
      name={nameOf(model)} editor={(close) => <EntryForm entry={model} onDone={close} />} deleteText={registryTexts.deleteText}
      onDelete={() => remove.mutateAsync(undefined)}
    />
  );
}
