/** Translations of texts that the server writes in English: descriptions of fields, and messages by code. */
import { useQuery } from "@tanstack/react-query";
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Language } from ".";
import type { ServerTexts } from "./given/texts";

/** English needs no translation. Each language is loaded on demand, like the texts of the interface. */
const GIVEN: Partial<Record<Language, () => Promise<ServerTexts>>> = {
  de: () => import("./given/de").then((read) => read.default),
};

export interface ServerTranslation {
  about: (sentence: string) => string;
  choice: (field: string, value: string) => string;
  /** Null without a translation. */
  meaning: (code: string) => string | null;
  operation: (summary: string) => string;
  builtIn: (sentence: string) => string;
}

export function useServerTexts(): ServerTranslation {
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
      builtIn: (sentence) => given?.builtIn[sentence] ?? sentence,
    }),
    [given],
  );
}
