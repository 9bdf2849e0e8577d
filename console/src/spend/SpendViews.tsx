import { getRouteApi, Link } from "@tanstack/react-router";
import { Segments } from "../parts/Segments";
import { spendTexts } from "../texts/spend";
import { VIEWS } from "./choices";

const route = getRouteApi("/spend");

/** Links to what the page can sum up by. The period is kept. */
export function SpendViews() {
  const { by = "user", page: _, alias: __, ...rest } = route.useSearch();
  return (
    <Segments label={spendTexts.by}>
      {VIEWS.map((view) => (
        <Link key={view} from="/spend" to="/spend" aria-current={view === by ? "true" : undefined} search={{ ...rest, by: view }}>
          {spendTexts.groupings[view]}
        </Link>
      ))}
    </Segments>
  );
}
