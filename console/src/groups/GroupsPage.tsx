import { getRouteApi } from "@tanstack/react-router";
import { UserRoundPlus, UsersRound } from "lucide-react";
import { useMemo } from "react";
import { useRights } from "../api/queries";
import { Button } from "../parts/Button";
import { actionsColumn, type Column } from "../parts/DataTable";
import { FilterField } from "../parts/FilterField";
import { ListPanel } from "../parts/ListPanel";
import { MenuItem } from "../parts/Menu";
import { Page } from "../parts/Page";
import { type Editor, NewRuleButton, RuleMenu, RuleName } from "../parts/rules";
import { EmptyState } from "../parts/states";
import { Time } from "../parts/Time";
import { RowFailure, useOpenRow } from "../parts/useOpenRow";
import { texts } from "../texts";
import { groupTexts } from "../texts/groups";
import { type Group, type GroupFilters, type Sort, useDeleteGroup, useGroup, useGroupPage } from "./api";
import { DEFAULT_SORT } from "./choices";
import { GroupForm } from "./GroupForm";
import { MembersDialog } from "./MembersDialog";

const route = getRouteApi("/groups");
const creation: Editor = (close) => <GroupForm onDone={close} />;

/** The list of groups. A dialog shows the members of the group that the URL names. */
export function GroupsPage() {
  const groups = groupTexts;
  const { administers } = useRights();
  const { page = 1, group: openId, member, members = 1, ...filters } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useGroupPage(filters, page);
  const isFiltered = filters.search !== undefined;
  const { open, close } = useMemo(() => ({
    open: (group: Group) => void navigate({ search: (now) => ({ ...now, group: group.id }) }),
    close: () => void navigate({ search: ({ group: _, member: __, members: ___, ...now }) => now }),
  }), [navigate]);
  const columns = useMemo(() => columnsOf(administers, open), [administers, open]);
  const updateFilters = (changed: GroupFilters) => void navigate({ search: { ...filters, ...changed } });
  const clear = () => void navigate({ search: {} });
  const shown = { ...list, data: list.data && { rows: list.data.groups, total: list.data.total } };
  const opened = useOpenRow(openId, list.data?.groups, useGroup);

  return (
    <Page
      title={groups.title}
      actions={administers && <NewRuleButton label={groups.new} title={groups.newTitle} editor={creation} />}
      filterBar={
        <>
          <FilterField
            label={groups.search} placeholder={groups.searchPlaceholder} value={filters.search}
            onChange={(search) => updateFilters({ search })}
          />
          {isFiltered && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={groups.title} list={shown} columns={columns} rowId={(group) => group.id} page={page} sort={filters.sort ?? DEFAULT_SORT}
        isFiltered={isFiltered} onClear={clear} onSort={(sort) => updateFilters({ sort: sort as Sort })}
        onPage={(next) => void navigate({ search: { ...filters, page: next } })} selectedId={openId} onOpen={open}
        none={groups.noneMatch}
        empty={<EmptyState icon={UsersRound} title={groups.empty} text={groups.emptyText} />}
      />
      <MembersDialog
        group={opened.row} view={{ search: member, page: members }} onClose={close}
        onView={(view) => void navigate({ search: (now) => ({ ...now, member: view.search, members: view.page > 1 ? view.page : undefined }) })}
      />
      <RowFailure failed={opened.failed} onClose={close} />
    </Page>
  );
}

function columnsOf(administers: boolean, open: (group: Group) => void): Column<Group>[] {
  const { rules } = texts;
  const groups = groupTexts;
  const columns: Column<Group>[] = [
    {
      id: "name", header: rules.name, meta: { width: "50%", sort: "name" },
      cell: ({ row: { original: group } }) => (
        <RuleName
          name={group.name} detail={group.description ?? ""}
          opener={{ id: group.id, label: groups.membersOf(group.name), onOpen: () => open(group) }}
        />
      ),
    },
    { id: "members", header: groups.members, meta: { align: "end", sort: "-member_count" }, cell: ({ row }) => row.original.member_count.toLocaleString("en") },
    { id: "external", header: groups.externalId, meta: { hideBelow: "desk" }, cell: ({ row }) => row.original.external_group_id ?? texts.none },
    { id: "created", header: groups.created, meta: { hideBelow: "tablet", sort: "-created_at" }, cell: ({ row }) => <Time at={row.original.created_at} as="date" /> },
  ];
  if (administers) columns.push(actionsColumn((group) => <Actions group={group} onOpen={() => open(group)} />));
  return columns;
}

function Actions({ group, onOpen }: { group: Group; onOpen: () => void }) {
  const remove = useDeleteGroup(group.id);
  return (
    <RuleMenu
      name={group.name} editor={(close) => <GroupForm group={group} onDone={close} />}
      deleteText={groupTexts.deleteText} onDelete={() => remove.mutateAsync(undefined)}
    >
      <MenuItem onClick={onOpen}><UserRoundPlus aria-hidden size={15} />{groupTexts.manage}</MenuItem>
    </RuleMenu>
  );
}
