import { getRouteApi } from "@tanstack/react-router";
import { KeySquare, SearchX, Undo2 } from "lucide-react";
import { useRef, useState } from "react";
import { Cards } from "../approvals/Cards";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { FilterSelect } from "../parts/fields";
import { Page, Panel } from "../parts/Page";
import { EmptyState } from "../parts/states";
import { texts } from "../texts";
import { accessRequestTexts } from "../texts/access-requests";
import { ACCESS_STATUSES, type AccessKind, type AccessRequest, type AccessSort, type AccessStatus, DEFAULT_SORT, SORTS, useOwnRequests, useWithdrawRequest } from "./api";
import { AccessCard } from "./AccessCard";
import { RequestDialog } from "./RequestDialog";
import { subjectOf } from "./requests";

const route = getRouteApi("/access-requests");

/** The user's own requests for models and limits. The URL parameters `model` and `ask` open the dialog for a new
 * request. */
export function AccessRequestsPage() {
  const accessRequests = accessRequestTexts;
  const { status, sort = DEFAULT_SORT, page = 1, ask, model } = route.useSearch();
  const navigate = route.useNavigate();
  const list = useOwnRequests(status, sort, page);
  const updateFilters = (value: string) =>
    void navigate({ search: ({ sort: order }) => ({ ...(value !== "" && { status: value as AccessStatus }), ...(order !== undefined && { sort: order }) }) });
  const clear = () => updateFilters("");
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
      filterBar={
        <>
          <FilterSelect
            label={accessRequests.status} value={status ?? ""}
            onChange={({ target }) => updateFilters(target.value)}
          >
            <option value="">{accessRequests.anyStatus}</option>
            {ACCESS_STATUSES.map((name) => <option key={name} value={name}>{accessRequests.statuses[name]}</option>)}
          </FilterSelect>
          <FilterSelect
            label={accessRequests.order} value={sort}
            onChange={({ target }) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: target.value as AccessSort }) })}
          >
            {SORTS.map((name) => <option key={name} value={name}>{accessRequests.orders[name]}</option>)}
          </FilterSelect>
          {status !== undefined && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <Panel label={accessRequests.title}>
        <Cards
          query={list} page={page} isLive onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
          empty={status === undefined
            ? <EmptyState icon={KeySquare} title={accessRequests.empty} text={accessRequests.emptyText} />
            : <EmptyState icon={SearchX} title={accessRequests.noneMatch}><Button onClick={clear}>{texts.clear}</Button></EmptyState>}
        >
          {(request) => (
            <AccessCard key={request.id} request={request} own>
              {request.status === "pending" && <Withdrawal request={request} />}
            </AccessCard>
          )}
        </Cards>
      </Panel>
      <RequestDialog kind={ask ?? (model === undefined ? undefined : "model")} model={model} onClose={close} />
    </Page>
  );
}

function Withdrawal({ request }: { request: AccessRequest }) {
  const accessRequests = accessRequestTexts;
  const withdraw = useWithdrawRequest();
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const subject = subjectOf(request);
  return (
    <>
      <div>
        <Button ref={trigger} aria-label={accessRequests.withdrawOf(subject)} onClick={() => setOpen(true)}>
          <Undo2 aria-hidden />{accessRequests.withdraw}
        </Button>
      </div>
      <ConfirmDialog
        open={open} onClose={() => setOpen(false)} returnTo={trigger} title={accessRequests.withdrawTitle(subject)}
        text={accessRequests.withdrawText} action={accessRequests.withdraw} run={() => withdraw.mutateAsync(request.id)}
        done={accessRequests.withdrawn}
      />
    </>
  );
}
