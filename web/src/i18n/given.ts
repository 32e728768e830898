/** What the server says in English, in the language of the page: about the fields of definitions, and by its codes. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Language } from ".";

export interface Given {
  /** Sentences of the schema of definitions, as they stand there. */
  about: Record<string, string>;
  /** What can be chosen in a field, by its name and the value. */
  choices: Record<string, Record<string, string>>;
  /** What an error, a problem or a failure of this code means. */
  codes: Record<string, string>;
  /** What an operation of the server does, as its document says it. */
  operations: Record<string, string>;
  /** What the workflows that come along ask whoever starts them. */
  shelf: Record<string, string>;
}

/** English needs none: the server says it. Read when it is spoken, beside the words of the interface. */
const GIVEN: Partial<Record<Language, () => Promise<Given>>> = {
  de: () => import("./given/de").then((read) => read.default),
};

export interface Said {
  about: (sentence: string) => string;
  choice: (field: string, value: string) => string;
  /** Null where the words of the server are all there is. */
  meaning: (code: string) => string | null;
  operation: (summary: string) => string;
  shelf: (sentence: string) => string;
}

export function useGiven(): Said {
  const { i18n } = useTranslation();
  const read = GIVEN[i18n.language as Language];
  const { data: given } = useQuery({
    queryKey: ["given", i18n.language],
    queryFn: () => read?.() ?? null,
    staleTime: Number.POSITIVE_INFINITY,
    gcTime: Number.POSITIVE_INFINITY,
  });
  return useMemo(
    () => ({
      about: (sentence) => given?.about[sentence] ?? sentence,
      choice: (field, value) => given?.choices[field]?.[value] ?? value,
      meaning: (code) => given?.codes[code] ?? null,
      operation: (summary) => given?.operations[summary] ?? summary,
      shelf: (sentence) => given?.shelf[sentence] ?? sentence,
    }),
    [given],
  );
}
