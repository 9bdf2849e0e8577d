import { ChevronLeft, ChevronRight } from "lucide-react";
import { useEffect } from "react";
import { texts } from "../texts";
import { Button } from "./Button";
import styles from "./Pager.module.css";

/** Which rows of a list are shown, and the way to others. A page beyond the end, whose last row was removed, leads to the
 * last one. `name` says of what, where a page has several lists. */
export function Pager({ name, page, size, total, onPage }: {
  name?: string;
  page: number;
  size: number;
  total: number;
  onPage: (page: number) => void;
}) {
  const lastPage = Math.max(1, Math.ceil(total / size));
  const isBeyondEnd = page > lastPage;
  useEffect(() => {
    if (isBeyondEnd) onPage(lastPage);
  });
  const first = (page - 1) * size + 1;
  const last = Math.min(page * size, total);
  return (
    <nav className={styles["pager"]} aria-label={name === undefined ? texts.pages.label : texts.pages.labelOf(name)}>
      <span aria-live="polite">{name} {texts.pages.range(first, last, total)}</span>
      <Button look="quiet" size="icon" aria-label={texts.pages.previous} disabled={page <= 1} onClick={() => onPage(page - 1)}>
        <ChevronLeft aria-hidden />
      </Button>
      <Button look="quiet" size="icon" aria-label={texts.pages.next} disabled={last >= total} onClick={() => onPage(page + 1)}>
        <ChevronRight aria-hidden />
      </Button>
    </nav>
  );
}
