import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { executionDefinition } from "@/api/queries";
import type { DefinitionNode } from "@/api/views";
import { NodesContext } from "@/graph/model/nodeNames";

const NONE: readonly DefinitionNode[] = [];

/** What is inside calls the nodes of an execution by the names in its definition. */
export function NodesOf({ execution, children }: { execution: string; children: ReactNode }) {
  const native = useQuery(executionDefinition(execution));
  return <NodesContext.Provider value={native.data?.nodes ?? NONE}>{children}</NodesContext.Provider>;
}
