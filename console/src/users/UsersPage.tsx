import { getRouteApi } from "@tanstack/react-router";
import { Plus, UsersRound } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useRights } from "../api/queries";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { FilterSelect } from "../parts/fields";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { EmptyState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { userTexts } from "../texts/users";
import { DEFAULT_SORT, KINDS, MAX_TOTAL, nameOf, type Role, ROLES, type Sort, type User, useUsers } from "./api";
import { CreateUserDialog } from "./CreateUserDialog";
import { UserActions } from "./UserActions";
import { UserDialog } from "./UserDialog";
import styles from "./UsersPage.module.css";

const route = getRouteApi("/users");

export function UsersPage() {
  const { administers } = useRights();
  const { page = 1, user: openId, sort = DEFAULT_SORT, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const users = useUsers(filters, sort, page);
  const [creating, setCreating] = useState(false);
  const opener = useRef<HTMLButtonElement>(null);
  const { open, close } = useMemo(() => ({
    open: (user: User) => void navigate({ search: (now) => ({ ...now, user: user.id }) }),
    close: () => void navigate({ search: ({ user: _, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const isFiltered = Object.values(filters).some((value) => value !== undefined);
  const updateFilters = (changed: typeof filters) => void navigate({ search: ({ page: _, user: __, ...now }) => ({ ...now, ...changed }) });
  const clear = () => void navigate({ search: {} });

  return (
    <Page
      title={userTexts.title}
      actions={administers && (
        <Button ref={opener} look="primary" onClick={() => setCreating(true)}><Plus aria-hidden />{userTexts.new}</Button>
      )}
      filterBar={
        <>
          <FilterField label={userTexts.search} placeholder={userTexts.searchPlaceholder} value={filters.search} onChange={(search) => updateFilters({ search })} />
          <FilterSelect label={userTexts.role} value={filters.role ?? ""} onChange={({ target }) => updateFilters({ role: (target.value || undefined) as Role | undefined })}>
            <option value="">{userTexts.anyRole}</option>
            {ROLES.map((role) => <option key={role} value={role}>{texts.roleOf(role)}</option>)}
          </FilterSelect>
          <FilterSelect
            label={userTexts.kind} value={filters.kind ?? ""}
            onChange={({ target }) => updateFilters({ kind: KINDS.find((kind) => kind === target.value) })}
          >
            <option value="">{userTexts.anyKind}</option>
            {KINDS.map((kind) => <option key={kind} value={kind}>{userTexts.kindFilters[kind]}</option>)}
          </FilterSelect>
          <FilterSelect
            label={userTexts.status} value={filters.active === undefined ? "" : String(filters.active)}
            onChange={({ target }) => updateFilters({ active: target.value === "" ? undefined : target.value === "true" })}
          >
            <option value="">{userTexts.anyStatus}</option>
            <option value="true">{userTexts.active}</option>
            <option value="false">{userTexts.inactive}</option>
          </FilterSelect>
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={userTexts.title} list={users} columns={columns} rowId={(user) => user.id} page={page} sort={sort} maxTotal={MAX_TOTAL}
        isFiltered={isFiltered} onClear={clear} none={userTexts.noneMatch} selectedId={openId} onOpen={open}
        onSort={(next) => void navigate({ search: { ...filters, sort: next as Sort } })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={<EmptyState icon={UsersRound} title={userTexts.noneMatch} text={userTexts.noneMatchText} />}
      />
      <UserDialog id={openId} onClose={close} />
      <CreateUserDialog open={creating} onClose={() => setCreating(false)} returnTo={opener} />
    </Page>
  );
}

function columnsOf(administers: boolean, open: (user: User) => void): Column<User>[] {
  const columns: Column<User>[] = [
    { id: "name", header: userTexts.name, meta: { width: "36%", sort: "name" }, cell: ({ row }) => <Person user={row.original} onOpen={open} /> },
    { id: "role", header: userTexts.role, meta: { hideBelow: "tablet", sort: "role" }, cell: ({ row }) => texts.roleOf(row.original.role) },
    {
      id: "status", header: userTexts.status,
      cell: ({ row }) => <Status user={row.original} />,
    },
    {
      id: "lastLogin", header: userTexts.lastLogin, meta: { hideBelow: "tablet", sort: "-last_login_at" },
      cell: ({ row }) =>
        row.original.last_login_at === null
          ? <span className={styles["muted"]}>{userTexts.never}</span>
          : <Time at={row.original.last_login_at} as="relative" />,
    },
    { id: "created", header: userTexts.createdAt, meta: { hideBelow: "desk", sort: "-created_at" }, cell: ({ row }) => <Time at={row.original.created_at} as="date" /> },
  ];
  if (administers) columns.push(actionsColumn((user) => <UserActions user={user} onOpen={() => open(user)} />));
  return columns;
}

function Status({ user }: { user: User }) {
  if (!user.is_active) return <Badge tone="neutral">{userTexts.inactive}</Badge>;
  if (user.awaits_confirmation) return <Badge tone="warning">{userTexts.unconfirmed}</Badge>;
  return <Badge tone="success">{userTexts.active}</Badge>;
}

function Person({ user, onOpen }: { user: User; onOpen: (user: User) => void }) {
  const users = userTexts;
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
        {user.kind === "service" && <> <Badge tone="info">{userTexts.kinds.service}</Badge></>}
      </span>
      {detail !== "" && <span className={styles["muted"]} title={detail}>{detail}</span>}
    </span>
  );
}
