import { useState } from "react";
import { SearchBox } from "./SearchBox";
import { useDebouncedInput } from "./useDebouncedInput";

type SearchState = { words: string; typed: string; type: (words: string) => void };

/** State of a search in a list that the server filters. */
export function useSearch(): SearchState {
  const [words, setWords] = useState("");
  const [typed, type] = useDebouncedInput(words, setWords);
  return { words, typed, type };
}

/** A search box, shown only if the list has more than one page. */
export function LargeListSearch(props: {
  search: SearchState;
  query: { hasNextPage: boolean; data?: { pages: readonly unknown[] } | undefined };
  label: string;
}) {
  const { words, typed, type } = props.search;
  const isCut = props.query.hasNextPage || (props.query.data?.pages.length ?? 0) > 1;
  // While a search is active the box stays, so that the user can change it.
  if (!isCut && words === "" && typed === "") return null;
  return <SearchBox value={typed} onChange={type} label={props.label} />;
}
