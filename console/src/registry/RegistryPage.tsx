import { getRouteApi } from "@tanstack/react-router";
import { ClipboardList } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FileButton } from "../parts/FileButton";
import { FilterField } from "../parts/FilterField";
import { FilterSelect } from "../parts/fields";
import { wholeNumber } from "../parts/format";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { type Editor, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { registryTexts } from "../texts/registry";
import {
  nameOf, type RegisteredModel, type RegistryFilters, type RiskTier, type Sort, STATUSES, type Status, TIERS, useDeleteEntry, useInventory,
  useRegistry,
} from "./api";
import { DiscoverButton } from "./DiscoverButton";
import { EntryDialog } from "./EntryDialog";
import { EntryForm } from "./EntryForm";
import { STATUS_TONES, TIER_TONES } from "./tones";

const route = getRouteApi("/registry");
const creation: Editor = (close) => <EntryForm onDone={close} />;

/** The model registry. A dialog shows the evidence of the entry that the URL names. */
export function RegistryPage() {
  const registry = registryTexts;
  const { administers } = useRights();
  const { page = 1, sort = "-created_at", entry, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useRegistry(filters, sort, page);
  const { open, close } = useMemo(() => ({
    open: ({ id }: RegisteredModel) => void navigate({ search: (now) => ({ ...now, entry: id }) }),
    close: () => void navigate({ search: ({ entry: _, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: RegistryFilters) => void navigate({ search: ({ page: _, entry: __, ...now }) => ({ ...now, ...changed }) });
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
      filterBar={<Filters filters={filters} isFiltered={isFiltered} onChange={updateFilters} onClear={clear} />}
    >
      <ListPanel
        label={registry.title} list={list} columns={columns} rowId={(model) => model.id} page={page} sort={sort} isFiltered={isFiltered}
        onClear={clear} selectedId={entry} onOpen={open}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as Sort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={<EmptyState icon={ClipboardList} title={registry.empty} text={registry.emptyText} />}
      />
      <EntryDialog id={entry} listed={list.data?.rows.find(({ id }) => id === entry)} onClose={close} />
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
      id: "name", header: registry.model, meta: { width: "36%", sort: "model_id" },
      cell: ({ row: { original: model } }) => (
        <RuleName
          name={model.display_name} detail={nameOf(model)} code
          opener={{ id: model.id, label: registry.open(nameOf(model)), onOpen: () => open(model) }}
        />
      ),
    },
    { id: "tier", header: registry.tier, meta: { sort: "risk_tier" }, cell: ({ row: { original } }) => <Badge tone={TIER_TONES[original.risk_tier]}>{registry.tiersShort[original.risk_tier]}</Badge> },
    {
      id: "status", header: rules.status, meta: { hideBelow: "tablet", sort: "validation_status" },
      cell: ({ row: { original } }) => <Badge tone={STATUS_TONES[original.validation_status]}>{registry.statuses[original.validation_status]}</Badge>,
    },
    { id: "owner", header: registry.owner, meta: { hideBelow: "tablet", sort: "owner" }, cell: ({ row }) => row.original.owner ?? texts.none },
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
