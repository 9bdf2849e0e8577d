import { getRouteApi } from "@tanstack/react-router";
import { Plus, SearchX, UsersRound } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { FilterSelect } from "../parts/fields";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { KINDS, nameOf, PAGE_SIZE, type Role, ROLES, type User, useUsers } from "./api";
import { CreateUserDialog } from "./CreateUserDialog";
import { UserActions } from "./UserActions";
import { UserDialog } from "./UserDialog";
import styles from "./UsersPage.module.css";

const route = getRouteApi("/users");

export function UsersPage() {
  const { administers } = useRights();
  const { page = 1, user: openId, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const users = useUsers(filters, page);
  const [creating, setCreating] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const { open, close } = useMemo(() => ({
    open: (user: User) => void navigate({ search: (now) => ({ ...now, user: user.id }) }),
    close: () => void navigate({ search: ({ user: _, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const filter = (changed: typeof filters) => void navigate({ search: { ...filters, ...changed } });
  const clear = () => void navigate({ search: {} });

  return (
    <Page
      title={texts.users.title}
      actions={administers && (
        <Button ref={opener} look="primary" onClick={() => setCreating(true)}><Plus aria-hidden />{texts.users.new}</Button>
      )}
      bar={
        <>
          <FilterField label={texts.users.search} placeholder={texts.users.searchPlaceholder} value={filters.search} onChange={(search) => filter({ search })} />
          <FilterSelect label={texts.users.role} value={filters.role ?? ""} onChange={({ target }) => filter({ role: (target.value || undefined) as Role | undefined })}>
            <option value="">{texts.users.anyRole}</option>
            {ROLES.map((role) => <option key={role} value={role}>{texts.roleOf(role)}</option>)}
          </FilterSelect>
          <FilterSelect
            label={texts.users.kind} value={filters.kind ?? ""}
            onChange={({ target }) => filter({ kind: KINDS.find((kind) => kind === target.value) })}
          >
            <option value="">{texts.users.anyKind}</option>
            {KINDS.map((kind) => <option key={kind} value={kind}>{texts.users.kindFilters[kind]}</option>)}
          </FilterSelect>
          <FilterSelect
            label={texts.users.status} value={filters.active === undefined ? "" : String(filters.active)}
            onChange={({ target }) => filter({ active: target.value === "" ? undefined : target.value === "true" })}
          >
            <option value="">{texts.users.anyStatus}</option>
            <option value="true">{texts.users.active}</option>
            <option value="false">{texts.users.inactive}</option>
          </FilterSelect>
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <Panel label={texts.users.title}>
        {users.error && users.data === undefined ? (
          <ErrorState error={users.error} onRetry={() => void users.refetch()} />
        ) : users.data?.total === 0 ? (
          <EmptyState icon={isFiltered ? SearchX : UsersRound} title={texts.users.noneMatch} text={texts.users.noneMatchText}>
            {isFiltered && <Button onClick={clear}>{texts.clear}</Button>}
          </EmptyState>
        ) : (
          <>
            <DataTable
              label={texts.users.title} columns={columns} rows={users.data?.items} idOf={(user) => user.id}
              selectedId={openId} onOpen={open} stale={users.isPlaceholderData}
            />
            {users.data !== undefined && (
              <Pager
                page={page} size={PAGE_SIZE} total={users.data.total}
                onPage={(next) => void navigate({ search: { ...filters, page: next } })}
              />
            )}
          </>
        )}
      </Panel>
      <UserDialog id={openId} onClose={close} />
      <CreateUserDialog open={creating} onClose={() => setCreating(false)} returnTo={opener} />
    </Page>
  );
}

function columnsOf(administers: boolean, open: (user: User) => void): Column<User>[] {
  const columns: Column<User>[] = [
    { id: "name", header: texts.users.name, meta: { width: "36%" }, cell: ({ row }) => <Person user={row.original} onOpen={open} /> },
    { id: "role", header: texts.users.role, meta: { hideBelow: "tablet" }, cell: ({ row }) => texts.roleOf(row.original.role) },
    {
      id: "status", header: texts.users.status,
      cell: ({ row }) => <Status user={row.original} />,
    },
    {
      id: "lastLogin", header: texts.users.lastLogin, meta: { hideBelow: "tablet" },
      cell: ({ row }) =>
        row.original.last_login_at === null
          ? <span className={styles["muted"]}>{texts.users.never}</span>
          : <Time at={row.original.last_login_at} as="relative" />,
    },
    { id: "created", header: texts.users.createdAt, meta: { hideBelow: "desk" }, cell: ({ row }) => <Time at={row.original.created_at} as="date" /> },
  ];
  if (administers) columns.push(actionsColumn((user) => <UserActions user={user} onOpen={() => open(user)} />));
  return columns;
}

function Status({ user }: { user: User }) {
  if (!user.is_active) return <Badge tone="neutral">{texts.users.inactive}</Badge>;
  if (user.awaits_confirmation) return <Badge tone="warning">{texts.users.unconfirmed}</Badge>;
  return <Badge tone="success">{texts.users.active}</Badge>;
}

function Person({ user, onOpen }: { user: User; onOpen: (user: User) => void }) {
  const { users } = texts;
  const name = nameOf(user);
  const detail = [user.email, user.username].filter((value) => value !== null && value !== name).join(" · ");
  return (
    <span className={styles["person"]}>
      <span className={styles["name"]} title={name}>
        <button
          type="button" className={styles["opener"]} data-open={user.id}
          aria-label={user.kind === "service" ? users.keysOf(name) : users.sessionsOf(name)} onClick={() => onOpen(user)}
        >
          {name}
        </button>
        {user.kind === "service" && <> <Badge tone="info">{texts.users.kinds.service}</Badge></>}
      </span>
      {detail !== "" && <span className={styles["muted"]} title={detail}>{detail}</span>}
    </span>
  );
}
