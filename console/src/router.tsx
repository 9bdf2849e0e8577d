import { createRootRoute, createRoute, createRouter, lazyRouteComponent, Link } from "@tanstack/react-router";
import { MapPinOff } from "lucide-react";
import { METRICS, SORTS as ALERT_SORTS } from "./alerts/choices";
import { ALIAS_SORTS, COMPARED_PERIODS } from "./aliases/choices";
import { ACCESS_KINDS, ACCESS_STATUSES } from "./access-requests/choices";
import { SCOPE_TYPES } from "./budgets/choices";
import { FRAMEWORKS, PERIODS_DAYS, SORTS as BUNDLE_SORTS, STATES as BUNDLE_STATES } from "./compliance/choices";
import { DETECTORS } from "./dlp/detectors";
import { TYPES as FILTER_TYPES } from "./filters/choices";
import { SORTS as GROUP_SORTS } from "./groups/choices";
import type { AnalyticsPeriod } from "./overview/api";
import { buttonClass } from "./parts/Button";
import { Page } from "./parts/Page";
import { EmptyState, ErrorState } from "./parts/states";
import { STATUSES as APPROVAL_STATUSES } from "./approvals/choices";
import { OUTCOMES as CALL_OUTCOMES, SUBJECT_TYPES, TOOL_STATUSES } from "./mcp/choices";
import { ACTIONS as POLICY_ACTIONS } from "./policies/choices";
import type { Period } from "./requests/api";
import { STATUSES as RECORD_STATUSES } from "./requests/choices";
import { STATUSES as REGISTRY_STATUSES, TIERS } from "./registry/choices";
import { STRATEGIES } from "./routing/choices";
import { Shell } from "./shell/Shell";
import {
  ACCESS_SORTS, APPROVAL_SORTS, BUDGET_SORTS, CLIENT_SORTS, DLP_RULE_SORTS, FILTER_SORTS, KEY_SORTS, MODEL_SORTS, OUTPOST_SORTS, PATTERN_SORTS, POLICY_SORTS,
  PROVIDER_SORTS, RECORD_SORTS, REGISTRY_SORTS, ROUTING_SORTS, SUPPRESSION_SORTS, USER_SORTS,
} from "./sorts";
import { ALIAS_SORTS as ALIAS_SPEND_SORTS, PERIODS as SPEND_PERIODS, SORTS as SPEND_SORTS, VIEWS as SPEND_VIEWS } from "./spend/choices";
import { STATES as SWITCH_STATES } from "./switches/choices";
import { texts } from "./texts";
import type { UsagePeriod } from "./usage/api";
import { KINDS, ROLES } from "./users/choices";
import { EVENT_TYPES, SORTS as WEBHOOK_SORTS } from "./webhooks/choices";

type Search = Record<string, unknown>;

const PERIODS: readonly Period[] = ["hour", "day", "week", "month", "all", "custom"];
const USAGE_PERIODS: readonly UsagePeriod[] = ["day", "week", "month"];
const ANALYTICS_PERIODS: readonly AnalyticsPeriod[] = ["day", "week", "month"];

/** Removes undefined parameters, so that they do not appear in the URL. */
function present<T extends object>(search: T): { [Name in keyof T]?: Exclude<T[Name], undefined> } {
  return Object.fromEntries(Object.entries(search).filter(([, value]) => value !== undefined)) as never;
}

function text(value: unknown): string | undefined {
  const chosen = typeof value === "number" ? String(value) : value;
  return typeof chosen === "string" && chosen !== "" ? chosen : undefined;
}

function oneOf<T extends string>(values: readonly T[], value: unknown): T | undefined {
  return values.find((allowed) => allowed === value);
}

function flag(value: unknown): boolean | undefined {
  return typeof value === "boolean" ? value : undefined;
}

function moment(value: unknown): string | undefined {
  return typeof value === "string" && !Number.isNaN(Date.parse(value)) ? value : undefined;
}

function day(value: unknown): string | undefined {
  return typeof value === "string" && /^\d{4}-\d{2}-\d{2}$/.test(value) ? moment(value) : undefined;
}

function pageNumber(value: unknown): number | undefined {
  return typeof value === "number" && Number.isInteger(value) && value > 1 ? value : undefined;
}

function sequence(value: unknown): number | undefined {
  return typeof value === "number" && Number.isSafeInteger(value) && value > 0 ? value : undefined;
}

/** Validates the parameters that all lists have: the search text, the sort order and the page. */
function listed<Sort extends string>(search: Search, sorts: readonly Sort[]) {
  return { search: text(search["search"]), sort: oneOf(sorts, search["sort"]), page: pageNumber(search["page"]) };
}

const root = createRootRoute({
  component: Shell,
  notFoundComponent: NotFound,
  errorComponent: ({ error, reset }) => <ErrorState error={error} onRetry={reset} />,
});

const overview = createRoute({
  getParentRoute: () => root,
  path: "/",
  validateSearch: (search: Search) => present({ period: oneOf(ANALYTICS_PERIODS, search["period"]) }),
  component: lazyRouteComponent(() => import("./overview/OverviewPage"), "OverviewPage"),
});

const chat = createRoute({
  getParentRoute: () => root,
  path: "/chat",
  validateSearch: (search: Search) => present({ page: pageNumber(search["page"]), search: text(search["search"]) }),
  component: lazyRouteComponent(() => import("./chat/ChatPage"), "ChatPage"),
});

const conversation = createRoute({
  getParentRoute: () => root,
  path: "/chat/$conversationId",
  validateSearch: (search: Search) => present({ page: pageNumber(search["page"]), search: text(search["search"]) }),
  component: lazyRouteComponent(() => import("./chat/ChatPage"), "ChatPage"),
});

const dlpRules = createRoute({
  getParentRoute: () => root,
  path: "/dlp-rules",
  validateSearch: (search: Search) =>
    present({
      ...listed(search, DLP_RULE_SORTS),
      enabled: flag(search["enabled"]),
      detector: oneOf(DETECTORS, search["detector"]),
      versions: text(search["versions"]),
      version_page: pageNumber(search["version_page"]),
    }),
  component: lazyRouteComponent(() => import("./dlp/DlpRulesPage"), "DlpRulesPage"),
});

const suppressions = createRoute({
  getParentRoute: () => root,
  path: "/dlp-rules/suppressions",
  validateSearch: (search: Search) => present({ ...listed(search, SUPPRESSION_SORTS), pattern: text(search["pattern"]) }),
  component: lazyRouteComponent(() => import("./dlp/SuppressionsPage"), "SuppressionsPage"),
});

const customPatterns = createRoute({
  getParentRoute: () => root,
  path: "/dlp-rules/patterns",
  validateSearch: (search: Search) => present({ ...listed(search, PATTERN_SORTS), enabled: flag(search["enabled"]) }),
  component: lazyRouteComponent(() => import("./dlp/PatternsPage"), "PatternsPage"),
});

const dlpReplay = createRoute({
  getParentRoute: () => root,
  path: "/dlp-rules/replay",
  component: lazyRouteComponent(() => import("./dlp/ReplayPage"), "ReplayPage"),
});

const contentFilters = createRoute({
  getParentRoute: () => root,
  path: "/content-filters",
  validateSearch: (search: Search) =>
    present({ ...listed(search, FILTER_SORTS), type: oneOf(FILTER_TYPES, search["type"]), enabled: flag(search["enabled"]) }),
  component: lazyRouteComponent(() => import("./filters/FiltersPage"), "FiltersPage"),
});

const policies = createRoute({
  getParentRoute: () => root,
  path: "/policies",
  validateSearch: (search: Search) =>
    present({ ...listed(search, POLICY_SORTS), action: oneOf(POLICY_ACTIONS, search["action"]), enabled: flag(search["enabled"]) }),
  component: lazyRouteComponent(() => import("./policies/PoliciesPage"), "PoliciesPage"),
});

const keys = createRoute({
  getParentRoute: () => root,
  path: "/keys",
  validateSearch: (search: Search) =>
    present({
      ...listed(search, KEY_SORTS),
      all: search["all"] === true ? true : undefined,
      enabled: flag(search["enabled"]),
    }),
  component: lazyRouteComponent(() => import("./keys/KeysPage"), "KeysPage"),
});

const requests = createRoute({
  getParentRoute: () => root,
  path: "/requests",
  validateSearch: (search: Search) =>
    present({
      period: oneOf(PERIODS, search["period"]),
      from: moment(search["from"]),
      to: moment(search["to"]),
      model: text(search["model"]),
      provider: text(search["provider"]),
      user: text(search["user"]),
      key: text(search["key"]),
      sort: oneOf(RECORD_SORTS, search["sort"]),
      page: pageNumber(search["page"]),
      status: oneOf(RECORD_STATUSES, search["status"]),
      request: text(search["request"]),
      record: text(search["record"]),
    }),
  component: lazyRouteComponent(() => import("./requests/RequestsPage"), "RequestsPage"),
});

const users = createRoute({
  getParentRoute: () => root,
  path: "/users",
  validateSearch: (search: Search) =>
    present({
      ...listed(search, USER_SORTS),
      role: oneOf(ROLES, search["role"]),
      active: flag(search["active"]),
      kind: oneOf(KINDS, search["kind"]),
      user: text(search["user"]),
    }),
  component: lazyRouteComponent(() => import("./users/UsersPage"), "UsersPage"),
});

const switches = createRoute({
  getParentRoute: () => root,
  path: "/kill-switches",
  validateSearch: (search: Search) =>
    present({ search: text(search["search"]), state: oneOf(SWITCH_STATES, search["state"]), page: pageNumber(search["page"]) }),
  component: lazyRouteComponent(() => import("./switches/SwitchesPage"), "SwitchesPage"),
});

const approvals = createRoute({
  getParentRoute: () => root,
  path: "/approvals",
  validateSearch: (search: Search) =>
    present({
      view: oneOf(["access"], search["view"]),
      status: oneOf([...APPROVAL_STATUSES, ...ACCESS_STATUSES], search["status"]),
      sort: oneOf([...APPROVAL_SORTS, ...ACCESS_SORTS], search["sort"]),
      page: pageNumber(search["page"]),
    }),
  component: lazyRouteComponent(() => import("./approvals/ApprovalsPage"), "ApprovalsPage"),
});

const audit = createRoute({
  getParentRoute: () => root,
  path: "/audit",
  validateSearch: (search: Search) =>
    present({
      from: moment(search["from"]),
      to: moment(search["to"]),
      action: text(search["action"]),
      actor_id: text(search["actor_id"]),
      resource_id: text(search["resource_id"]),
      request_id: text(search["request_id"]),
      follow: search["follow"] === true ? true : undefined,
      event: sequence(search["event"]),
    }),
  component: lazyRouteComponent(() => import("./audit/AuditPage"), "AuditPage"),
});

const providers = createRoute({
  getParentRoute: () => root,
  path: "/providers",
  validateSearch: (search: Search) => present({ ...listed(search, PROVIDER_SORTS), enabled: flag(search["enabled"]) }),
  component: lazyRouteComponent(() => import("./providers/ProvidersPage"), "ProvidersPage"),
});

const models = createRoute({
  getParentRoute: () => root,
  path: "/models",
  validateSearch: (search: Search) =>
    present({
      ...listed(search, MODEL_SORTS),
      provider: text(search["provider"]),
      is_active: flag(search["is_active"]),
    }),
  component: lazyRouteComponent(() => import("./models/ModelsPage"), "ModelsPage"),
});

const routing = createRoute({
  getParentRoute: () => root,
  path: "/routing",
  validateSearch: (search: Search) =>
    present({
      ...listed(search, ROUTING_SORTS),
      enabled: flag(search["enabled"]),
      strategy: oneOf(STRATEGIES, search["strategy"]),
      group: text(search["group"]),
    }),
  component: lazyRouteComponent(() => import("./routing/RoutingPage"), "RoutingPage"),
});

const modelAliases = createRoute({
  getParentRoute: () => root,
  path: "/model-aliases",
  validateSearch: (search: Search) =>
    present({
      ...listed(search, ALIAS_SORTS),
      enabled: flag(search["enabled"]),
      alias: text(search["alias"]),
      compared: oneOf(COMPARED_PERIODS, search["compared"]),
    }),
  component: lazyRouteComponent(() => import("./aliases/AliasesPage"), "AliasesPage"),
});

const registry = createRoute({
  getParentRoute: () => root,
  path: "/registry",
  validateSearch: (search: Search) =>
    present({
      ...listed(search, REGISTRY_SORTS),
      provider: text(search["provider"]),
      tier: oneOf(TIERS, search["tier"]),
      status: oneOf(REGISTRY_STATUSES, search["status"]),
      entry: text(search["entry"]),
    }),
  component: lazyRouteComponent(() => import("./registry/RegistryPage"), "RegistryPage"),
});

const compliance = createRoute({
  getParentRoute: () => root,
  path: "/compliance",
  validateSearch: (search: Search) =>
    present({
      days: PERIODS_DAYS.find((days) => days === search["days"]),
      search: text(search["search"]),
      framework: oneOf(FRAMEWORKS, search["framework"]),
      state: oneOf(BUNDLE_STATES, search["state"]),
      enabled: flag(search["enabled"]),
      sort: oneOf(BUNDLE_SORTS, search["sort"]),
      page: pageNumber(search["page"]),
      bundle: text(search["bundle"]),
    }),
  component: lazyRouteComponent(() => import("./compliance/CompliancePage"), "CompliancePage"),
});

const start = createRoute({
  getParentRoute: () => root,
  path: "/start",
  component: lazyRouteComponent(() => import("./start/StartPage"), "StartPage"),
});

const security = createRoute({
  getParentRoute: () => root,
  path: "/security",
  component: lazyRouteComponent(() => import("./security/SecurityPage"), "SecurityPage"),
});

const usage = createRoute({
  getParentRoute: () => root,
  path: "/usage",
  validateSearch: (search: Search) => present({ period: oneOf(USAGE_PERIODS, search["period"]), page: pageNumber(search["page"]) }),
  component: lazyRouteComponent(() => import("./usage/UsagePage"), "UsagePage"),
});

const organization = createRoute({
  getParentRoute: () => root,
  path: "/organization",
  component: lazyRouteComponent(() => import("./organization/OrganizationPage"), "OrganizationPage"),
});

const groups = createRoute({
  getParentRoute: () => root,
  path: "/groups",
  validateSearch: (search: Search) =>
    present({
      search: text(search["search"]),
      sort: oneOf(GROUP_SORTS, search["sort"]),
      page: pageNumber(search["page"]),
      group: text(search["group"]),
      // The search and the page of the open group's members.
      member: text(search["member"]),
      members: pageNumber(search["members"]),
    }),
  component: lazyRouteComponent(() => import("./groups/GroupsPage"), "GroupsPage"),
});

const accessRequests = createRoute({
  getParentRoute: () => root,
  path: "/access-requests",
  validateSearch: (search: Search) =>
    present({
      status: oneOf(ACCESS_STATUSES, search["status"]),
      sort: oneOf(ACCESS_SORTS, search["sort"]),
      page: pageNumber(search["page"]),
      ask: oneOf(ACCESS_KINDS, search["ask"]),
      model: text(search["model"]),
    }),
  component: lazyRouteComponent(() => import("./access-requests/AccessRequestsPage"), "AccessRequestsPage"),
});

const mcpServers = createRoute({
  getParentRoute: () => root,
  path: "/mcp-servers",
  validateSearch: (search: Search) => present({ page: pageNumber(search["page"]), search: text(search["search"]), server: text(search["server"]) }),
  component: lazyRouteComponent(() => import("./mcp/ServersPage"), "ServersPage"),
});

const mcpTools = createRoute({
  getParentRoute: () => root,
  path: "/mcp-servers/tools",
  validateSearch: (search: Search) =>
    present({
      search: text(search["search"]),
      server: text(search["server"]),
      status: oneOf(TOOL_STATUSES, search["status"]),
      page: pageNumber(search["page"]),
      // The open tool and its server.
      tool: text(search["tool"]),
      of: text(search["of"]),
    }),
  component: lazyRouteComponent(() => import("./mcp/ToolsPage"), "ToolsPage"),
});

const mcpAccess = createRoute({
  getParentRoute: () => root,
  path: "/mcp-servers/access",
  validateSearch: (search: Search) =>
    present({
      server: text(search["server"]),
      search: text(search["search"]),
      subjects: oneOf(SUBJECT_TYPES, search["subjects"]),
      caller_type: oneOf(SUBJECT_TYPES, search["caller_type"]),
      caller: text(search["caller"]),
      page: pageNumber(search["page"]),
      subject_page: pageNumber(search["subject_page"]),
    }),
  component: lazyRouteComponent(() => import("./mcp/AccessPage"), "AccessPage"),
});

const mcpCalls = createRoute({
  getParentRoute: () => root,
  path: "/mcp-servers/calls",
  validateSearch: (search: Search) =>
    present({
      server: text(search["server"]),
      tool: text(search["tool"]),
      actor_id: text(search["actor_id"]),
      outcome: oneOf(CALL_OUTCOMES, search["outcome"]),
      from: moment(search["from"]),
      to: moment(search["to"]),
      event: sequence(search["event"]),
    }),
  component: lazyRouteComponent(() => import("./mcp/CallsPage"), "CallsPage"),
});

const tools = createRoute({
  getParentRoute: () => root,
  path: "/tools",
  validateSearch: (search: Search) => present({ server: text(search["server"]), search: text(search["search"]), page: pageNumber(search["page"]) }),
  component: lazyRouteComponent(() => import("./tools/ToolsPage"), "ToolsPage"),
});

const connections = createRoute({
  getParentRoute: () => root,
  path: "/connections",
  component: lazyRouteComponent(() => import("./connections/ConnectionsPage"), "ConnectionsPage"),
});

const access = createRoute({
  getParentRoute: () => root,
  path: "/access",
  validateSearch: (search: Search) =>
    present({
      search: text(search["search"]),
      group: text(search["group"]),
      ruled: search["ruled"] === true ? true : undefined,
      page: pageNumber(search["page"]),
      groups: pageNumber(search["groups"]),
    }),
  component: lazyRouteComponent(() => import("./access/AccessPage"), "AccessPage"),
});

const budgets = createRoute({
  getParentRoute: () => root,
  path: "/budgets",
  validateSearch: (search: Search) => present({ scope: oneOf(SCOPE_TYPES, search["scope"]), sort: oneOf(BUDGET_SORTS, search["sort"]), page: pageNumber(search["page"]) }),
  component: lazyRouteComponent(() => import("./budgets/BudgetsPage"), "BudgetsPage"),
});

const spend = createRoute({
  getParentRoute: () => root,
  path: "/spend",
  validateSearch: (search: Search) =>
    present({
      by: oneOf(SPEND_VIEWS, search["by"]),
      period: oneOf(SPEND_PERIODS, search["period"]),
      from: day(search["from"]),
      to: day(search["to"]),
      user: text(search["user"]),
      group: text(search["group"]),
      alias: text(search["alias"]),
      sort: oneOf([...SPEND_SORTS, ...ALIAS_SPEND_SORTS], search["sort"]),
      page: pageNumber(search["page"]),
    }),
  component: lazyRouteComponent(() => import("./spend/SpendPage"), "SpendPage"),
});

const webhooks = createRoute({
  getParentRoute: () => root,
  path: "/webhooks",
  validateSearch: (search: Search) => 
    present({
      search: text(search["search"]),
      event: oneOf(EVENT_TYPES, search["event"]),
      enabled: flag(search["enabled"]),
      sort: oneOf(WEBHOOK_SORTS, search["sort"]),
      page: pageNumber(search["page"]),
      webhook: text(search["webhook"]),
    }),
  component: lazyRouteComponent(() => import("./webhooks/WebhooksPage"), "WebhooksPage"),
});

const alerts = createRoute({
  getParentRoute: () => root,
  path: "/alerts",
  validateSearch: (search: Search) => 
    present({
      search: text(search["search"]),
      metric_type: oneOf(METRICS, search["metric_type"]),
      enabled: flag(search["enabled"]),
      sort: oneOf(ALERT_SORTS, search["sort"]),
      page: pageNumber(search["page"]),
      alert: text(search["alert"]),
      history: pageNumber(search["history"]),
    }),
  component: lazyRouteComponent(() => import("./alerts/AlertsPage"), "AlertsPage"),
});

const signIn = createRoute({
  getParentRoute: () => root,
  path: "/sign-in",
  validateSearch: (search: Search) => present({ provider: text(search["provider"]) }),
  component: lazyRouteComponent(() => import("./sign-in/SignInPage"), "SignInPage"),
});

const oauthClients = createRoute({
  getParentRoute: () => root,
  path: "/oauth-clients",
  validateSearch: (search: Search) => present({ ...listed(search, CLIENT_SORTS), enabled: flag(search["enabled"]), client: text(search["client"]) }),
  component: lazyRouteComponent(() => import("./oauth/ClientsPage"), "ClientsPage"),
});

const system = createRoute({
  getParentRoute: () => root,
  path: "/system",
  component: lazyRouteComponent(() => import("./system/SystemPage"), "SystemPage"),
});

const siem = createRoute({
  getParentRoute: () => root,
  path: "/siem",
  component: lazyRouteComponent(() => import("./siem/SiemPage"), "SiemPage"),
});

const retention = createRoute({
  getParentRoute: () => root,
  path: "/retention",
  component: lazyRouteComponent(() => import("./retention/RetentionPage"), "RetentionPage"),
});

const outposts = createRoute({
  getParentRoute: () => root,
  path: "/outposts",
  validateSearch: (search: Search) => present({ sort: oneOf(OUTPOST_SORTS, search["sort"]), page: pageNumber(search["page"]) }),
  component: lazyRouteComponent(() => import("./outposts/OutpostsPage"), "OutpostsPage"),
});

export const router = createRouter({
  routeTree: root.addChildren([
    overview, chat, conversation, requests, usage, audit, approvals, switches, dlpRules, suppressions, customPatterns, dlpReplay,
    contentFilters, policies, compliance, providers,
    models, modelAliases, routing, registry, keys, users, groups, access, budgets, spend, webhooks, alerts, organization, security, start,
    signIn, oauthClients, accessRequests, system, siem, retention, outposts,
    mcpServers, mcpTools, mcpAccess, mcpCalls, tools, connections,
  ]),
  basepath: "/console",
  defaultPreload: "intent",
});

declare module "@tanstack/react-router" {
  interface Register {
    router: typeof router;
  }
}

function NotFound() {
  return (
    <Page title={texts.errors.notFound}>
      <EmptyState icon={MapPinOff} title={texts.errors.notFound} text={texts.errors.notFoundText}>
        <Link to="/" className={buttonClass("plain")}>{texts.errors.home}</Link>
      </EmptyState>
    </Page>
  );
}
