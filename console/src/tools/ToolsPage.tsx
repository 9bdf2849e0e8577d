import { getRouteApi, Link } from "@tanstack/react-router";
import { SearchX, Wrench } from "lucide-react";
import { visible } from "../mcp/difference";
import { Button } from "../parts/Button";
import { CodeTabs } from "../parts/CodeTabs";
import { FilterField } from "../parts/FilterField";
import { FilterSelect } from "../parts/fields";
import { PAGE_SIZE } from "../parts/ListPanel";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { texts } from "../texts";
import { toolTexts } from "../texts/tools";
import { type CallableTool, type ToolFilters, useCallableTools } from "./api";
import { programs } from "./programs";
import styles from "./ToolsPage.module.css";

const route = getRouteApi("/tools");

/** The name under which agents store the path of all servers. */
const ALL_NAME = "gatehouse";

/** The tools that the user may call, by server, with the lines that connect an agent. */
export function ToolsPage() {
  const { page = 1, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useCallableTools(filters, page);
  const { server, search } = filters;
  const { data } = list;
  const updateFilters = (changed: ToolFilters) => void navigate({ search: { ...filters, ...changed } });
  const clear = () => void navigate({ search: {} });
  const isFiltered = server !== undefined || search !== undefined;
  const names = [...new Set(data?.tools.map((tool) => tool.server))];
  const url = `${location.origin}/mcp${server === undefined ? "" : `/${server}`}`;
  return (
    <Page
      title={toolTexts.title}
      filterBar={data !== undefined && (data.servers.length > 0 || isFiltered) && (
        <>
          <FilterField label={toolTexts.search} placeholder={toolTexts.search} value={search} onChange={(text) => updateFilters({ search: text })} />
          <FilterSelect label={toolTexts.server} value={server ?? ""} onChange={({ target }) => updateFilters({ server: target.value || undefined })}>
            <option value="">{toolTexts.allServers}</option>
            {data.servers.map((name) => <option key={name} value={name}>{name}</option>)}
          </FilterSelect>
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      )}
    >
      <p className={styles["text"]}>{toolTexts.text}</p>
      <div className={styles["page"]}>
        {list.error && data === undefined ? (
          <Panel label={toolTexts.title}><ErrorState error={list.error} onRetry={() => void list.refetch()} /></Panel>
        ) : data === undefined ? (
          <Panel label={toolTexts.title}><div className={styles["connect"]} role="status" aria-label={texts.loading}><Skeleton width="50%" /></div></Panel>
        ) : data.servers.length === 0 ? (
          <Panel label={toolTexts.title}><EmptyState icon={Wrench} title={toolTexts.empty} text={toolTexts.emptyText} /></Panel>
        ) : (
          <>
            <Panel title={toolTexts.connect} actions={<Link to="/keys">{toolTexts.toKeys}</Link>}>
              <div className={styles["connect"]}>
                <p>{toolTexts.connectText}</p>
                <CodeTabs key={url} label={toolTexts.connect} programs={programs(url, server ?? ALL_NAME)} />
              </div>
            </Panel>
            {data.total === 0 && (
              <Panel label={toolTexts.title}>
                <EmptyState icon={SearchX} title={toolTexts.noneMatch}><Button onClick={clear}>{texts.clear}</Button></EmptyState>
              </Panel>
            )}
            {names.map((name) => <ServerTools key={name} name={name} tools={data.tools.filter((tool) => tool.server === name)} />)}
            {(page > 1 || data.total > PAGE_SIZE) && (
              <Panel label={toolTexts.pages}>
                <Pager page={page} size={PAGE_SIZE} total={data.total} onPage={(next) => void navigate({ search: { ...filters, page: next } })} />
              </Panel>
            )}
          </>
        )}
      </div>
    </Page>
  );
}

function ServerTools({ name, tools }: { name: string; tools: readonly CallableTool[] }) {
  return (
    <Panel title={name}>
      <ul className={styles["tools"]} aria-label={name}>
        {tools.map((tool) => (
          <li key={tool.name} className={styles["tool"]}>
            <code className={styles["name"]} title={tool.title ?? undefined}>{tool.name}</code>
            <span className={styles["description"]}>{tool.description === null ? toolTexts.noDescription : visible(tool.description)}</span>
          </li>
        ))}
      </ul>
    </Panel>
  );
}
