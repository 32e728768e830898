/** What an event of a journal says, in the language of the page: what happened, and where. */
import { useCallback } from "react";
import { useTranslation } from "react-i18next";
import type { JournalEvent } from "@/api/views";
import { stepName, useNodeName } from "@/graph/model/nodeNames";

export interface EventWords {
  what: string;
  where: string;
}

export function useEventWords(): (event: JournalEvent) => EventWords {
  const { t } = useTranslation();
  const called = useNodeName();
  return useCallback(
    ({ kind, step, node }) => ({
      what: t(`event.${kind}`, kind),
      where: step ? stepName(step, called) : node ? called(node) : "",
    }),
    [t, called],
  );
}
