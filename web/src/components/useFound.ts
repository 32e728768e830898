import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { ask, query } from "@/api/http";
import { useTyped } from "./useTyped";

const SHOWN = 20;

export interface Found<T> {
  entries: readonly T[];
  /** What the list does not say by itself: that there are more, or none. */
  note: string | undefined;
  /** Nothing is asked for before this is called; without words: the first ones. */
  search: (words: string) => void;
}

/** Things found by the server as their names are typed, however many there are. `list`: what the answer calls them. */
export function useFound<T>(list: string, filter: Readonly<Record<string, string>> = {}): Found<T> {
  const { t } = useTranslation();
  const [isAsked, setAsked] = useState(false);
  const [words, setWords] = useState("");
  const [, type] = useTyped(words, setWords);
  const found = useQuery({
    enabled: isAsked,
    queryKey: [list, { picked: words, ...filter }],
    queryFn: ({ signal }) =>
      ask<Record<string, T[]> & { next: string | null }>(
        `/api/${list}${query({ search: words, ...filter, sort: "name", limit: SHOWN })}`,
        { signal },
      ),
    staleTime: 30_000,
    placeholderData: (before) => before,
  });
  const entries = found.data?.[list] ?? [];
  const isNone = found.data && !found.isPlaceholderData && entries.length === 0 && words !== "";
  return {
    entries,
    note: isNone
      ? t("chooser.none", { words })
      : found.data?.next
        ? t("chooser.more", { count: SHOWN })
        : found.error?.message,
    search: (wanted) => {
      setAsked(true);
      type(wanted);
    },
  };
}
