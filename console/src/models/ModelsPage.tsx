import { getRouteApi, Link } from "@tanstack/react-router";
import { Boxes, Plus } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button, buttonClass } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { Dialog } from "../parts/Dialog";
import { FilterField } from "../parts/FilterField";
import { FilterSelect } from "../parts/fields";
import { SearchedFilterSelect } from "../parts/SearchedSelect";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { EmptyState } from "../parts/states";
import { toast } from "../parts/toasts";
import { useProvider, useProviderOptions } from "../providers/api";
import { texts } from "../texts";
import { modelTexts } from "../texts/models";
import { type Model, type ModelFilters, nameOf, type Sort, useCreateModel, useModels } from "./api";
import { DiscoverButton } from "./DiscoverButton";
import { EndpointButton } from "./EndpointButton";
import { ModelActions } from "./ModelActions";
import { ModelForm, priceOf, priceSourceOf } from "./ModelForm";
import styles from "./ModelsPage.module.css";

const route = getRouteApi("/models");

/** The catalog: every model that can be called, with its price. */
export function ModelsPage() {
  const models = modelTexts;
  const { administers } = useRights();
  const { page = 1, sort = "-created_at", ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useModels(filters, page, sort);
  const [creating, setCreating] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const create = useCreateModel();
  const columns = useMemo(() => columnsOf(administers), [administers]);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: ModelFilters) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });
  const close = () => setCreating(false);

  return (
    <Page
      title={models.title}
      actions={administers && (
        <>
          <DiscoverButton />
          <EndpointButton />
          <Button ref={opener} look="primary" onClick={() => setCreating(true)}><Plus aria-hidden />{models.new}</Button>
        </>
      )}
      filterBar={<Filters filters={filters} isFiltered={isFiltered} onChange={updateFilters} onClear={clear} />}
    >
      <ListPanel
        label={models.title} list={list} columns={columns} rowId={(model) => model.id} page={page} sort={sort} isFiltered={isFiltered} onClear={clear}
        none={models.noneMatch}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as Sort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={
          <EmptyState icon={Boxes} title={models.empty} text={models.emptyText}>
            <Link to="/providers" className={buttonClass()}>{texts.navigation.providers}</Link>
          </EmptyState>
        }
      />
      <Dialog open={creating} onClose={close} returnTo={opener} title={models.newTitle} text={models.newText}>
        <ModelForm
          onCancel={close}
          onSubmit={async (body) => {
            // For a field that is not sent, the API uses the known value of the model.
            const sent = Object.fromEntries(Object.entries(body).filter(([, value]) => value !== null));
            const created = await create.mutateAsync(sent as Parameters<typeof create.mutateAsync>[0]);
            toast(models.created(nameOf(created)));
            close();
          }}
        />
      </Dialog>
    </Page>
  );
}

function Filters({ filters, isFiltered, onChange, onClear }: {
  filters: ModelFilters;
  isFiltered: boolean;
  onChange: (changed: ModelFilters) => void;
  onClear: () => void;
}) {
  const models = modelTexts;
  const provider = useProvider(filters.provider ?? "");
  return (
    <>
      <FilterField label={models.search} placeholder={models.searchPlaceholder} value={filters.search} onChange={(search) => onChange({ search })} />
      <SearchedFilterSelect
        label={models.provider} value={filters.provider ?? ""} onChange={(id) => onChange({ provider: id || undefined })}
        useOptions={useProviderOptions} chosen={provider.data}
      >
        <option value="">{models.anyProvider}</option>
      </SearchedFilterSelect>
      <FilterSelect
        label={models.status} value={filters.is_active === undefined ? "" : String(filters.is_active)}
        onChange={({ target }) => onChange({ is_active: target.value === "" ? undefined : target.value === "true" })}
      >
        <option value="">{models.anyStatus}</option>
        <option value="true">{models.active}</option>
        <option value="false">{models.inactive}</option>
      </FilterSelect>
      {isFiltered && <Button look="quiet" size="small" onClick={onClear}>{texts.clear}</Button>}
    </>
  );
}

function columnsOf(administers: boolean): Column<Model>[] {
  const models = modelTexts;
  const columns: Column<Model>[] = [
    {
      id: "name", header: models.name, meta: { width: "34%", sort: "model_id" },
      cell: ({ row: { original } }) => (
        <span className={styles["model"]}>
          <span className={styles["name"]} title={nameOf(original)}>
            {nameOf(original)}
            {original.is_default && <> <Badge tone="accent">{models.isDefault}</Badge></>}
          </span>
          <code className={styles["muted"]} title={original.model_id}>{original.provider}/{original.model_id}</code>
        </span>
      ),
    },
    {
      id: "status", header: models.status,
      cell: ({ row: { original } }) => <Badge tone={original.is_active ? "success" : "neutral"}>{original.is_active ? models.active : models.inactive}</Badge>,
    },
    { id: "access", header: models.access, meta: { hideBelow: "tablet" }, cell: ({ row }) => models.accesses[row.original.access] },
    { id: "input", header: models.inputShort, meta: { align: "end", hideBelow: "tablet", sort: "-cost_per_input_token" }, cell: ({ row }) => <Price model={row.original} cost={row.original.cost_per_input_token} /> },
    { id: "output", header: models.outputShort, meta: { align: "end", hideBelow: "tablet", sort: "-cost_per_output_token" }, cell: ({ row }) => <Price model={row.original} cost={row.original.cost_per_output_token} /> },
    {
      id: "context", header: models.contextShort, meta: { align: "end", hideBelow: "desk", sort: "-context_window" },
      cell: ({ row }) => row.original.context_window?.toLocaleString("en") ?? texts.none,
    },
  ];
  if (administers) columns.push(actionsColumn((model) => <ModelActions model={model} />));
  return columns;
}

function Price({ model, cost }: { model: Model; cost: number | null }) {
  return cost === null ? <span className={styles["muted"]}>{modelTexts.unpriced}</span> : <span title={priceSourceOf(model)}>${priceOf(cost)}</span>;
}
