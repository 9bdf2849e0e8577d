import { useRights } from "../api/queries";
import { Button } from "../parts/Button";
import { FilterSelect } from "../parts/fields";
import { FilterField } from "../parts/FilterField";
import { ChoiceFilter } from "../parts/filters";
import { SearchFilter } from "../parts/SearchFilter";
import { TimeRange } from "../parts/TimeRange";
import { texts } from "../texts";
import { requestTexts } from "../texts/requests";
import { type Period, type RecordFilters, STATUSES } from "./api";
import { useChosenKey, useChosenUser, useKeyChoices, useModelChoices, useUserChoices } from "./choosing";

const DAY_MS = 86_400_000;

/** The filters of the list of requests. */
export function RequestFilters({ filters, isFiltered, onChange, onClear }: {
  filters: RecordFilters;
  isFiltered: boolean;
  onChange: (changed: Partial<RecordFilters>) => void;
  onClear: () => void;
}) {
  const { requests } = texts;
  const { seesAll } = useRights();
  const user = useChosenUser(filters.user);
  const key = useChosenKey(filters.key);
  return (
    <>
      <FilterSelect label={requestTexts.period} value={filters.period} onChange={({ target }) => onChange(timesOf(target.value as Period))}>
        {Object.entries(requestTexts.periods).map(([value, name]) => <option key={value} value={value}>{name}</option>)}
      </FilterSelect>
      {filters.period === "custom" && (
        <TimeRange fromLabel={requestTexts.from} toLabel={requestTexts.to} from={filters.from} to={filters.to} onChange={onChange} />
      )}
      <ChoiceFilter
        label={requests.status} any={requests.anyStatus} values={STATUSES} nameOf={texts.statusOf} value={filters.status}
        onChange={(status) => onChange({ status })}
      />
      {seesAll && (
        <SearchFilter
          label={requestTexts.user} placeholder={requestTexts.userPlaceholder} chosen={user} useChoices={useUserChoices}
          onChoose={(choice) => onChange({ user: choice?.id })}
        />
      )}
      <SearchFilter
        label={requestTexts.key} placeholder={requestTexts.keyPlaceholder} chosen={key} useChoices={useKeyChoices}
        onChoose={(choice) => onChange({ key: choice?.id })}
      />
      <SearchFilter
        label={requestTexts.model} placeholder={requestTexts.modelPlaceholder} useChoices={useModelChoices}
        chosen={filters.model === undefined ? undefined : { id: filters.model, name: filters.model }}
        onChoose={(choice) => onChange({ model: choice?.id })}
      />
      <FilterField label={requests.providerFilter} placeholder={requests.providerPlaceholder} value={filters.provider} onChange={(provider) => onChange({ provider })} />
      <FilterField label={requests.requestFilter} placeholder={requests.requestPlaceholder} value={filters.request} onChange={(request) => onChange({ request })} />
      {isFiltered && <Button look="quiet" size="small" onClick={onClear}>{texts.clear}</Button>}
    </>
  );
}

/** Returns the filters for a period. A custom period initially covers the last 24 hours. */
function timesOf(period: Period): Partial<RecordFilters> {
  if (period !== "custom") return { period, from: undefined, to: undefined };
  return { period, from: new Date(Date.now() - DAY_MS).toISOString(), to: undefined };
}
