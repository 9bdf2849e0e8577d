import { SearchedFilterSelect } from "../parts/SearchedSelect";
import { texts } from "../texts";
import { mcpTexts } from "../texts/mcp";
import { useServer, useServers } from "./api";

/** Selects a server in a filter bar. If `required` is set, there is no option for all servers. */
export function ServerFilter({ value, onChange, required = false }: {
  value: string | undefined;
  onChange: (id: string | undefined) => void;
  required?: boolean;
}) {
  const server = useServer(value);
  const loading = value !== undefined && server.isPending ? { id: value, name: texts.loading } : undefined;
  return (
    <SearchedFilterSelect
      label={mcpTexts.server} value={value ?? ""} onChange={(id) => onChange(id || undefined)}
      useOptions={(search) => useServers(search, 1).data} chosen={server.data ?? loading}
    >
      {!required && <option value="">{mcpTexts.anyServer}</option>}
    </SearchedFilterSelect>
  );
}
