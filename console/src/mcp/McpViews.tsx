import { Link } from "@tanstack/react-router";
import { Segments } from "../parts/Segments";
import { mcpTexts } from "../texts/mcp";
import { useWaitingTools } from "./waiting";

const EXACT = { exact: true, includeSearch: false };

/** Links to the pages about MCP servers. `shown` is the link to mark on the page of tools, which has two links. */
export function McpViews({ shown }: { shown?: "tools" | "quarantine" }) {
  const { views } = mcpTexts;
  const waiting = useWaitingTools();
  return (
    <Segments label={views.label}>
      <Link to="/mcp-servers" activeOptions={EXACT}>{views.servers}</Link>
      <Link to="/mcp-servers/tools" search={{}} activeOptions={{ exact: true }} aria-current={shown === "tools" ? "page" : undefined}>{views.tools}</Link>
      <Link to="/mcp-servers/tools" search={{ status: "quarantined" }} activeOptions={{ exact: true }} aria-current={shown === "quarantine" ? "page" : undefined}>
        {views.quarantine(waiting ?? 0)}
      </Link>
      <Link to="/mcp-servers/access" activeOptions={EXACT}>{views.access}</Link>
      <Link to="/mcp-servers/calls" activeOptions={EXACT}>{views.calls}</Link>
    </Segments>
  );
}
