import { UsersRound, X } from "lucide-react";
import { useRights } from "../api/queries";
import { Button } from "../parts/Button";
import { Dialog } from "../parts/Dialog";
import { FilterField } from "../parts/FilterField";
import { PAGE_SIZE } from "../parts/ListPanel";
import { Pager } from "../parts/Pager";
import { EmptyState, ErrorState, Skeleton } from "../parts/states";
import { Time } from "../parts/Time";
import { report } from "../parts/report";
import { toast } from "../parts/toasts";
import { texts } from "../texts";
import { groupTexts } from "../texts/groups";
import { nameOf } from "../users/api";
import { UserPicker } from "../users/UserPicker";
import { type Group, type Member, useAddMember, useMembers, useRemoveMember } from "./api";
import styles from "./MembersDialog.module.css";

/** The search and the page of the list of members. The URL contains them. */
export interface MembersView {
  search?: string | undefined;
  page: number;
}

/** The members of a group. Administrators add and remove them. */
export function MembersDialog({ group, view, onView, onClose }: {
  group: Group | undefined;
  view: MembersView;
  onView: (view: MembersView) => void;
  onClose: () => void;
}) {
  return (
    <Dialog
      open={group !== undefined} onClose={onClose} title={group === undefined ? "" : groupTexts.membersOf(group.name)}
      text={groupTexts.membersText} wide
    >
      {group !== undefined && <Members key={group.id} group={group} view={view} onView={onView} />}
    </Dialog>
  );
}

function Members({ group, view: { search, page }, onView }: { group: Group; view: MembersView; onView: (view: MembersView) => void }) {
  const groups = groupTexts;
  const { administers } = useRights();
  const members = useMembers(group.id, search, page);
  const add = useAddMember(group.id);
  const { data } = members;
  const ids = new Set(data?.rows.map((member) => member.user_id));
  const updateFilters = (part: string | undefined) => onView({ search: part, page: 1 });
  return (
    <div className={styles["body"]}>
      {administers && (
        <UserPicker
          label={groups.add} hint={groups.addHint} action={groups.addThis} taken={ids} takenText={groups.isMember}
          onChoose={(user) => report(add.mutateAsync(user.id), () => toast(groups.added(nameOf(user), group.name)))}
        />
      )}
      {(group.member_count > PAGE_SIZE || search !== undefined) && (
        <div className={styles["filter"]}>
          <FilterField label={groups.searchMembers} placeholder={groups.searchMembers} value={search} onChange={updateFilters} />
          {search !== undefined && <Button look="quiet" size="small" onClick={() => updateFilters(undefined)}>{texts.clear}</Button>}
        </div>
      )}
      {members.error && data === undefined ? (
        <ErrorState error={members.error} onRetry={() => void members.refetch()} />
      ) : data === undefined ? (
        <div role="status" aria-label={texts.loading}><Skeleton width="50%" /></div>
      ) : data.total === 0 ? (
        <EmptyState icon={UsersRound} title={search === undefined ? groups.noMembers : groups.noMemberMatches} />
      ) : (
        <ul className={styles["members"]} aria-label={groups.members}>
          {data.rows.map((member) => <MemberRow key={member.id} member={member} group={group} />)}
        </ul>
      )}
      {data !== undefined && (page > 1 || data.total > PAGE_SIZE) && (
        <Pager name={groups.members} page={page} size={PAGE_SIZE} total={data.total} onPage={(next) => onView({ search, page: next })} />
      )}
    </div>
  );
}

function MemberRow({ member, group }: { member: Member; group: Group }) {
  const groups = groupTexts;
  const { administers } = useRights();
  const remove = useRemoveMember(group.id);
  const name = member.user_email ?? member.user_id;
  return (
    <li className={styles["member"]}>
      <span className={styles["name"]} title={name}>{name}</span>
      <span className={styles["joined"]}>{groups.since} <Time at={member.joined_at} as="date" /></span>
      {administers && (
        <Button
          look="quiet" size="icon" aria-label={groups.removeMember(name)} busy={remove.isPending}
          onClick={() => report(remove.mutateAsync(member.user_id), () => toast(groups.removed(name, group.name)))}
        >
          <X aria-hidden />
        </Button>
      )}
    </li>
  );
}
