import { type ColumnDef, type RowData, tableFeatures, useTable } from "@tanstack/react-table";
import { ArrowDown, ArrowUp } from "lucide-react";
import { type KeyboardEvent, type MouseEvent, type ReactNode, useRef } from "react";
import { texts } from "../texts";
import { classes } from "./classes";
import styles from "./DataTable.module.css";
import { Skeleton } from "./states";

// The server paginates, filters and sorts, so the table needs none of the library's features.
const FEATURES = tableFeatures({});

interface Layout {
  align?: "end";
  /** A share in percent is that of the column with the names of rows. */
  width?: string;
  hideBelow?: "tablet" | "desk";
  /** The sort field of this column in the API. A leading minus makes the first click sort in descending order. */
  sort?: string;
}

export type Column<Row extends RowData> = ColumnDef<typeof FEATURES, Row> & { meta?: Layout };

const SKELETON_WIDTHS = ["70%", "55%", "80%", "45%", "65%"];
const SKELETON_ROWS = 8;
const INTERACTIVE = "a, button, input, select, [role=menuitem]";

/** A table with one page of a list. It shows placeholders while `rows` is undefined. If rows can be opened, each row
 * must contain a button with the attribute `data-open`. A click elsewhere in the row also opens it. The up and down
 * arrow keys, and K and J, move the focus between these buttons. If `onSort` is set, the headers of columns with `sort`
 * are buttons. */
export function DataTable<Row extends RowData>({ label, columns, rows, rowId, selectedId, onOpen, stale = false, sort, onSort }: {
  label: string;
  columns: Column<Row>[];
  rows: Row[] | undefined;
  rowId: (row: Row) => string;
  selectedId?: string | undefined;
  onOpen?: (row: Row) => void;
  stale?: boolean;
  sort?: string | undefined;
  onSort?: (sort: string) => void;
}) {
  const body = useRef<HTMLTableSectionElement>(null);
  const table = useTable({ features: FEATURES, columns, data: rows ?? [], getRowId: rowId });

  function openOnClick(event: MouseEvent, row: Row) {
    const target = event.target as Element;
    const chosen = getSelection()?.toString();
    if (onOpen && target.closest(INTERACTIVE) === null && !chosen) onOpen(row);
  }

  function moveFocus(event: KeyboardEvent) {
    const step = { ArrowDown: 1, j: 1, ArrowUp: -1, k: -1 }[event.key];
    const openers = [...(body.current?.querySelectorAll<HTMLElement>("[data-open]") ?? [])];
    const at = openers.indexOf(event.target as HTMLElement);
    if (step === undefined || at === -1 || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    openers[at + step]?.focus();
  }

  return (
    <div className={styles["frame"]} data-stale={stale || undefined}>
      <table className={styles["table"]} aria-label={label} aria-busy={rows === undefined || stale}>
        <thead>
          {table.getHeaderGroups().map((group) => (
            <tr key={group.id}>
              {group.headers.map((header) => {
                const { meta } = header.column.columnDef as Column<Row>;
                const name = <table.FlexRender header={header} />;
                const direction = meta?.sort === undefined || onSort === undefined ? undefined : directionOf(meta.sort, sort);
                return (
                  <th key={header.id} scope="col" className={cellClass(meta)} style={{ width: meta?.width }} aria-sort={direction}>
                    {direction === undefined ? name : (
                      <button type="button" className={styles["sort"]} onClick={() => onSort?.(nextSort(meta?.sort ?? "", sort))}>
                        {name}
                        {direction === "ascending" && <ArrowUp aria-hidden size={12} />}
                        {direction === "descending" && <ArrowDown aria-hidden size={12} />}
                      </button>
                    )}
                  </th>
                );
              })}
            </tr>
          ))}
        </thead>
        <tbody ref={body} onKeyDown={moveFocus}>
          {rows === undefined
            ? Array.from({ length: SKELETON_ROWS }, (_, row) => (
                <tr key={row}>
                  {columns.map((column, at) => (
                    <td key={at} className={cellClass(column.meta)}>
                      <Skeleton width={SKELETON_WIDTHS[(row + at) % SKELETON_WIDTHS.length] ?? "60%"} />
                    </td>
                  ))}
                </tr>
              ))
            : table.getRowModel().rows.map((row) => (
                <tr
                  key={row.id}
                  className={classes(onOpen && styles["opens"], row.id === selectedId && styles["selected"])}
                  onClick={(event) => openOnClick(event, row.original)}
                >
                  {row.getAllCells().map((cell) => (
                    <td key={cell.id} className={cellClass((cell.column.columnDef as Column<Row>).meta)}>
                      <table.FlexRender cell={cell} />
                    </td>
                  ))}
                </tr>
              ))}
        </tbody>
      </table>
      {rows === undefined && <span className={styles["hidden"]} role="status">{texts.loading}</span>}
    </div>
  );
}

/** The last column, with each row's menu. */
export function actionsColumn<Row extends RowData>(menu: (row: Row) => ReactNode): Column<Row> {
  return {
    id: "actions", header: () => <span className={styles["hidden"]}>{texts.actions}</span>,
    meta: { align: "end", width: "3rem" }, cell: ({ row }) => menu(row.original),
  };
}

function reversed(sort: string): string {
  return sort.startsWith("-") ? sort.slice(1) : `-${sort}`;
}

function nextSort(first: string, now: string | undefined): string {
  return now === first ? reversed(first) : first;
}

function directionOf(first: string, now: string | undefined): "ascending" | "descending" | "none" {
  if (now !== first && now !== reversed(first)) return "none";
  return now.startsWith("-") ? "descending" : "ascending";
}

function cellClass(meta: Layout | undefined): string {
  return classes(meta?.align === "end" && styles["end"], meta?.hideBelow && styles[meta.hideBelow], meta?.width?.endsWith("%") && styles["main"]);
}
