/** The problems of the draft, with the names of its elements instead of ids and pointers. */
import { useMemo } from "react";
import { useTranslation } from "react-i18next";
import type { Definition } from "@/api/views";
import { problemsByName } from "./problemNames";
import type { Checked } from "./useChecked";

export function useProblemsByName(checked: Checked, shown: Definition): Checked {
  const { t, i18n } = useTranslation();
  return useMemo(
    () => ({ ...checked, problems: problemsByName(checked.problems, shown, i18n.language, t) }),
    [checked, shown, i18n.language, t],
  );
}
