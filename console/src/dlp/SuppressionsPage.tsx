import { getRouteApi } from "@tanstack/react-router";
import { RotateCcw, ShieldCheck } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useRights } from "../api/queries";
import { useUserName } from "../api/users";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { actionsColumn, type Column, DataTable } from "../parts/DataTable";
import { Dialog } from "../parts/Dialog";
import { Page, Panel } from "../parts/Page";
import { RuleName } from "../parts/rules";
import { EmptyState, ErrorState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { type LibraryPattern, type Suppression, useEndSuppression, useLibrary, useSuppressions } from "./customization";
import { DlpViews } from "./DlpViews";
import { SuppressionForm } from "./SuppressionForm";

const route = getRouteApi("/dlp-rules/suppressions");

/** The built-in patterns that are out of force. `pattern` in the URL opens the form with that pattern: `?pattern=email`. */
export function SuppressionsPage() {
  const { suppressions } = texts;
  const { administers } = useRights();
  const { pattern } = route.useSearch();
  const navigate = route.useNavigate();
  const trigger = useRef<HTMLButtonElement>(null);
  const [isNew, setNew] = useState(false);
  const library = useLibrary();
  const list = useSuppressions();
  const columns = useMemo(() => columnsOf(administers, library.data ?? []), [administers, library.data]);
  function close() {
    setNew(false);
    if (pattern !== undefined) void navigate({ search: {} });
  }
  return (
    <Page
      title={suppressions.title} views={<DlpViews />}
      actions={administers && <Button look="primary" ref={trigger} onClick={() => setNew(true)}>{suppressions.new}</Button>}
    >
      <Panel label={suppressions.title}>
        {list.error && list.data === undefined ? (
          <ErrorState error={list.error} onRetry={() => void list.refetch()} />
        ) : list.data?.length === 0 ? (
          <EmptyState icon={ShieldCheck} title={suppressions.empty} text={suppressions.emptyText} />
        ) : (
          <DataTable label={suppressions.title} columns={columns} rows={list.data} idOf={(row) => row.id} />
        )}
      </Panel>
      {administers && (
        <Dialog
          open={isNew || pattern !== undefined} onClose={close} returnTo={trigger} title={suppressions.newTitle} text={suppressions.text}
        >
          <SuppressionForm patternId={pattern} suppressed={list.data ?? []} library={library.data} onDone={close} />
        </Dialog>
      )}
    </Page>
  );
}

function columnsOf(administers: boolean, library: LibraryPattern[]): Column<Suppression>[] {
  const { suppressions } = texts;
  const patternOf = (row: Suppression) => library.find(({ id }) => id === row.pattern_id);
  const columns: Column<Suppression>[] = [
    {
      id: "pattern", header: suppressions.pattern, meta: { width: "50%" },
      cell: ({ row: { original } }) => (
        <RuleName name={patternOf(original)?.name ?? original.pattern_id} hint={original.pattern_id} detail={original.reason ?? suppressions.noReason} />
      ),
    },
    { id: "entity", header: texts.dlp.entityType, meta: { hideBelow: "tablet" }, cell: ({ row }) => <code>{patternOf(row.original)?.entity_type ?? texts.none}</code> },
    { id: "by", header: suppressions.by, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Author id={row.original.created_by} /> },
    { id: "at", header: suppressions.at, cell: ({ row }) => <Time at={row.original.created_at} as="date" /> },
  ];
  if (administers) {
    columns.push(actionsColumn((row) => <EndButton suppression={row} name={patternOf(row)?.name ?? row.pattern_id} />));
  }
  return columns;
}

function Author({ id }: { id: string | null }) {
  return useUserName(id) ?? texts.none;
}

function EndButton({ suppression, name }: { suppression: Suppression; name: string }) {
  const { suppressions } = texts;
  const [open, setOpen] = useState(false);
  const trigger = useRef<HTMLButtonElement>(null);
  const end = useEndSuppression(suppression.id);
  return (
    <>
      <Button ref={trigger} look="quiet" size="icon" aria-label={suppressions.end(name)} title={suppressions.endShort} onClick={() => setOpen(true)}>
        <RotateCcw aria-hidden />
      </Button>
      <ConfirmDialog
        open={open} onClose={() => setOpen(false)} returnTo={trigger} look="primary" title={suppressions.endTitle(name)}
        text={suppressions.endText} action={suppressions.endShort} run={() => end.mutateAsync(undefined)} done={suppressions.ended(name)}
      />
    </>
  );
}
