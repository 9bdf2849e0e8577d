import { FilterSelect } from "../parts/fields";
import { mcpTexts } from "../texts/mcp";
import { useAllServers } from "./api";

/** Selects a server in a filter bar. If `required` is set, there is no option for all servers. */
export function ServerFilter({ value, onChange, required = false }: {
  value: string | undefined;
  onChange: (id: string | undefined) => void;
  required?: boolean;
}) {
  const servers = useAllServers();
  return (
    <FilterSelect label={mcpTexts.server} value={value ?? ""} onChange={({ target }) => onChange(target.value || undefined)}>
      {!required && <option value="">{mcpTexts.anyServer}</option>}
      {servers.data?.map(({ id, name }) => <option key={id} value={id}>{name}</option>)}
    </FilterSelect>
  );
}
