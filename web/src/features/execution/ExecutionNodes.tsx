import { useQuery } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { executionDefinition } from "@/api/queries";
import type { DefinitionNode } from "@/api/views";
import { NodesContext } from "@/graph/model/nodeNames";

const NONE: readonly DefinitionNode[] = [];

/** Provide the node names of an execution's definition to the components inside. */
export function ExecutionNodes({ execution, children }: { execution: string; children: ReactNode }) {
  const native = useQuery(executionDefinition(execution));
  return <NodesContext.Provider value={native.data?.nodes ?? NONE}>{children}</NodesContext.Provider>;
}
