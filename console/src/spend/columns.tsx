import { Link } from "@tanstack/react-router";
import { useUserName } from "../api/users";
import type { Column } from "../parts/DataTable";
import { count, dollars, percent } from "../parts/format";
import { spendTexts } from "../texts/spend";
import { daysOf, type SpendFilters, type SpendItem } from "./api";
import styles from "./SpendPage.module.css";

type Shown = Pick<SpendFilters, "by" | "period" | "from" | "to">;

/** The columns of the list. `total` is the cost of all items. */
export function spendColumns(shown: Shown, total: number): Column<SpendItem>[] {
  return [
    { id: "name", header: spendTexts.names[shown.by], meta: { width: "40%", sort: "name" }, cell: ({ row }) => <Name item={row.original} shown={shown} /> },
    { id: "requests", header: spendTexts.requests, meta: { align: "end", sort: "-requests" }, cell: ({ row }) => count(row.original.requests) },
    {
      id: "tokens", header: spendTexts.tokens, meta: { align: "end", hideBelow: "tablet", sort: "-tokens" },
      cell: ({ row: { original: item } }) => count(item.input_tokens + item.output_tokens + item.cached_tokens),
    },
    { id: "cost", header: spendTexts.cost, meta: { align: "end", sort: "-cost_usd" }, cell: ({ row }) => dollars(row.original.cost_usd) },
    {
      id: "share", header: spendTexts.share, meta: { align: "end", hideBelow: "desk" },
      cell: ({ row }) => <Share share={total === 0 ? 0 : row.original.cost_usd / total} />,
    },
  ];
}

/** The name as a link to the details of the sum: from a group to its users, from a user to their API keys, from a key
 * to its requests. */
function Name({ item, shown }: { item: SpendItem; shown: Shown }) {
  const { id } = item;
  const owner = useUserName(item.user_id);
  if (id === null) return <span className={styles["none"]}>{spendTexts.none[shown.by]}</span>;
  const name = item.name ?? spendTexts.deleted(id);
  const { by: _, ...period } = shown;
  return (
    <span className={styles["name"]}>
      {shown.by === "group" && <Link to="/spend" search={{ ...period, by: "user", group: id }} aria-label={spendTexts.usersOf(name)}>{name}</Link>}
      {shown.by === "user" && <Link to="/spend" search={{ ...period, by: "api_key", user: id }} aria-label={spendTexts.keysOf(name)}>{name}</Link>}
      {shown.by === "api_key" && (
        <Link to="/requests" search={{ key: id, ...timesOf(shown) }} aria-label={spendTexts.requestsOf(name)}>{name}</Link>
      )}
      {owner !== null && <span className={styles["owner"]}>{owner}</span>}
    </span>
  );
}

/** Converts the days to the time filters of the list of requests. */
function timesOf(shown: Shown) {
  const { from, to } = daysOf(shown);
  const end = to === undefined ? undefined : new Date(Date.parse(to) + 86_400_000).toISOString();
  return { period: "custom" as const, ...(from !== undefined && { from: new Date(from).toISOString() }), ...(end !== undefined && { to: end }) };
}

export function Share({ share }: { share: number }) {
  return (
    <span className={styles["share"]}>
      <span className={styles["bar"]} aria-hidden><span style={{ width: `${share * 100}%` }} /></span>
      {percent(share)}
    </span>
  );
}
