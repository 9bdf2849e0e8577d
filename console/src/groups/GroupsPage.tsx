import { getRouteApi } from "@tanstack/react-router";
import { SearchX, UserRoundPlus, UsersRound } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Button } from "../parts/Button";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { MenuItem } from "../parts/Menu";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { type Editor, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { type Group, PAGE_SIZE, useDeleteGroup, useGroups } from "./api";
import { GroupForm } from "./GroupForm";
import { MembersDialog } from "./MembersDialog";

const route = getRouteApi("/groups");
const creation: Editor = (close) => <GroupForm onDone={close} />;

/** The groups by name. The API sends all of them, so they are searched and paged here. */
export function GroupsPage() {
  const { groups } = texts;
  const { administers } = useRights();
  const { search = "", page = 1, group: openId } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useGroups();
  const matching = useMemo(() => list.data?.filter(({ name }) => name.toLowerCase().includes(search.toLowerCase())), [list.data, search]);
  const { open, close } = useMemo(() => ({
    open: (group: Group) => void navigate({ search: (now) => ({ ...now, group: group.id }) }),
    close: () => void navigate({ search: ({ group: _, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const clear = () => void navigate({ search: {} });
  const opened = list.data?.find(({ id }) => id === openId);

  return (
    <Page
      title={groups.title}
      actions={administers && <NewRuleButton label={groups.new} title={groups.newTitle} editor={creation} />}
      bar={
        <>
          <FilterField
            label={groups.search} placeholder={groups.searchPlaceholder} value={search}
            onChange={(value) => void navigate({ search: value === undefined ? {} : { search: value } })}
          />
          {search !== "" && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <Panel label={groups.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.length === 0 ? (
          <EmptyState icon={UsersRound} title={groups.empty} text={groups.emptyText} />
        ) : matching?.length === 0 ? (
          <EmptyState icon={SearchX} title={groups.noneMatch}><Button onClick={clear}>{texts.clear}</Button></EmptyState>
        ) : (
          <>
            <DataTable
              label={groups.title} columns={columns} rows={matching?.slice((page - 1) * PAGE_SIZE, page * PAGE_SIZE)}
              idOf={(group) => group.id} selectedId={openId} onOpen={open}
            />
            {matching !== undefined && (
              <Pager
                page={page} size={PAGE_SIZE} total={matching.length}
                onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
              />
            )}
          </>
        )}
      </Panel>
      <MembersDialog group={opened} onClose={close} />
    </Page>
  );
}

function columnsOf(administers: boolean, open: (group: Group) => void): Column<Group>[] {
  const { groups, rules } = texts;
  const columns: Column<Group>[] = [
    {
      id: "name", header: rules.name, meta: { width: "50%" },
      cell: ({ row: { original: group } }) => (
        <RuleName
          name={group.name} detail={group.description ?? ""}
          opener={{ id: group.id, label: groups.membersOf(group.name), onOpen: () => open(group) }}
        />
      ),
    },
    { id: "members", header: groups.members, meta: { align: "end" }, cell: ({ row }) => row.original.member_count.toLocaleString() },
    { id: "external", header: groups.externalId, meta: { hideBelow: "desk" }, cell: ({ row }) => row.original.external_group_id ?? texts.none },
    { id: "created", header: groups.created, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Time at={row.original.created_at} as="date" /> },
  ];
  if (administers) columns.push(actionsColumn((group) => <Actions group={group} onOpen={() => open(group)} />));
  return columns;
}

function Actions({ group, onOpen }: { group: Group; onOpen: () => void }) {
  const remove = useDeleteGroup(group.id);
  return (
    <RuleMenu
      name={group.name} editor={(close) => <GroupForm group={group} onDone={close} />}
      deleteText={texts.groups.deleteText} onDelete={() => remove.mutateAsync(undefined)}
    >
      <MenuItem onClick={onOpen}><UserRoundPlus aria-hidden size={15} />{texts.groups.manage}</MenuItem>
    </RuleMenu>
  );
}
