import { ChevronLeft, ChevronRight } from "lucide-react";
import { useEffect } from "react";
import { texts } from "../texts";
import { Button } from "./Button";
import styles from "./Pager.module.css";

/** Shows the numbers of the visible rows, and buttons for the previous and the next page. If the page is beyond the end
 * of the list, for example because its last row was removed, opens the last page. `name` is the name of the list, if
 * the screen has several lists. `countedRows` is the number of rows on this page. It is set if the list can have more
 * rows than `total`. */
export function Pager({ name, page, size, total, countedRows, onPage }: {
  name?: string;
  page: number;
  size: number;
  total: number;
  countedRows?: number;
  onPage: (page: number) => void;
}) {
  const lastPage = Math.max(1, Math.ceil(total / size));
  const isBeyondEnd = countedRows === undefined && page > lastPage;
  useEffect(() => {
    if (isBeyondEnd) onPage(lastPage);
  });
  const first = (page - 1) * size + 1;
  const last = countedRows === undefined ? Math.min(page * size, total) : first + countedRows - 1;
  const isLast = countedRows === undefined ? last >= total : countedRows < size;
  const { label, labelOf, range, rangeOfMany, previous, next } = texts.pages;
  return (
    <nav className={styles["pager"]} aria-label={name === undefined ? label : labelOf(name)}>
      <span aria-live="polite">{name} {countedRows === undefined ? range(first, last, total) : rangeOfMany(first, last, total)}</span>
      <Button look="quiet" size="icon" aria-label={previous} disabled={page <= 1} onClick={() => onPage(page - 1)}>
        <ChevronLeft aria-hidden />
      </Button>
      <Button look="quiet" size="icon" aria-label={next} disabled={isLast} onClick={() => onPage(page + 1)}>
        <ChevronRight aria-hidden />
      </Button>
    </nav>
  );
}
