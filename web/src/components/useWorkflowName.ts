import { useQueries, useQueryClient } from "@tanstack/react-query";
import { useCallback, useRef, useState } from "react";
import { useTranslation } from "react-i18next";
import { workflowName } from "@/api/names";
import { textIn } from "@/i18n";
import { cut } from "@/i18n/isolated";

/**
 * How workflows are called in the language of the page; by their ids where they have no name or are not there any more.
 * Only those are asked for that somebody wants to name.
 */
export function useWorkflowName(): (id: string) => string {
  const { i18n } = useTranslation();
  const client = useQueryClient();
  const [ids, ask] = useState<readonly string[]>([]);
  const wanted = useRef(new Set<string>());
  const known = useQueries({ queries: ids.map(workflowName), combine: namesIn });
  return useCallback(
    (id) => {
      if (!wanted.current.has(id)) {
        wanted.current.add(id);
        queueMicrotask(() => ask([...wanted.current]));
      }
      const one = known[ids.indexOf(id)] ?? client.getQueryData(workflowName(id).queryKey);
      return cut(one ? textIn(one.names ?? one.name, i18n.language, id) : id);
    },
    [known, ids, client, i18n.language],
  );
}

const namesIn = <T>(asked: readonly { data: T | undefined }[]) => asked.map((one) => one.data);
