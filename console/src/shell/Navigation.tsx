import { Link, useRouterState } from "@tanstack/react-router";
import {
  Activity, AppWindow, Archive, BadgeCheck, BellRing, BookOpen, Boxes, Building2, Cable, ChartColumn, ChartPie, ClipboardList, Filter, Fingerprint,
  Grid3x3, Group as GroupIcon, House, Inbox, KeyRound, KeySquare, Link2, type LucideIcon, MessagesSquare, PiggyBank, Plug, PowerOff, RadioTower, Rocket,
  Route, Scale, ScrollText, Server, ShieldCheck, Signpost, UsersRound, Warehouse, Webhook, Wrench,
} from "lucide-react";
import { type ReactNode, useEffect, useRef } from "react";
import { useRights } from "../api/queries";
import { texts } from "../texts";
import styles from "./Navigation.module.css";

/** The navigation: links to the pages that the user may open, in groups. */
export function Navigation() {
  const { navigation } = texts;
  const { seesAll } = useRights();
  const list = useRef<HTMLElement>(null);
  const path = useRouterState({ select: (state) => state.location.pathname });
  // The navigation can be longer than the window.
  // Newer browsers return a promise, which an effect must not return.
  useEffect(() => {
    list.current?.querySelector("[aria-current=page]")?.scrollIntoView({ block: "nearest" });
  }, [path, seesAll]);
  return (
    <nav ref={list} className={styles["navigation"]} aria-label={navigation.label}>
      <ul className={styles["group"]}>
        <Entry to="/" icon={House} exact>{navigation.overview}</Entry>
        <Entry to="/chat" icon={MessagesSquare}>{navigation.chat}</Entry>
        <Entry to="/tools" icon={Wrench}>{navigation.tools}</Entry>
      </ul>
      <Group name={navigation.observe}>
        <Entry to="/requests" icon={Activity}>{navigation.requests}</Entry>
        <Entry to="/usage" icon={ChartColumn}>{navigation.usage}</Entry>
        {seesAll && (
          <>
            <Entry to="/audit" icon={ScrollText}>{navigation.audit}</Entry>
            <Entry to="/spend" icon={ChartPie}>{navigation.spend}</Entry>
            <Entry to="/budgets" icon={PiggyBank}>{navigation.budgets}</Entry>
          </>
        )}
      </Group>
      {seesAll && (
        <Group name={navigation.govern}>
          <Entry to="/approvals" icon={Inbox}>{navigation.approvals}</Entry>
          <Entry to="/kill-switches" icon={PowerOff}>{navigation.switches}</Entry>
          <Entry to="/dlp-rules" icon={ShieldCheck}>{navigation.dlpRules}</Entry>
          <Entry to="/content-filters" icon={Filter}>{navigation.contentFilters}</Entry>
          <Entry to="/policies" icon={Scale}>{navigation.policies}</Entry>
          <Entry to="/compliance" icon={BadgeCheck}>{navigation.compliance}</Entry>
        </Group>
      )}
      {seesAll && (
        <Group name={navigation.route}>
          <Entry to="/providers" icon={Plug}>{navigation.providers}</Entry>
          <Entry to="/models" icon={Boxes}>{navigation.models}</Entry>
          <Entry to="/model-aliases" icon={Signpost}>{navigation.modelAliases}</Entry>
          <Entry to="/routing" icon={Route}>{navigation.routing}</Entry>
          <Entry to="/mcp-servers" icon={Cable}>{navigation.mcpServers}</Entry>
          <Entry to="/registry" icon={ClipboardList}>{navigation.registry}</Entry>
        </Group>
      )}
      <Group name={navigation.access}>
        <Entry to="/keys" icon={KeyRound}>{navigation.keys}</Entry>
        <Entry to="/access-requests" icon={KeySquare}>{navigation.accessRequests}</Entry>
        <Entry to="/connections" icon={Link2}>{navigation.connections}</Entry>
        {seesAll && (
          <>
            <Entry to="/oauth-clients" icon={AppWindow}>{navigation.oauthClients}</Entry>
            <Entry to="/users" icon={UsersRound}>{navigation.users}</Entry>
            <Entry to="/groups" icon={GroupIcon}>{navigation.groups}</Entry>
            <Entry to="/access" icon={Grid3x3}>{navigation.modelAccess}</Entry>
            <Entry to="/organization" icon={Building2}>{navigation.organization}</Entry>
            <Entry to="/sign-in" icon={Fingerprint}>{navigation.signIn}</Entry>
          </>
        )}
      </Group>
      {seesAll && (
        <Group name={navigation.operate}>
          <Entry to="/alerts" icon={BellRing}>{navigation.alerts}</Entry>
          <Entry to="/webhooks" icon={Webhook}>{navigation.webhooks}</Entry>
          <Entry to="/outposts" icon={Warehouse}>{navigation.outposts}</Entry>
          <Entry to="/siem" icon={RadioTower}>{navigation.siem}</Entry>
          <Entry to="/retention" icon={Archive}>{navigation.retention}</Entry>
          <Entry to="/system" icon={Server}>{navigation.system}</Entry>
        </Group>
      )}
      <Group name={navigation.help}>
        <Entry to="/start" icon={Rocket}>{navigation.start}</Entry>
        <li>
          <a className={styles["entry"]} href="/docs"><BookOpen aria-hidden size={16} strokeWidth={1.75} />{navigation.documentation}</a>
        </li>
      </Group>
    </nav>
  );
}

function Group({ name, children }: { name: string; children: ReactNode }) {
  return (
    <>
      <h2 className={styles["name"]}>{name}</h2>
      <ul className={styles["group"]}>{children}</ul>
    </>
  );
}

function Entry({ to, icon: Icon, exact = false, children }: {
  to:
    | "/" | "/access" | "/access-requests" | "/alerts" | "/approvals" | "/audit" | "/budgets" | "/chat" | "/compliance" | "/connections"
    | "/content-filters" | "/dlp-rules" | "/groups" | "/keys" | "/kill-switches" | "/mcp-servers" | "/model-aliases" | "/models" | "/oauth-clients"
    | "/organization" | "/outposts" | "/policies" | "/providers" | "/registry" | "/requests" | "/retention" | "/routing" | "/siem" | "/sign-in"
    | "/spend" | "/start" | "/system" | "/tools" | "/usage" | "/users" | "/webhooks";
  icon: LucideIcon;
  exact?: boolean;
  children: string;
}) {
  return (
    <li>
      <Link to={to} className={styles["entry"]} activeOptions={{ exact, includeSearch: false }}>
        <Icon aria-hidden size={16} strokeWidth={1.75} />
        {children}
      </Link>
    </li>
  );
}
