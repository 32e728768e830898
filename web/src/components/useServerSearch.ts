import { useQuery } from "@tanstack/react-query";
import { useState } from "react";
import { useTranslation } from "react-i18next";
import { apiRequest, query } from "@/api/http";
import { useDebouncedInput } from "./useDebouncedInput";

const SHOWN = 20;

export interface ServerSearch<T> {
  entries: readonly T[];
  /** A note below the matches: that there are more, or none. */
  note: string | undefined;
  /** Start or change the search; empty text returns the first entries. No request is sent before the first call. */
  search: (words: string) => void;
}

/** Search entries on the server while the user types. `list` is the name of the resource and of its field in the
 * response. */
export function useServerSearch<T>(list: string, filter: Readonly<Record<string, string>> = {}): ServerSearch<T> {
  const { t } = useTranslation();
  const [isAsked, setAsked] = useState(false);
  const [words, setWords] = useState("");
  const [, type] = useDebouncedInput(words, setWords);
  const found = useQuery({
    enabled: isAsked,
    queryKey: [list, { picked: words, ...filter }],
    queryFn: ({ signal }) =>
      apiRequest<Record<string, T[]> & { next: string | null }>(
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
