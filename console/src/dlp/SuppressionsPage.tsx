import { getRouteApi } from "@tanstack/react-router";
import { RotateCcw, ShieldCheck } from "lucide-react";
import { useMemo, useRef, useState } from "react";
import { useRights } from "../api/queries";
import { useUserName } from "../api/users";
import { Button } from "../parts/Button";
import { ConfirmDialog } from "../parts/ConfirmDialog";
import { actionsColumn, type Column } from "../parts/DataTable";
import { Dialog } from "../parts/Dialog";
import { FilterField } from "../parts/FilterField";
import { ListPanel } from "../parts/ListPanel";
import { Page } from "../parts/Page";
import { RuleName } from "../parts/rules";
import { EmptyState } from "../parts/states";
import { Time } from "../parts/Time";
import { texts } from "../texts";
import { dlpTexts, suppressionTexts } from "../texts/dlp";
import {
  type LibraryPattern, type Suppression, type SuppressionSort, useEndSuppression, useLibrary, useSuppressionPage, useSuppressions,
} from "./customization";
import { DlpViews } from "./DlpViews";
import { SuppressionForm } from "./SuppressionForm";

const route = getRouteApi("/dlp-rules/suppressions");

/** The suppressed built-in patterns. The URL parameter `pattern` opens the form for this pattern, for example
 * `?pattern=email`. */
export function SuppressionsPage() {
  const suppressions = suppressionTexts;
  const { administers } = useRights();
  const { pattern, search, page = 1, sort = "created_at" } = route.useSearch();
  const navigate = route.useNavigate();
  const trigger = useRef<HTMLButtonElement>(null);
  const [isNew, setNew] = useState(false);
  const library = useLibrary();
  const list = useSuppressionPage(search, sort, page);
  const columns = useMemo(() => columnsOf(administers, library.data ?? []), [administers, library.data]);
  const isOpen = isNew || pattern !== undefined;
  const suppressed = useSuppressions(isOpen);
  const updateFilters = (part: string | undefined) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, search: part }) });
  const clear = () => void navigate({ search: {} });
  function close() {
    setNew(false);
    if (pattern !== undefined) void navigate({ search: ({ pattern: _, ...now }) => now });
  }
  return (
    <Page
      title={suppressions.title} views={<DlpViews />}
      actions={administers && <Button look="primary" ref={trigger} onClick={() => setNew(true)}>{suppressions.new}</Button>}
      filterBar={
        <>
          <FilterField label={texts.rules.search} placeholder={suppressions.searchPlaceholder} value={search} onChange={updateFilters} />
          {search !== undefined && <Button look="quiet" size="small" onClick={clear}>{texts.clear}</Button>}
        </>
      }
    >
      <ListPanel
        label={suppressions.title} list={list} columns={columns} rowId={(row) => row.id} page={page} sort={sort} isFiltered={search !== undefined}
        onClear={clear}
        onSort={(next) => void navigate({ search: ({ page: _, ...now }) => ({ ...now, sort: next as SuppressionSort }) })}
        onPage={(next) => void navigate({ search: (now) => ({ ...now, page: next }) })}
        empty={<EmptyState icon={ShieldCheck} title={suppressions.empty} text={suppressions.emptyText} />}
      />
      {administers && (
        <Dialog open={isOpen} onClose={close} returnTo={trigger} title={suppressions.newTitle} text={suppressions.text}>
          <SuppressionForm patternId={pattern} suppressed={suppressed.data ?? []} library={library.data} onDone={close} />
        </Dialog>
      )}
    </Page>
  );
}

function columnsOf(administers: boolean, library: LibraryPattern[]): Column<Suppression>[] {
  const suppressions = suppressionTexts;
  const patternOf = (row: Suppression) => library.find(({ id }) => id === row.pattern_id);
  const columns: Column<Suppression>[] = [
    {
      id: "pattern", header: suppressions.pattern, meta: { width: "50%", sort: "pattern_id" },
      cell: ({ row: { original } }) => (
        <RuleName name={patternOf(original)?.name ?? original.pattern_id} hint={original.pattern_id} detail={original.reason ?? suppressions.noReason} />
      ),
    },
    { id: "entity", header: dlpTexts.entityType, meta: { hideBelow: "tablet" }, cell: ({ row }) => <code>{patternOf(row.original)?.entity_type ?? texts.none}</code> },
    { id: "by", header: suppressions.by, meta: { hideBelow: "tablet" }, cell: ({ row }) => <Author id={row.original.created_by} /> },
    { id: "at", header: suppressions.at, meta: { sort: "-created_at" }, cell: ({ row }) => <Time at={row.original.created_at} as="date" /> },
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
  const suppressions = suppressionTexts;
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
