import { useState } from "react";
import { SearchBox } from "./SearchBox";
import { useTyped } from "./useTyped";

type Search = { words: string; typed: string; type: (words: string) => void };

/** What somebody looks for in a list that the server searches. */
export function useSearch(): Search {
  const [words, setWords] = useState("");
  const [typed, type] = useTyped(words, setWords);
  return { words, typed, type };
}

/** A place to look for something, where there is more than one page: a few are seen at once. */
export function SearchWhereMany(props: {
  search: Search;
  of: { hasNextPage: boolean; data?: { pages: readonly unknown[] } | undefined };
  label: string;
}) {
  const { words, typed, type } = props.search;
  const isCut = props.of.hasNextPage || (props.of.data?.pages.length ?? 0) > 1;
  // What is looked for stays to be changed, also where little is found.
  if (!isCut && words === "" && typed === "") return null;
  return <SearchBox value={typed} onChange={type} label={props.label} />;
}
