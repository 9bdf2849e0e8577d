import { Button } from "../parts/Button";
import { FilterField } from "../parts/FilterField";
import { FilterSelect } from "../parts/fields";
import { SearchFilter } from "../parts/SearchFilter";
import { TimeRange } from "../parts/TimeRange";
import { texts } from "../texts";
import { auditTexts } from "../texts/audit";
import { useActorChoices, useChosenActor } from "./actors";
import { type AuditFilters, useAuditActions } from "./api";

/** The filters of the audit log. */
export function FilterBar({ filters, isFiltered, onChange, onClear }: {
  filters: AuditFilters;
  isFiltered: boolean;
  onChange: (changed: AuditFilters) => void;
  onClear: () => void;
}) {
  const actions = useAuditActions();
  const actor = useChosenActor(filters.actor_id);
  return (
    <>
      <TimeRange fromLabel={auditTexts.from} toLabel={auditTexts.to} from={filters.from} to={filters.to} onChange={onChange} />
      <FilterSelect label={auditTexts.action} value={filters.action ?? ""} onChange={({ target }) => onChange({ action: target.value || undefined })}>
        <option value="">{auditTexts.anyAction}</option>
        {actions.data?.map(({ action }) => <option key={action} value={action}>{action}</option>)}
      </FilterSelect>
      <SearchFilter
        label={auditTexts.actor} placeholder={auditTexts.anyActor} chosen={actor} useChoices={useActorChoices}
        onChoose={(choice) => onChange({ actor_id: choice?.id })}
      />
      <FilterField label={auditTexts.resource} placeholder={auditTexts.resourcePlaceholder} value={filters.resource_id} onChange={(resource_id) => onChange({ resource_id })} />
      <FilterField label={auditTexts.request} placeholder={auditTexts.requestPlaceholder} value={filters.request_id} onChange={(request_id) => onChange({ request_id })} />
      {isFiltered && <Button look="quiet" size="small" onClick={onClear}>{texts.clear}</Button>}
    </>
  );
}
