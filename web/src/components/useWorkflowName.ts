import { useQueries, useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { workflowName } from "@/api/names";
import { textIn } from "@/i18n";
import { cut } from "@/i18n/isolated";

/** Names of workflows in the language of the page, or their ids if they have no name or do not exist. Loads only the
 * names that are requested. */
export function useWorkflowName(): (id: string) => string {
  const { i18n } = useTranslation();
  const client = useQueryClient();
  const [ids, setIds] = useState<readonly string[]>([]);
  const requested = useRef(new Set<string>());
  const known = useQueries({ queries: ids.map(workflowName), combine: namesIn });
  return useCallback(
    (id) => {
      if (!requested.current.has(id)) {
        requested.current.add(id);
        queueMicrotask(() => setIds([...requested.current]));
      }
      const one = known[ids.indexOf(id)] ?? client.getQueryData(workflowName(id).queryKey);
      return cut(one ? textIn(one.names ?? one.name, i18n.language, id) : id);
    },
    [known, ids, client, i18n.language],
  );
}

const namesIn = <T>(asked: readonly { data: T | undefined }[]) => asked.map((one) => one.data);
