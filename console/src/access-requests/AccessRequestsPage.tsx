import { getRouteApi } from "@tanstack/react-router";
import { KeySquare, SearchX, Undo2 } from "lucide-react";
import { useRef, useState } from "react";
import { Badge } from "../parts/Badge";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { FilterSelect } from "../parts/fields";
import { MenuItem } from "../parts/Menu";
import { Page, Panel } from "../parts/Page";
import { Pager } from "../parts/Pager";
import { RowMenu } from "../parts/RowMenu";
import { RuleName } from "../parts/rules";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { ACCESS_STATUSES, type AccessKind, type AccessRequest, type AccessStatus, PAGE_SIZE, useOwnRequests, useWithdrawRequest } from "./api";
import { RequestDialog } from "./RequestDialog";
import { grantedText, subjectOf, TONES } from "./requests";

const route = getRouteApi("/access-requests");

/** The user's own requests for models and limits. `model` or `ask` in the URL opens the dialog of a new one. */
export function AccessRequestsPage() {
  const { accessRequests } = texts;
  const { status, page = 1, ask, model } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useOwnRequests(status, page);
  const clear = () => void navigate({ search: {} });
  const open = (kind: AccessKind) => void navigate({ search: (now) => ({ ...now, ask: kind }) });
  const close = () => void navigate({ search: ({ ask: _, model: __, ...now }) => now });
  return (
    <Page
      title={accessRequests.title}
      actions={
        <>
          <Button onClick={() => open("limit")}>{accessRequests.askLimit}</Button>
          <Button look="primary" onClick={() => open("model")}>{accessRequests.askModel}</Button>
        </>
      }
      bar={
        <>
          <FilterSelect
            label={accessRequests.status} value={status ?? ""}
            onChange={({ target }) => void navigate({ search: target.value === "" ? {} : { status: target.value as AccessStatus } })}
          >
            <option value="">{accessRequests.anyStatus}</option>
            {ACCESS_STATUSES.map((name) => <option key={name} value={name}>{accessRequests.statuses[name]}</option>)}
          </FilterSelect>
          {status !== undefined && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <Panel label={accessRequests.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.items.length === 0 && status !== undefined ? (
          <EmptyState icon={SearchX} title={accessRequests.noneMatch}><Button onClick={clear}>{texts.clear}</Button></EmptyState>
        ) : list.data?.items.length === 0 ? (
          <EmptyState icon={KeySquare} title={accessRequests.empty} text={accessRequests.emptyText} />
        ) : (
          <>
            <DataTable label={accessRequests.title} columns={COLUMNS} rows={list.data?.items} idOf={({ id }) => id} stale={list.isPlaceholderData} />
            {list.data !== undefined && (
              <Pager
                page={page} size={PAGE_SIZE} total={list.data.total}
                onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
              />
            )}
          </>
        )}
      </Panel>
      <RequestDialog kind={ask ?? (model === undefined ? undefined : "model")} model={model} onClose={close} />
    </Page>
  );
}

const COLUMNS: Column<AccessRequest>[] = [
  {
    id: "subject", header: texts.accessRequests.subject, meta: { width: "40%" },
    cell: ({ row: { original: request } }) => <RuleName name={subjectOf(request)} detail={request.reason} />,
  },
  {
    id: "status", header: texts.accessRequests.status,
    cell: ({ row: { original: { status } } }) => <Badge tone={TONES[status]}>{texts.accessRequests.statuses[status]}</Badge>,
  },
  { id: "decision", header: texts.accessRequests.decision, meta: { width: "28%", hideBelow: "tablet" }, cell: ({ row }) => <Outcome request={row.original} /> },
  { id: "created", header: texts.accessRequests.created, meta: { hideBelow: "desk" }, cell: ({ row }) => <Time at={row.original.created_at} as="relative" /> },
  actionsColumn((request) => (request.status === "pending" ? <Actions request={request} /> : null)),
];

/** What was given, and the administrator's reason. */
function Outcome({ request }: { request: AccessRequest }) {
  const granted = grantedText(request);
  const lines = [granted, request.decision_reason].filter((text) => text !== null);
  return lines.length === 0 ? texts.none : <RuleName name={lines[0] ?? ""} detail={lines[1] ?? ""} />;
}

function Actions({ request }: { request: AccessRequest }) {
  const { accessRequests } = texts;
  const withdraw = useWithdrawRequest();
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const subject = subjectOf(request);
  return (
    <>
      <RowMenu label={accessRequests.actionsOf(subject)} trigger={trigger}>
        <MenuItem danger onClick={() => setOpen(true)}><Undo2 aria-hidden size={15} />{accessRequests.withdraw}</MenuItem>
      </RowMenu>
      <ConfirmDialog
        open={open} onClose={() => setOpen(false)} returnTo={trigger} title={accessRequests.withdrawTitle(subject)}
        text={accessRequests.withdrawText} action={accessRequests.withdraw} run={() => withdraw.mutateAsync(request.id)}
        done={accessRequests.withdrawn}
      />
    </>
  );
}
