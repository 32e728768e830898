/** Event kinds and positions in the language of the page. */
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
  const nodeName = useNodeName();
  return useCallback(
    ({ kind, step, node }) => ({
      what: t(`event.${kind}`, kind),
      where: step ? stepName(step, nodeName) : node ? nodeName(node) : "",
    }),
    [t, nodeName],
  );
}
