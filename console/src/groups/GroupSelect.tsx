import type { ReactNode } from "react";
import { SearchedFilterSelect, SearchedSelectField } from "../parts/SearchedSelect";
import { useGroupNames, useGroupOptions } from "./api";

interface Props {
  label: string;
  hint?: string;
  fault?: string | undefined;
  value: string;
  onChange: (id: string) => void;
  /** The option that selects no group. */
  children: ReactNode;
}

/** Selects a group. If there are many groups, the server searches them. */
export function GroupSelect(props: Props) {
  return <SearchedSelectField {...props} useOptions={useGroupOptions} chosen={useChosen(props.value)} />;
}

/** Selects a group in a filter bar. */
export function GroupFilter(props: Omit<Props, "hint" | "fault">) {
  return <SearchedFilterSelect {...props} useOptions={useGroupOptions} chosen={useChosen(props.value)} />;
}

function useChosen(id: string) {
  const names = useGroupNames(id === "" ? [] : [id]);
  return id === "" ? undefined : { id, name: names.get(id) ?? id };
}
